"""Tables have the rows of whole captures, by hashes of contents, whatever ends at any moment, or runs beside."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from deltalake import DeltaTable

from dissector.pipeline import commit
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables import delta_log
from dissector.tables.delta_log import put_captures, remove_captures
from dissector.tables.maintenance import compact
from dissector.tables.run import Run
from dissector.tables.schemas import FACT_TABLES
from dissector.tables.verification import problems
from tests.cli.test_commands import KDISSECT
from tests.conftest import PCAPS, some_of
from tests.forked import PipedProgram
from tests.pipeline.contents import contents
from tests.tables.copied import copy_tables
from tests.tables.test_maintenance import live, physical, seen

JAVA, SLOW, RDKAFKA = (str(PCAPS / f"{name}.pcapng") for name in ("java", "trouble-slow", "librdkafka"))


PAUSE = 0.1
"""Seconds between compactions: without, they would take more of the processor than the ingests beside them."""


class KilledError(BaseException):
    """In place of a signal: nothing that handles errors handles it."""


def ingested(folder: Path, *files: str) -> Path:
    """Ingest files; those that are the first in their folder, once in this process."""
    if not (folder / "captures").exists():
        return copy_tables(folder, *files)
    ingest_here(files, str(folder), WriteOptions())
    return folder


def dies_behind(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process die behind a commit of facts of this number."""
    write, commits = DeltaTable.create_write_transaction, []

    def counted(*given: Any, **named: Any) -> None:
        write(*given, **named)
        commits.append(None)
        if len(commits) == number:
            raise KilledError

    monkeypatch.setattr(DeltaTable, "create_write_transaction", counted)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("step", some_of([1, 4], 4))
def test_an_ingest_that_dies_behind_any_commit_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Behind each, or in `make test` behind the first and some of the others."""
    expected = contents(ingested(tmp_path / "whole", SLOW, JAVA))
    folder = ingested(tmp_path / "tables", SLOW)
    before = contents(folder)
    monkeypatch.setattr(Run, "is_abandoned", True)
    for number in count(1, step):
        with monkeypatch.context() as patched:
            dies_behind(number, patched)
            try:
                ingested(folder, JAVA)
            except KilledError:
                assert contents(folder) == before, number
                continue
        break
    assert number > len(FACT_TABLES) / 2
    assert contents(folder) == expected
    assert physical(folder) == live(folder), "what the killed ones left is removed"


@pytest.mark.exhaustive
@pytest.mark.slow
def test_what_is_forgotten_while_it_is_ingested_again_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ingest has written its rows, and comes to `captures` last."""
    folder = ingested(tmp_path, JAVA)
    before = contents(folder)
    [java] = [row["capture"] for row in seen(folder).captures]

    def put(uri: str, decide: delta_log.Decide) -> list[delta_log.Row]:
        assert remove_captures(uri, [java]) == 1
        return put_captures(uri, decide)

    monkeypatch.setattr(commit, "put_captures", put)
    ingest_here([JAVA], str(folder), WriteOptions(), again=True)
    assert contents(folder) == before
    assert physical(folder) == live(folder)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_ingests_compactions_and_a_forgetting_at_once_give_what_one_after_the_other_does(tmp_path: Path) -> None:
    expected = contents(ingested(tmp_path / "whole", JAVA, RDKAFKA))
    folder = ingested(tmp_path / "tables", SLOW)
    [slow] = [row["capture"] for row in seen(folder).captures]
    compacting = threading.Event()

    def compact_again_and_again() -> None:
        while not compacting.wait(PAUSE):
            compact(str(folder))

    with ExitStack() as programs, ThreadPoolExecutor() as threads:
        ingests = [PipedProgram(KDISSECT[-1], "ingest", each, "--out", str(folder)) for each in (JAVA, RDKAFKA, JAVA)]
        for each in ingests:
            programs.enter_context(each)
        compactions = threads.submit(compact_again_and_again)
        try:
            assert remove_captures(str(folder), [slow]) == 1
            assert [each.wait() for each in ingests] == [0, 0, 0]
        finally:
            compacting.set()
        compactions.result()
    compact(str(folder))
    assert contents(folder) == expected
    assert physical(folder) == live(folder)
    assert list(problems(str(folder), seen(folder))) == []
