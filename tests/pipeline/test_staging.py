"""Rows as Parquet files: whatever the wire had in them."""

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dissector.analysis.records import CarriedRecords
from dissector.capture_session.tally import CaptureTally
from dissector.pipeline.partition_rows import TALLIES
from dissector.pipeline.record_rows import record_rows
from dissector.pipeline.staging import StagedFile, write_rows
from dissector.pipeline.table_rows import TableRow
from dissector.protocol.records.batch import Record, RecordHeader
from tests.pipeline.without_spark import read_back, tables, with_headers
from tests.traffic import Turn, capture_of, conversation, request, response

WHERE = {"day": "2026-11-21", "capture": "x"}


def written(folder: Path, made: list[TableRow]) -> dict[str, list[dict[str, Any]]]:
    files = list(write_rows(made, f"file://{folder}"))
    assert all(each.rows for each in files)
    return {each.table: read_back(folder, each) for each in files}


def test_text_that_is_not_utf_8_is_as_json_has_it(tmp_path: Path) -> None:
    turns = [Turn(True, request(1, client_id=b"caf\xe9 \xff")), Turn(False, response(1))]
    made = tables([capture_of(tmp_path, conversation(turns))])
    some: list[TableRow] = [(name, row) for name in ("connections", "exchanges") for row in made[name]]
    [row] = written(tmp_path, some)["exchanges"]
    assert row["client_id"] == "caf\\xe9 \\xff"
    assert '"client_id":"caf\\\\xe9 \\\\xff"' in row["request"]


def test_names_of_headers_that_are_not_utf_8_are_kept(tmp_path: Path) -> None:
    key = b"\xfe".decode("utf-8", "surrogateescape")
    record = Record(1, 2, None, b"v", [RecordHeader(key, b"\xff")])
    [row] = written(tmp_path, [("records", record_rows(CarriedRecords("orders", 0, [record], 1), WHERE, kept=True))])[
        "records"
    ]
    assert row["headers"] == [{"key": "\\xfe", "value": b"\xff"}]


@pytest.mark.parametrize("number", [1 << 63, -(1 << 63) - 1])
def test_times_and_offsets_that_no_column_holds_are_null(tmp_path: Path, number: int) -> None:
    """Damaged batches have them: a base near the end, and a delta."""
    record = Record(number, number, None, None, [])
    [row] = written(
        tmp_path, [("records", record_rows(CarriedRecords("orders", 0, [record], number), WHERE, kept=True))]
    )["records"]
    assert (row["offset"], row["timestamp_ms"], row["topic"]) == (None, None, "orders")


def test_what_a_part_left_out_goes_beside_its_files(tmp_path: Path) -> None:
    tally = CaptureTally(other_connections=Counter(TLS=3))
    [found] = write_rows([(TALLIES, {"tally": pickle.dumps(tally)})], f"file://{tmp_path}")
    assert (found.table, found.rows) == (TALLIES, 0)
    assert pickle.loads(found.tally or b"") == tally
    assert StagedFile(*found.batch.to_pylist()[0].values()) == found
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
        record_rows(batch, WHERE | {"api": "Produce", "packet": at}, kept=kept) for at, batch in enumerate(batches)
    ]
    found = written(tmp_path, [("records", each) for each in together])["records"]
    expected = [with_headers(row) for each in together for row in each.rows]
    assert [{name: row[name] for name in one} for row, one in zip(found, expected, strict=True)] == expected
    assert len(found) == 9
