"""A ring followed by structured streaming: its tables are those of one run over the same files."""

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.conftest import PCAPS
from tests.findings.conversations import Talk, heartbeat, written
from tests.pipeline.contents import lines, rows_that_count
from tests.pipeline.test_micro_batch import cut

if find_spec("pyspark") is None:
    pytest.skip("NOT TESTED with pyspark: it is not installed", allow_module_level=True)

from deltalake import DeltaTable
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from dissector.capture_session.checkpoint import Checkpoint
from dissector.pipeline import micro_batch_run, observations, ring_follower
from dissector.pipeline.follow_state import FOLLOWER
from dissector.pipeline.ingest_on_spark import ingest_on_spark
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.ring import ring_file
from dissector.pipeline.ring_follower import Follower, MicroBatchReport
from dissector.pipeline.spark_session import reason
from dissector.pipeline.state_file import read_state_file, write_state_file

pytestmark = [pytest.mark.slow, pytest.mark.spark]
ROWS, PACKETS = map(Checkpoint._fields.index, ("pending_rows", "packets"))


def ring_of(folder: Path, count: int, capture: Path = PCAPS / "librdkafka-pipelined.pcapng") -> Path:
    """A capture as the files of a ring, the newest last."""
    folder.mkdir()
    for number, plan in enumerate(cut(capture, folder, count)):
        os.utime(plan.path, (1_000 + number, 1_000 + number))
    return folder


def rows(tables: Path) -> dict[str, list[str]]:
    """All rows of all tables, as text."""
    return {name: lines(found) for name, found in rows_that_count(tables).items()}


def followed(spark: SparkSession, ring: Path, tables: Path, idle: float | None = 4) -> list[MicroBatchReport]:
    reports: list[MicroBatchReport] = []
    Follower(spark, str(tables), WriteOptions(), 3, reports.append).run(str(ring), idle, quiet=1)
    return reports


def test_tables_are_those_of_one_run_over_the_files(spark: SparkSession, tmp_path: Path) -> None:
    ring = ring_of(tmp_path / "ring", 4)
    reports = followed(spark, ring, tmp_path / "followed")
    ingest_on_spark(spark, sorted(map(str, ring.iterdir())), str(tmp_path / "batch"), WriteOptions(), parts=2)
    whole = rows(tmp_path / "batch")
    assert len(whole["captures"]) == sum(each.files for each in reports) == 4
    assert whole["exchanges"]
    assert rows(tmp_path / "followed") == whole
    assert not (tmp_path / "followed" / FOLLOWER).exists(), "nothing is left of a ring that is over"


def one_by_one(spark: SparkSession, ring: Path, tables: Path) -> list[dict[str, list[str]]]:
    """The files of a ring, a micro-batch each: the tables after each, and at the end."""
    follower = Follower(spark, str(tables), WriteOptions(), 3, lambda reports: None)
    found = []
    for batch, each in enumerate(sorted(ring.iterdir())):
        entry = ring_file(each)
        assert entry is not None
        follower._micro_batch([entry], batch)
        found.append(rows(tables))
    follower._end()
    return [*found, rows(tables)]


def batch(spark: SparkSession, ring: Path, tables: Path) -> dict[str, list[str]]:
    ingest_on_spark(spark, sorted(map(str, ring.iterdir())), str(tables), WriteOptions(), parts=2)
    return rows(tables)


def test_cross_connection_findings_are_found_across_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    """One micro-batch has what came before, the next one what makes it a finding."""
    ring = ring_of(tmp_path / "ring", 4, PCAPS / "trouble-rebalance-loop.pcapng")
    *_, followed = one_by_one(spark, ring, tmp_path / "followed")
    assert followed == batch(spark, ring, tmp_path / "batch")
    assert "rebalance-loop" in codes(followed)


def codes(tables: dict[str, list[str]]) -> list[str]:
    return sorted(code for row in tables["findings"] for code in re.findall(r"'code', '(.+?)'", row))


def troubled(folder: Path) -> Path:
    """A slow answer before it is known what is usual, and errors that are a storm, all in the first third; but there a
    request still waits for its answer. Then the storm goes on."""
    usual, stormy, late = Talk(1), Talk(2), Talk(3)
    heartbeat(late, 0, 900)
    for at in range(40):
        heartbeat(usual, at * 20, 190 if at == 3 else 1)
    for at in range(40):
        heartbeat(stormy, at * 20 + 5, error=15)
    return Path(written(folder, usual, stormy, late))


@pytest.mark.parametrize("most", [0, observations.MOST_HERE])
def test_what_is_found_later_of_rows_in_the_tables_stands_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """New findings of rows that came before, and new words of findings that did; whoever sorts observations."""
    monkeypatch.setattr(micro_batch_run, "MOST_HERE", most)
    ring = ring_of(tmp_path / "ring", 3, troubled(tmp_path))
    first, *_, followed = one_by_one(spark, ring, tmp_path / "followed")
    assert len(first["exchanges"]) > 10
    assert "slow" not in codes(first)
    whole = batch(spark, ring, tmp_path / "batch")
    assert followed == whole
    assert {"slow", "error-storm"} <= set(codes(whole))


