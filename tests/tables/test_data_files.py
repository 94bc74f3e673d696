"""Rows as Parquet files: whatever the wire had in them, every one, whatever their number and size."""

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from dissector.capture.partition import Block
from dissector.capture_session.tally import CaptureTally
from dissector.pipeline.file_scan import scan_file
from dissector.pipeline.origins import FileOrigins, Origin
from dissector.pipeline.partition_rows import WriteOptions, read_shared_state, rows
from dissector.pipeline.record_rows import record_rows
from dissector.pipeline.splits import route, splits
from dissector.protocol.records.batch import Record, RecordHeader
from dissector.tables import row_batches
from dissector.tables.arrow_types import arrow_schema
from dissector.tables.carried_records import CarriedRecords
from dissector.tables.data_files import TALLIES, DataFile, Output, write_rows
from dissector.tables.row_batches import Cells, TableRow
from dissector.tables.schemas import BY_NAME
from dissector.transport.partitions import Partition
from tests.conftest import PCAPS
from tests.pipeline.without_spark import one_by_one, read_back, tables, with_headers
from tests.traffic import Turn, capture_of, conversation, request, response

KEYS = {"day": None, "capture": "x", "epoch": 1}
WHOLE = Partition(0, 1)


def written(folder: Path, made: list[TableRow]) -> dict[str, list[dict[str, Any]]]:
    files = list(write_rows(made, Output(f"file://{folder}", "_runs/1", 1)))
    assert all(each.rows for each in files)
    assert all((folder / each.path).stat().st_size == each.size for each in files)
    return {each.table: read_back(folder, each) for each in files}


def place(row: Cells) -> tuple[int, int, int]:
    return row["packet"], row.get("start", 0), row.get("offset", 0)


def blocks() -> list[Block]:
    found = splits([scan_file(str(PCAPS / "java.pcapng"))])
    return [each.block for split in found for each in route(split, 1)]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 7, row_batches.MAX_ROWS])
def test_rows_come_back_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(row_batches, "MAX_ROWS", most)
    origins = FileOrigins([Origin(0, "ab" * 32, 10**18, 5)], [])
    made = list(rows(blocks(), WHOLE, read_shared_state(blocks(), WHOLE), origins, WriteOptions()))
    files = list(write_rows(made, Output(str(tmp_path), "_runs/1", 1)))
    assert {each.table for each in files} == {name for name, _ in made}
    for each in files:
        if each.tally is not None:
            continue
        read = read_back(tmp_path, each)
        wanted = [row for name, row in one_by_one(made) if name == each.table]
        assert len(read) == each.rows == len(wanted)
        for one, other in zip(sorted(read, key=place), sorted(wanted, key=place), strict=True):
            assert [one[name] for name in KEYS] == [other.get(name) for name in KEYS]
            assert one.get("packet") == other.get("packet")
            assert one.get("request") == other.get("request")


def test_a_table_without_rows_is_not_written(tmp_path: Path) -> None:
    none = arrow_schema(BY_NAME["records"]).empty_table()  # of messages whose records can't be read
    assert written(tmp_path, [("records", none)]) == {}


def test_two_tries_of_a_task_write_different_files(tmp_path: Path) -> None:
    row = ("gaps", KEYS | {"packet": 1})
    [one] = write_rows([row], Output(str(tmp_path), "_runs/1", 1))
    [other] = write_rows([row], Output(str(tmp_path), "_runs/1", 1))
    assert one.path != other.path
    assert read_back(tmp_path, one) == read_back(tmp_path, other)


def test_observations_are_the_runs_and_facts_are_the_tables(tmp_path: Path) -> None:
    files = list(
        write_rows([("observations", {"packet": 1}), ("gaps", {"packet": 1})], Output(str(tmp_path), "_runs/1", 1))
    )
    assert [each.path.rpartition("/")[0] for each in files] == ["_runs/1/observations", "gaps"]


