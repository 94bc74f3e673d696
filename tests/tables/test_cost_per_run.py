"""What a run reads does not grow with the captures that are in the tables: files, commits of logs, versions."""

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyarrow.parquet import ParquetFile

from dissector.core.version import version
from dissector.pipeline.commit import are_current
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables import delta_log, retries
from dissector.tables.delta_log import (
    CAPTURES,
    MOST_SMALL,
    append_facts,
    create_tables,
    existing_table,
    file_paths,
    live_captures,
    put_captures,
    until_committed,
)
from dissector.tables.maintenance import compact_crowded
from dissector.tables.retries import LONGEST_SECONDS, TRIES
from dissector.tables.storage import StorageError
from tests.tables.test_delta_log import absent_only, captures, gaps, rows
from tests.traffic import conversation, ethernet, exchanges, pcap

pytestmark = pytest.mark.slow

FEW = 4
"""In place of `MOST_SMALL`."""
RUNS = 2 * FEW + 9
"""Behind two compactions, and two checkpoints."""


def commits_after_checkpoint(table: Path) -> int:
    log = table / "_delta_log"
    last = log / "_last_checkpoint"
    first = json.loads(last.read_text())["version"] if last.exists() else -1
    return sum(int(each.stem) > first for each in log.glob("*.json"))


@pytest.mark.long
def test_files_and_commits_that_a_run_reads_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_log, "MOST_SMALL", FEW)
    create_tables(str(tmp_path))
    most = {"files": 0, "commits": 0}
    for number in range(RUNS):
        crowded = append_facts(str(tmp_path), gaps(tmp_path, f"c{number}", 1))
        put_captures(str(tmp_path), absent_only(f"c{number}"))
        compact_crowded(str(tmp_path), (*crowded, CAPTURES))
        for name in ("gaps", CAPTURES):
            most["files"] = max(most["files"], len(file_paths(existing_table(str(tmp_path), name))))
            most["commits"] = max(most["commits"], commits_after_checkpoint(tmp_path / name))
    assert most["files"] == FEW
    assert most["commits"] <= 10
    assert len(captures(tmp_path)) == RUNS
    assert rows(tmp_path) == sorted([(f"c{number}", 1) for number in range(RUNS)] * 2)


@pytest.mark.exhaustive
def test_large_files_are_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_tables(str(tmp_path))
    for number in range(MOST_SMALL):
        assert append_facts(str(tmp_path), gaps(tmp_path, f"c{number}", 1)) == []
    assert append_facts(str(tmp_path), gaps(tmp_path, "another", 1)) == ["gaps"]
    before = file_paths(existing_table(str(tmp_path), "gaps"))
    with monkeypatch.context() as patch:
        patch.setattr(delta_log, "SMALL_BYTES", 1)
        compact_crowded(str(tmp_path), ["gaps"])
        assert file_paths(existing_table(str(tmp_path), "gaps")) == before
    compact_crowded(str(tmp_path), ["gaps"])
    assert len(file_paths(existing_table(str(tmp_path), "gaps"))) == 1


@pytest.mark.long
def test_a_compaction_that_another_commit_prevents_is_left_to_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise CommitFailedError

    create_tables(str(tmp_path))
    monkeypatch.setattr("dissector.tables.maintenance.is_crowded", lambda _: True)
    monkeypatch.setattr("dissector.tables.maintenance.compacted", refused)
    compact_crowded(str(tmp_path), ["gaps", CAPTURES])


@pytest.mark.exhaustive
def test_each_run_opens_as_many_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opens: list[str] = []
    init = DeltaTable.__init__

    def counted(self: DeltaTable, table_uri: Any, *given: Any, **named: Any) -> None:
        opens.append(str(table_uri))
        init(self, table_uri, *given, **named)

    monkeypatch.setattr(DeltaTable, "__init__", counted)
    packets = [ethernet(each) for each in conversation(exchanges(1))]
    counts = []
    for number in range(6):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(pcap(packets, start=1_700_000_000 + 86_400 * number))
        opens.clear()
        assert ingest_here([str(path)], str(tmp_path / "tables"), WriteOptions()).read == 1
        counts.append(len(opens))
    assert len(set(counts[1:])) == 1, counts


def test_the_version_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(importlib.metadata, "version", lambda name: read.append(name) or "1")
    version.cache_clear()
    row = {"version": "1", "options": ""}
    assert all(list(are_current([row], WriteOptions())) == [row] for _ in range(100))
    assert read == ["kafka-dissector"]
    version.cache_clear()


@pytest.mark.long
def test_only_what_a_run_needs_of_captures_is_read(tmp_path: Path) -> None:
    create_tables(str(tmp_path))
    put_captures(str(tmp_path), absent_only("a"))
    [row] = live_captures(str(tmp_path))
    assert {"capture", "epoch", "digest", "version", "options", "path", "begin_ns", "end_ns", "form"} <= row.keys()
    assert not {"problems", "link_types", "begin_time"} & row.keys()


@pytest.mark.long
def test_each_file_of_captures_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever a run does; near miss: those that are new."""
    read: list[str] = []
    monkeypatch.setattr(
        "dissector.tables.delta_log.pq.ParquetFile", lambda path, **how: read.append(path) or ParquetFile(path, **how)
    )
    create_tables(str(tmp_path))
    for number in range(3):
        put_captures(str(tmp_path), absent_only(f"c{number}"))
        assert len(live_captures(str(tmp_path))) == number + 1
        assert len(read) == len(set(read)) == number + 1


def test_a_commit_that_others_always_prevent_ends_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("dissector.tables.retries.time.sleep", pauses.append)
    monkeypatch.setattr("dissector.tables.retries.random.uniform", lambda _, longest: longest)
    asked: list[None] = []

    def refused() -> None:
        asked.append(None)
        raise CommitFailedError

    line = rf"^/tables/gaps: other commits came first, each of {TRIES} times in 0 s: try again later$"
    with pytest.raises(StorageError, match=line):
        until_committed("file:///tables/gaps", refused)
    assert len(asked) == TRIES == len(pauses) + 1
    assert pauses == sorted(pauses)
    assert pauses[0] < 0.1 < LONGEST_SECONDS == pauses[-1]
    assert sum(pauses) < 300


def test_the_last_try_may_succeed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.tables.retries.time.sleep", lambda _: None)
    asked: list[None] = []

    def refused_but_once() -> str:
        asked.append(None)
        if len(asked) < TRIES:
            raise CommitFailedError
        return "done"

    assert until_committed("file:///tables/gaps", refused_but_once) == "done"


@pytest.mark.long
def test_who_reads_while_captures_change_all_the_time_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`captures` has another version whenever a snapshot looks at it again."""
    from dissector.tables.snapshot import snapshot

    create_tables(str(tmp_path))
    monkeypatch.setattr(retries, "TRIES", 3)
    monkeypatch.setattr("dissector.tables.retries.time.sleep", lambda _: None)
    names = iter(range(100))
    look = delta_log.delta_table

    def interrupted(uri: str, name: str) -> Any:
        if name == "gaps":
            put_captures(uri, absent_only(f"c{next(names)}"))
        return look(uri, name)

    monkeypatch.setattr("dissector.tables.snapshot.delta_table", interrupted)
    with pytest.raises(StorageError, match=rf"^{tmp_path}/captures: other commits came first, each of 3 times"):
        snapshot(str(tmp_path))
