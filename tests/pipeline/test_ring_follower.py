"""A ring that is followed: its tables are those of one run over the same files."""

import os
import re
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.findings.conversations import Talk, heartbeat, written
from tests.pipeline.contents import lines, rows_that_count
from tests.pipeline.test_micro_batch import cut

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from deltalake import DeltaTable

from dissector.capture_session.checkpoint import Checkpoint
from dissector.pipeline import micro_batch_run, ring_follower
from dissector.pipeline.follow_state import FOLLOWER
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.ring import RingFile, ring_file
from dissector.pipeline.ring_follower import Follower, MicroBatchReport
from dissector.pipeline.state_file import read_state_file, write_state_file

pytestmark = pytest.mark.slow
ROWS, PACKETS = map(Checkpoint._fields.index, ("pending_rows", "packets"))


def ring_of(folder: Path, count: int, capture: Path = PCAPS / "compare-librdkafka-1.pcapng") -> Path:
    """A capture as the files of a ring, the newest last."""
    folder.mkdir()
    for number, plan in enumerate(cut(capture, folder, count)):
        os.utime(plan.path, (1_000 + number, 1_000 + number))
    return folder


def taken(path: Path) -> RingFile:
    """A file as the ring gives it."""
    entry = ring_file(str(path))
    assert entry is not None
    return entry


def rows(tables: Path) -> dict[str, list[str]]:
    """All rows of all tables, as text; but for what is null of a ring that is followed."""
    found = rows_that_count(tables)
    for row in found["captures"]:
        del row["other_connections"]
    return {name: lines(some) for name, some in found.items()}


def followed(ring: Path, tables: Path, idle: float | None = 0.5) -> list[MicroBatchReport]:
    reports: list[MicroBatchReport] = []
    with Follower(str(tables), WriteOptions(), reports.append, parts=1) as follower:
        follower.run(str(ring), idle, quiet=0.2)
    return reports


@pytest.mark.long
def test_tables_are_those_of_one_run_over_the_files(tmp_path: Path) -> None:
    ring = ring_of(tmp_path / "ring", 4)
    reports = followed(ring, tmp_path / "followed")
    ingest_here(sorted(map(str, ring.iterdir())), str(tmp_path / "batch"), WriteOptions())
    whole = rows(tmp_path / "batch")
    assert len(whole["captures"]) == sum(each.files for each in reports) == 4
    assert whole["exchanges"]
    assert rows(tmp_path / "followed") == whole
    assert not (tmp_path / "followed" / FOLLOWER).exists(), "nothing is left of a ring that is over"


def one_by_one(ring: Path, tables: Path, parts: int = 1) -> list[dict[str, list[str]]]:
    """The files of a ring, a micro-batch each: the tables after each, and at the end."""
    found = []
    with Follower(str(tables), WriteOptions(), lambda report: None, parts=parts) as follower:
        for each in sorted(ring.iterdir()):
            follower.micro_batch([taken(each)])
            found.append(rows(tables))
        follower.end()
    return [*found, rows(tables)]


def batch(ring: Path, tables: Path) -> dict[str, list[str]]:
    ingest_here(sorted(map(str, ring.iterdir())), str(tables), WriteOptions())
    return rows(tables)


@pytest.mark.exhaustive
def test_cross_connection_findings_are_found_across_micro_batches(tmp_path: Path) -> None:
    """One micro-batch has what came before, the next one what makes it a finding; of connections in other processes."""
    ring = ring_of(tmp_path / "ring", 4, PCAPS / "trouble-rebalance-loop.pcapng")
    *_, followed = one_by_one(ring, tmp_path / "followed", parts=3)
    assert followed == batch(ring, tmp_path / "batch")
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