def test_bodies_have_no_dictionary_short_columns_do_and_numbers_that_rise_are_differences(tmp_path: Path) -> None:
    [file] = write_rows([("bodies", KEYS | {"request": b"{}"})] * 3, Output(str(tmp_path), "", 1))
    group = pq.ParquetFile(tmp_path / file.path).metadata.row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert columns["capture"].has_dictionary_page
    assert not columns["request"].has_dictionary_page
    assert "DELTA_BINARY_PACKED" in columns["packet"].encodings
    assert columns["request"].compression == "ZSTD"


def test_names_and_values_of_headers_have_a_dictionary(tmp_path: Path) -> None:
    record = Record(1, 2, None, b"v", [RecordHeader("codec", b"lz4")] * 9)
    carried = CarriedRecords("orders", 0, [record], 1)
    [file] = write_rows([("records", record_rows(carried, KEYS, kept=True))], Output(str(tmp_path), "", 1))
    group = pq.ParquetFile(tmp_path / file.path).metadata.row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert columns["headers.list.element.key"].has_dictionary_page
    assert columns["headers.list.element.value"].has_dictionary_page
    assert not columns["value"].has_dictionary_page


def test_text_that_is_not_utf_8_is_as_json_has_it(tmp_path: Path) -> None:
    turns = [Turn(True, request(1, client_id=b"caf\xe9 \xff")), Turn(False, response(1))]
    made = tables([capture_of(tmp_path, conversation(turns))])
    found = written(tmp_path, [(name, row) for name in ("exchanges", "bodies") for row in made[name]])
    assert found["exchanges"][0]["client_id"] == "caf\\xe9 \\xff"
    assert '"client_id":"caf\\\\xe9 \\\\xff"' in found["bodies"][0]["request"]


def test_names_of_headers_that_are_not_utf_8_are_kept(tmp_path: Path) -> None:
    key = b"\xfe".decode("utf-8", "surrogateescape")
    record = Record(1, 2, None, b"v", [RecordHeader(key, b"\xff")])
    [row] = written(tmp_path, [("records", record_rows(CarriedRecords("orders", 0, [record], 1), KEYS, kept=True))])[
        "records"
    ]
    assert row["headers"] == [{"key": "\\xfe", "value": b"\xff"}]


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_times_and_offsets_that_no_column_holds_are_null(tmp_path: Path, number: int) -> None:
    """Damaged batches have them: a base near the end, and a delta."""
    record = Record(number, number, None, None, [])
    [row] = written(
        tmp_path, [("records", record_rows(CarriedRecords("orders", 0, [record], number), KEYS, kept=True))]
    )["records"]
    assert (row["offset"], row["timestamp_ms"], row["topic"]) == (None, None, "orders")


def test_what_a_part_left_out_goes_beside_its_files(tmp_path: Path) -> None:
    tally = CaptureTally(other_connections=Counter(TLS=3))
    [found] = write_rows([(TALLIES, {"tally": pickle.dumps(tally)})], Output(f"file://{tmp_path}", "_runs/1", 1))
    assert (found.table, found.rows) == (TALLIES, 0)
    assert pickle.loads(found.tally or b"") == tally
    assert DataFile(*found.batch.to_pylist()[0].values()) == found
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kept", [True, False])
def test_rows_that_come_together_are_those_that_come_one_by_one(tmp_path: Path, *, kept: bool) -> None:
    """Whatever batches hold: no record, one, many; and a message of before 0.11 among them."""
    records = [Record(n, 5, (None, b"k")[n % 2], b"v" * n, [RecordHeader("h", b"1")] * (n % 3)) for n in range(7)]
    batches = [
        CarriedRecords("orders", 1, records[:1], 0, 9, 1, 2**31 - 1, "lz4"), CarriedRecords("orders", 2, records, 0),
        CarriedRecords("", None, [(3, None, None, None, [])], 3, codec="gzip"),
    ]  # fmt: skip
    together = [
        record_rows(batch, KEYS | {"api": "Produce", "packet": at}, kept=kept) for at, batch in enumerate(batches)
    ]
    found = written(tmp_path, [("records", each) for each in together])["records"]
    expected = [with_headers(row) for each in together for row in each.rows]
    assert [{name: row[name] for name in one} for row, one in zip(found, expected, strict=True)] == expected
    assert len(found) == 9
