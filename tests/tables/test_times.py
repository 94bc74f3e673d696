"""Columns of times have the times of the numbers beside them, and every reader knows them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.tables.arrow_types import all_columns
from dissector.tables.file_statistics import FileStatistics

UNKNOWN = pa.schema([("first_time", pa.timestamp("us", tz="UTC")), ("first_ns", pa.int64())])
SCHEMA = pa.schema([
    ("time", pa.timestamp("us", tz="UTC")), ("time_ns", pa.int64()),
    ("timestamp", pa.timestamp("us", tz="UTC")), ("timestamp_ms", pa.int64()),
])  # fmt: skip
INT64 = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(1_700_000_000_000, 1_800_000_000_000))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows_of(numbers: list[int | None]) -> pa.Table:
    columns = all_columns(SCHEMA, lambda field: pa.array(numbers, field.type))
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@given(st.lists(INT64, max_size=5))
def test_times_are_those_of_the_numbers_beside_them(numbers: list[int | None]) -> None:
    for row, number in zip(rows_of(numbers).to_pylist(), numbers, strict=True):
        if number is None:
            assert row["time"] is row["timestamp"] is None
            continue
        assert abs((row["time"] - EPOCH) // timedelta(microseconds=1) - number / 1000) <= 1
        if row["timestamp"] is None:
            assert not -62_135_596_800_000 <= number <= 253_402_300_799_999, "a year of four digits"
        else:
            assert (row["timestamp"] - EPOCH) / timedelta(milliseconds=1) == number


def test_a_file_without_times_has_none() -> None:
    times, _ = all_columns(UNKNOWN, lambda field: pa.array([0, 1_000, None], field.type))
    assert times.to_pylist() == [None, EPOCH + timedelta(microseconds=1), None]


@given(st.lists(INT64, min_size=1, max_size=5))
def test_bounds_of_times_are_no_narrower_than_the_times(numbers: list[int | None]) -> None:
    statistics = FileStatistics()
    statistics.add(rows_of(numbers))

    found = json.loads(statistics.json())
    for name in ("time", "timestamp"):
        times = [row[name] for row in rows_of(numbers).to_pylist() if row[name] is not None]
        assert (name in found["minValues"]) == bool(times)
        if times:
            low, high = (datetime.fromisoformat(found[each][name]) for each in ("minValues", "maxValues"))
            assert low <= min(times)
            assert high >= min(max(times), datetime.max.replace(microsecond=999_000, tzinfo=UTC))


@pytest.mark.parametrize("name", ["exchanges", "records", "captures", "connections"])
def test_every_reader_knows_the_times(folder: str, name: str) -> None:
    polars = pytest.importorskip("polars", reason="NOT TESTED with polars: it is not installed")
    column, number = ("begin_time", "begin_ns") if name in ("captures", "connections") else ("time", "time_ns")
    uris = deltalake.DeltaTable(str(Path(folder) / name)).file_uris()
    frame = polars.read_parquet(uris)
    assert (frame[column].dt.epoch("us") == frame[number] // 1000).all()
    minutes = duckdb.sql(
        f"SELECT count(DISTINCT date_trunc('minute', {column})) FROM read_parquet($1)", params=[uris]
    ).fetchall()
    assert minutes == [(len(set((frame[number] // 60_000_000_000).to_list())),)]
