"""What the API gives as tables is what `kdissect ingest` writes of the same capture."""

from pathlib import Path
from typing import Any

import pyarrow
import pytest

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")

import dissector
from dissector.api.arrow import TABLES
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from tests.conftest import PCAPS
from tests.pipeline.contents import rows_that_count

Objects = list[dict[str, Any]]
CAPTURE = str(PCAPS / "java-classic.pcapng")
NAMED_OTHERWISE = {"number", "connection"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objects]:
    folder: Path = tmp_path_factory.mktemp("api") / "tables"
    ingest_here([CAPTURE], str(folder), WriteOptions())
    return rows_that_count(folder)


def as_text(rows: Objects, columns: set[str]) -> list[str]:
    return sorted(repr([(name, row[name]) for name in sorted(columns)]) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_columns_are_those_of_tables(written: dict[str, Objects], name: str) -> None:
    with dissector.open(CAPTURE) as capture:
        made = capture.to_arrow(name)
    columns = set(made.column_names) - NAMED_OTHERWISE
    assert columns
    assert [each.name for each in made.schema if pyarrow.types.is_dictionary(each.type)] == []
    assert as_text(made.to_pylist(), columns) == as_text(written[name], columns)


def test_rows_name_their_exchange_and_its_connection() -> None:
    with dissector.open(CAPTURE) as capture:
        exchanges = list(capture)
        rows = capture.to_arrow().to_pylist()
        records = capture.to_arrow("records").to_pylist()
        connections = {each.number: each for each in capture.connections()}
    shown = [(row["number"], row["api"], row["connection"], row["time_ns"]) for row in rows]
    assert shown == [(each.number, each.api, each.connection, each.time_ns) for each in exchanges]
    assert records
    assert all(exchanges[row["number"] - 1].api == row["api"] for row in records)
    assert {row["connection"] for row in rows} <= connections.keys()


def test_a_filter_chooses_rows() -> None:
    with dissector.open(CAPTURE) as capture:
        expected = [each.number for each in capture.exchanges("api == Fetch")]
        assert capture.to_arrow(filter="api == Fetch").column("number").to_pylist() == expected
        assert capture.to_arrow("records", "api == JoinGroup").num_rows == 0
        with pytest.raises(ValueError, match="there are exchanges, records"):
            capture.to_arrow("nothing")


def test_data_frames_have_the_same_rows() -> None:
    pandas = pytest.importorskip("pandas", reason="NOT TESTED with pandas: it is not installed")
    polars = pytest.importorskip("polars", reason="NOT TESTED with polars: it is not installed")
    with dissector.open(CAPTURE) as capture:
        table, frame, other = capture.to_arrow(), capture.to_pandas(), capture.to_polars()
    assert isinstance(frame, pandas.DataFrame)
    assert isinstance(other, polars.DataFrame)
    assert frame["api"].tolist() == other["api"].to_list() == table.column("api").to_pylist()


def test_records_are_those_of_the_table() -> None:
    with dissector.open(CAPTURE) as capture:
        rows = capture.to_arrow("records").to_pylist()
        found = list(capture.records())
    one = sorted(
        (each.exchange.number, each.topic, each.partition, each.offset, each.key, each.value) for each in found
    )
    names = ("number", "topic", "partition", "offset", "key", "value")
    assert one == sorted(tuple(row[name] for name in names) for row in rows)
