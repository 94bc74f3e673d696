"""Commits of the tables: each row once, through kills, and with others that write at the same time."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from dissector.tables import delta_log
from dissector.tables.arrow_types import arrow_schema
from dissector.tables.data_files import DataFile, Output, write_rows
from dissector.tables.delta_log import append_facts, create_tables, put_captures, remove_epoch
from dissector.tables.schemas import BY_NAME
from dissector.tables.snapshot import snapshot
from dissector.tables.storage import StorageError
from tests.cases import cases
from tests.tables.copied import copy_tables

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_tables(tmp_path)


def gaps(folder: Path, capture: str, epoch: int, rows: int = 2) -> list[DataFile]:
    cells = [("gaps", {"capture": capture, "epoch": epoch, "packet": at}) for at in range(rows)]
    return list(write_rows(cells, Output(str(folder), "_runs/1", 1)))


def captures(folder: Path) -> list[tuple[str, int]]:
    seen = snapshot(str(folder))
    assert seen is not None
    return sorted((row["capture"], row["epoch"]) for row in seen.captures)


def rows(folder: Path, name: str = "gaps") -> list[tuple[str, int]]:
    found = DeltaTable(folder / name).to_pyarrow_table(columns=["capture", "epoch"]).to_pylist()
    return sorted((row["capture"], row["epoch"]) for row in found)


def absent_only(*names: str, epoch: int = 1) -> delta_log.Decide:
    def decide(there: Any) -> list[dict[str, Any]]:
        known = {row["capture"] for row in there}
        return [{"capture": name, "epoch": epoch, "digest": name} for name in names if name not in known]

    return decide


@pytest.mark.long
def test_an_append_that_the_library_refuses_is_tried_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append, refused = DeltaTable.create_write_transaction, []

    def refuse_once(*arguments: Any, **named: Any) -> None:
        if not refused:
            refused.append(True)
            raise CommitFailedError("a concurrent transaction deleted data this operation read")
        append(*arguments, **named)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", refuse_once)
    append_facts(str(folder), gaps(folder, "a", 1))
    assert refused
    assert rows(folder) == [("a", 1)] * 2


@pytest.mark.parametrize("cut", [True, False])
def test_a_file_that_vanished_or_was_cut_is_not_committed(folder: Path, *, cut: bool) -> None:
    files = [*gaps(folder, "a", 1), *gaps(folder, "b", 1)]
    damaged = folder / files[1].path
    if cut:
        damaged.write_bytes(damaged.read_bytes()[:-1])
    else:
        damaged.unlink()
    problem = f"{files[1].size - 1:,} bytes instead of {files[1].size:,}" if cut else "the file is missing"
    with pytest.raises(StorageError, match=rf"^{damaged}: {problem}: nothing was committed$"):
        append_facts(str(folder), files)
    assert rows(folder) == []


def test_all_tables_are_there_from_the_beginning(folder: Path) -> None:
    seen = snapshot(str(folder))
    assert seen is not None
    assert (seen.captures, set(seen.files)) == ([], set(BY_NAME))
    create_tables(str(folder))
    assert DeltaTable(folder / "gaps").version() == 0


def test_where_no_tables_are_there_is_nothing_to_see(tmp_path: Path) -> None:
    assert snapshot(str(tmp_path)) is None
    assert snapshot(str(tmp_path / "absent")) is None
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize("name", ["captures", "gaps"])
def test_tables_with_other_columns_are_told(tmp_path: Path, name: str) -> None:
    """Trap: a commit of files does not look at their columns."""
    write_deltalake(tmp_path / name, pa.table({"digest": ["a"]}))
    for look in (create_tables, snapshot):
        if look is create_tables or name == "captures":  # without `captures` there is nothing to see
            with pytest.raises(StorageError, match=f"/{name}: no column day: kdissect did not write this table: "):
                look(str(tmp_path))


def test_files_are_there_with_their_exact_sizes(folder: Path) -> None:
    append_facts(str(folder), gaps(folder, "a", 1))
    [size] = pa.table(DeltaTable(folder / "gaps").get_add_actions()).column("size_bytes").to_pylist()
    [file] = (folder / "gaps").glob("*.parquet")
    assert size == file.stat().st_size
    assert rows(folder) == [("a", 1)] * 2


def test_a_transaction_lands_once_however_often_it_is_tried(folder: Path) -> None:
    """Trap: the library commits the same version of an application twice."""
    for _ in range(2):
        append_facts(str(folder), gaps(folder, "a", 1), ("follower", 0))
    assert rows(folder) == [("a", 1)] * 2
    append_facts(str(folder), gaps(folder, "b", 1), ("follower", 1))
    append_facts(str(folder), gaps(folder, "c", 1), ("another", 0))
    assert rows(folder) == [("a", 1)] * 2 + [("b", 1)] * 2 + [("c", 1)] * 2


def test_another_commit_between_makes_one_look_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other ingest has the same capture: the first to commit wins."""
    write, tries = write_deltalake, []

    def interrupted(*given: Any, **named: Any) -> None:
        tries.append(None)
        if len(tries) == 1:
            monkeypatch.setattr(delta_log, "write_deltalake", write)
            put_captures(str(folder), absent_only("a", epoch=7))
            monkeypatch.setattr(delta_log, "write_deltalake", interrupted)
        write(*given, **named)

    monkeypatch.setattr(delta_log, "write_deltalake", interrupted)
    added = put_captures(str(folder), absent_only("a", "b"))
    assert [row["capture"] for row in added] == ["b"]
    assert captures(folder) == [("a", 7), ("b", 1)]
    assert len(tries) == 2