def test_a_micro_batch_that_was_broken_off_is_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any commit, after those of some tables, after that of `captures`; others run, and late files come, in
    between."""
    ring = ring_of(tmp_path / "ring", 4)
    kept = tmp_path / "kept"
    kept.mkdir()
    for file in sorted(ring.iterdir())[2:]:
        shutil.move(file, kept / file.name)
    tables = tmp_path / "followed"

    def killed(*_: Any) -> NoReturn:
        raise RuntimeError("killed")

    commits: list[None] = []

    def killed_after(most: int) -> None:
        write = DeltaTable.create_write_transaction
        commits.clear()

        def counted(*given: Any, **named: Any) -> None:
            if len(commits) == most:
                killed()
            commits.append(None)
            write(*given, **named)

        broken.setattr(DeltaTable, "create_write_transaction", counted)

    for most in (0, 1, 1):  # commits of the first micro-batch: at least two tables of rows, then the captures
        with monkeypatch.context() as broken:
            killed_after(most)
            with pytest.raises(Exception, match="killed"):
                followed(spark, ring, tables)
        ingest_on_spark(spark, [str(tmp_path / "nothing")], str(tables), WriteOptions())
        assert not rows(tables)["exchanges"], "nothing counts yet"
    with monkeypatch.context() as broken:
        broken.setattr(micro_batch_run, "write_state", killed)
        with pytest.raises(Exception, match="killed"):
            followed(spark, ring, tables)
    assert rows(tables)["exchanges"], "it was broken off behind that"
    for file in sorted(kept.iterdir()):
        shutil.move(file, ring / file.name)
    followed(spark, ring, tables)
    ingest_on_spark(spark, sorted(map(str, ring.iterdir())), str(tmp_path / "batch"), WriteOptions(), parts=2)
    assert rows(tables) == rows(tmp_path / "batch")


def test_a_false_carry_over_ends_a_micro_batch_in_one_line_and_nothing_of_it_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It is well-formed, but a number is where rows should be: a task meets it. With the right one all goes on."""
    ring, tables = ring_of(tmp_path / "ring", 2), tmp_path / "followed"
    first, second = (entry for each in sorted(ring.iterdir()) if (entry := ring_file(each)))
    follower_of(spark, tables)._micro_batch([first], 0)
    [path] = (tables / FOLLOWER).glob("carry-over-*/0")
    right, before = path.read_bytes(), rows(tables)
    graphs = read_state_file(path)
    nodes = graphs["capture"]
    values = nodes.items[nodes.items[0][0]]
    values[ROWS] = values[PACKETS]
    write_state_file(path, graphs)
    with pytest.raises(PythonException) as failed:
        follower_of(spark, tables)._micro_batch([second], 1)
    assert re.fullmatch("[A-Z][A-Za-z]+Error: .+", reason(failed.value))
    assert rows(tables) == before
    path.write_bytes(right)
    follower = follower_of(spark, tables)
    follower._micro_batch([second], 1)
    follower._end()
    assert rows(tables) == batch(spark, ring, tmp_path / "batch")


def follower_of(spark: SparkSession, tables: Path) -> Follower:
    """One with a single partition, which begins where the one before it ended."""
    return Follower(spark, str(tables), WriteOptions(), 1, lambda report: None)


def test_late_and_overwritten_files_are_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file comes after the others, and one that was read has grown."""
    monkeypatch.setattr(ring_follower, "LATE_NS", 0)
    ring = ring_of(tmp_path / "ring", 4)
    first, *_, last = sorted(ring.iterdir())
    shutil.move(first, tmp_path / first.name)
    reports: list[MicroBatchReport] = []
    follower = Follower(spark, str(tmp_path / "followed"), WriteOptions(), 3, reports.append)
    entries = [entry for each in sorted(ring.iterdir()) if (entry := ring_file(each))]
    follower._micro_batch(entries, 0)
    shutil.move(tmp_path / first.name, first)
    os.utime(first, (2_000, 2_000))
    with last.open("ab") as file:
        file.write(last.read_bytes()[-100:])
    late, grown = ring_file(first), ring_file(last)
    assert late is not None
    assert grown is not None
    follower._micro_batch([late, grown, entries[-1]], 1)
    assert [problem.code for problem in reports[0].problems] == []
    assert {"late-file", "file-grew", "file-overwritten"} <= {problem.code for problem in reports[1].problems}
    captures = rows_that_count(tmp_path / "followed")["captures"]
    assert sorted(row["path"] for row in captures) == sorted(map(str, ring.iterdir()))
