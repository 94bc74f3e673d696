"""Rows that a part writes down are there to be read, every one, whatever their number and size."""

from datetime import date
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from dissector.capture.partition import Block
from dissector.pipeline import staging
from dissector.pipeline.file_scan import scan_file
from dissector.pipeline.folder import Folder, FolderError
from dissector.pipeline.origins import Origin
from dissector.pipeline.partition_rows import WriteOptions, read_shared_state, rows
from dissector.pipeline.splits import route, splits
from dissector.transport.partitions import Partition
from tests.conftest import PCAPS
from tests.pipeline.without_spark import one_by_one, read_back

WHOLE = Partition(0, 1)


def blocks() -> list[Block]:
    found = splits([scan_file(str(PCAPS / "java.pcapng"))])
    return [each.block for split in found for each in route(split, 1)]


@pytest.mark.parametrize("most", [1, 7, staging.MAX_ROWS])
def test_rows_come_back_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(staging, "MAX_ROWS", most)
    made = list(
        rows(blocks(), WHOLE, read_shared_state(blocks(), WHOLE), [Origin(0, "ab" * 32, 10**18)], WriteOptions())
    )
    files = list(staging.write_rows(made, str(tmp_path)))
    assert {each.table for each in files} == {name for name, _ in made}
    for each in files:
        if each.tally is not None:
            continue
        read = read_back(tmp_path, each)
        wanted = [row for name, row in one_by_one(made) if name == each.table]
        assert len(read) == each.rows == len(wanted)
        for one, other in zip(read, wanted, strict=True):
            assert (str(one["day"]), one["capture"]) == (str(other["day"]), other["capture"])
            assert one.get("packet") == other.get("packet")
            assert one.get("request") == (other["request"].decode() if other.get("request") else None)


def test_two_tries_of_a_task_write_different_files(tmp_path: Path) -> None:
    row = ("gaps", {"day": "2026-11-21", "capture": "x", "packet": 1})
    [one] = staging.write_rows([row], str(tmp_path))
    [other] = staging.write_rows([row], str(tmp_path))
    assert one.path != other.path
    assert read_back(tmp_path, one) == read_back(tmp_path, other)


def test_a_folder_by_path_and_by_url_is_the_same(tmp_path: Path) -> None:
    odd = tmp_path / "a b#c"
    folder = Folder(str(odd))
    (odd / "t" / "day=2026-01-01" / "capture=x").mkdir(parents=True)
    assert folder.partitions("t") == ["day=2026-01-01/capture=x"]
    folder.move("t/day=2026-01-01/capture=x", "u/day=2026-01-01/capture=x")
    same = Folder(folder.uri)
    assert list(staging.write_rows([("observations", {"packet": 1})], folder.spark("rows")))
    assert len(list(odd.glob("rows/observations/*.parquet"))) == 1
    assert same.partitions("u") == ["day=2026-01-01/capture=x"]
    same.remove("u")
    assert not folder.has("u")
    assert list(odd.glob("*.kdissect")) == []


def test_a_folder_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="not a directory"):
        Folder(str(tmp_path / "file" / "in"))


def test_rows_that_stay_are_in_a_file_for_each_capture_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "MAX_OPEN_FILES", 3)
    rows = [
        (name, {"day": date(2026, 11, 21), "capture": f"c{n * n % 7}", "packet": n, "start": 0})
        for n in range(40)
        for name in ("gaps", "connections", "exchanges")
    ]
    files = list(staging.write_rows([(name, dict(cells)) for name, cells in rows], str(tmp_path)))
    assert len({each.path for each in files}) == len(files) > 6
    assert sum(each.rows for each in files) == len(rows)
    for name in ("gaps", "connections", "exchanges"):
        back = [row for each in files if each.table == name for row in read_back(tmp_path, each)]
        assert sorted((row["packet"], row["capture"]) for row in back) == [
            (cells["packet"], cells["capture"]) for of, cells in rows if of == name
        ]


def test_what_can_t_be_moved_or_removed_is_one_plain_line(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    (tmp_path / "from").mkdir()
    (tmp_path / "to").touch()
    with pytest.raises(FolderError, match=f"{tmp_path}/to/in: file exists"):
        folder.move("from", "to/in")