@pytest.mark.long
def test_what_is_found_later_of_rows_in_the_tables_stands_there(tmp_path: Path) -> None:
    """New findings of rows that came before, and new words of findings that did."""
    ring = ring_of(tmp_path / "ring", 3, troubled(tmp_path))
    first, *_, followed = one_by_one(ring, tmp_path / "followed")
    assert len(first["exchanges"]) > 10
    assert "slow" not in codes(first)
    whole = batch(ring, tmp_path / "batch")
    assert followed == whole
    assert {"slow", "error-storm"} <= set(codes(whole))


@pytest.mark.long
def test_a_micro_batch_that_was_broken_off_is_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
                followed(ring, tables)
        ingest_here([str(tmp_path / "nothing")], str(tables), WriteOptions())
        assert not rows(tables)["exchanges"], "nothing counts yet"
    with monkeypatch.context() as broken:
        broken.setattr(micro_batch_run, "write_state", killed)
        with pytest.raises(Exception, match="killed"):
            followed(ring, tables)
    assert rows(tables)["exchanges"], "it was broken off behind that"
    for file in sorted(kept.iterdir()):
        shutil.move(file, ring / file.name)
    followed(ring, tables)
    ingest_here(sorted(map(str, ring.iterdir())), str(tmp_path / "batch"), WriteOptions())
    assert rows(tables) == rows(tmp_path / "batch")


@pytest.mark.long
def test_a_false_carry_over_ends_a_micro_batch_in_one_line_and_nothing_of_it_counts(tmp_path: Path) -> None:
    """It is well-formed, but a number is where rows should be: a task meets it. With the right one all goes on."""
    ring, tables = ring_of(tmp_path / "ring", 2), tmp_path / "followed"
    first, second = map(taken, sorted(ring.iterdir()))
    follower_of(tables).micro_batch([first])
    [path] = (tables / FOLLOWER).glob("carry-over-*/0")
    right, before = path.read_bytes(), rows(tables)
    graphs = read_state_file(path)
    nodes = graphs["capture"]
    values = nodes.items[nodes.items[0][0]]
    values[ROWS] = values[PACKETS]
    write_state_file(path, graphs)
    done = kdissect("ingest", str(ring), "--follow", "--idle", "0.1", "--out", str(tables))
    assert done.returncode == 2
    assert re.search(rb"kdissect: stopped; start again to continue: [A-Z][A-Za-z]+Error: .+\n\Z", done.stderr)
    assert b"Traceback" not in done.stderr
    assert rows(tables) == before
    path.write_bytes(right)
    follower = follower_of(tables)
    follower.micro_batch([second])
    follower.end()
    assert rows(tables) == batch(ring, tmp_path / "batch")


def follower_of(tables: Path) -> Follower:
    """One with a single partition, which begins where the one before it ended."""
    return Follower(str(tables), WriteOptions(), lambda report: None, parts=1)


@pytest.mark.long
def test_late_and_overwritten_files_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file comes after the others, and one that was read has grown."""
    monkeypatch.setattr(ring_follower, "LATE_NS", 0)
    ring = ring_of(tmp_path / "ring", 4)
    first, *_, last = sorted(ring.iterdir())
    shutil.move(first, tmp_path / first.name)
    reports: list[MicroBatchReport] = []
    follower = Follower(str(tmp_path / "followed"), WriteOptions(), reports.append, parts=1)
    entries = [*map(taken, sorted(ring.iterdir()))]
    follower.micro_batch(entries)
    shutil.move(tmp_path / first.name, first)
    os.utime(first, (2_000, 2_000))
    with last.open("ab") as file:
        file.write(last.read_bytes()[-100:])
    follower.micro_batch([taken(first), taken(last), entries[-1]])
    assert [problem.code for problem in reports[0].problems] == []
    assert {"late-file", "file-grew", "file-overwritten"} <= {problem.code for problem in reports[1].problems}
    captures = rows_that_count(tmp_path / "followed")["captures"]
    assert sorted(row["path"] for row in captures) == sorted(map(str, ring.iterdir()))