@pytest.mark.long
def test_a_compaction_between_doubles_no_capture(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replacement that was planned before is refused, and planned again: a file that it removes is gone."""
    for name in ("a", "b"):
        put_captures(str(folder), absent_only(name))
    write, tries = write_deltalake, []

    def interrupted(*given: Any, **named: Any) -> None:
        tries.append(None)
        if len(tries) == 1:
            assert DeltaTable(folder / "captures").optimize.compact()["numFilesRemoved"] == 2
        write(*given, **named)

    monkeypatch.setattr(delta_log, "write_deltalake", interrupted)
    put_captures(str(folder), lambda _: [{"capture": "a", "epoch": 2, "digest": "a"}])
    assert captures(folder) == [("a", 2), ("b", 1)]
    assert rows(folder, "captures") == [("a", 2), ("b", 1)]
    assert len(tries) == 2


PROCESS = """
import sys
from tests.tables.test_delta_log import absent_only, gaps
from dissector.tables.delta_log import put_captures, append_facts
from pathlib import Path
folder, which = Path(sys.argv[1]), int(sys.argv[2])
for number in range(4):
    name = f"shared-{number}" if number % 2 else f"of-{which}-{number}"
    append_facts(str(folder), gaps(folder, name, which))
    put_captures(str(folder), absent_only(name, epoch=which))
"""


@pytest.mark.long
@pytest.mark.slow
def test_processes_that_write_at_the_same_time_lose_and_double_nothing(folder: Path) -> None:
    others = [subprocess.Popen([sys.executable, "-c", PROCESS, str(folder), str(n)], cwd=ROOT) for n in range(2)]
    assert [each.wait() for each in others] == [0, 0]
    found = captures(folder)
    assert len(found) == len({name for name, _ in found}) == 2 + 2 * 2
    live = [row for row in rows(folder) if row in found]
    assert len(live) == 2 * len(found)


@pytest.mark.long
def test_facts_of_a_killed_ingest_are_removed_and_those_of_others_stay(folder: Path) -> None:
    append_facts(str(folder), gaps(folder, "a", 1))
    put_captures(str(folder), absent_only("a"))
    append_facts(str(folder), gaps(folder, "b", 2))
    remove_epoch(str(folder), 2)
    assert rows(folder) == [("a", 1)] * 2
    remove_epoch(str(folder), 1)
    assert rows(folder) == [("a", 1)] * 2, "it came as far as `captures`"


@pytest.mark.long
def test_a_snapshot_has_the_facts_of_each_of_its_captures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures that are committed while the other tables are looked at are seen whole, or not at all."""
    look, looks = delta_log.delta_table, []

    def interrupted(uri: str, name: str) -> Any:
        looks.append(name)
        if looks.count("connections") == 1 and name == "quarantine":
            append_facts(uri, gaps(folder, "late", 1))
            put_captures(uri, absent_only("late"))
        return look(uri, name)

    monkeypatch.setattr("dissector.tables.snapshot.delta_table", interrupted)
    seen = snapshot(str(folder))
    assert seen is not None
    assert [row["capture"] for row in seen.captures] == ["late"]
    assert len(seen.files["gaps"]) == 1
    assert looks.count("captures") == 2


@pytest.mark.long
@pytest.mark.slow
@cases("path", ["../captures/_delta_log/x", "/etc/passwd", "a/../../b", "file:///etc/passwd", "s3://bucket/x", ".."])
def test_a_log_that_names_files_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    create_tables(str(tmp_path))
    action = {"path": path, "size": 1, "partitionValues": {}, "modificationTime": 0, "dataChange": True}
    log = tmp_path / "captures" / "_delta_log" / "00000000000000000001.json"
    log.write_text(json.dumps({"add": action}))
    for read in (snapshot, lambda uri: remove_epoch(uri, 1)):
        with pytest.raises(StorageError, match="its log names a file outside"):
            read(str(tmp_path))


@pytest.mark.long
def test_a_file_of_captures_that_was_cut_is_one_line(folder: Path) -> None:
    put_captures(str(folder), absent_only("a"))
    [file] = (folder / "captures").rglob("*.parquet")
    whole = file.read_bytes()
    for size in (0, 10, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(StorageError, match=r"captures: cannot be read: [^\n]*$"):
            snapshot(str(folder))


@pytest.mark.long
def test_a_log_that_was_cut_is_one_line(folder: Path) -> None:
    """The line names the table, and has nothing of the library's stack; a log without the end of its last line is
    whole."""
    put_captures(str(folder), absent_only("a"))
    log = folder / "captures" / "_delta_log" / "00000000000000000000.json"
    whole = log.read_bytes().rstrip()
    for size in (0, 1, len(whole) // 2, len(whole) - 1):
        log.write_bytes(whole[:size])
        with pytest.raises(StorageError, match=r"captures: its log cannot be read: [^\n]*$") as raised:
            snapshot(str(folder))
        assert "unknown>" not in str(raised.value)
    log.write_bytes(whole)
    assert snapshot(str(folder)) is not None


@pytest.mark.long
def test_tables_of_an_earlier_version_get_the_columns_that_they_lack(tmp_path: Path) -> None:
    """Those at the end, as a later version adds them; their own rows have nulls there."""
    full = arrow_schema(BY_NAME["exchanges"])
    DeltaTable.create(tmp_path / "exchanges", pa.schema(list(full)[:-4]))
    create_tables(str(tmp_path))
    assert [field.name for field in DeltaTable(tmp_path / "exchanges").schema().fields] == full.names
    seen = snapshot(str(tmp_path))
    assert seen is not None
    assert seen.captures == []
