"""Statistics in Delta's log: readers that skip files by them find every row that is there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")
pytest.importorskip("polars", reason="NOT TESTED with polars: it is not installed")

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given
from hypothesis import strategies as st

from dissector.tables.arrow_types import arrow_columns, column
from dissector.tables.data_files import Output, write_rows
from dissector.tables.delta_log import append_facts, create_tables
from dissector.tables.file_statistics import FileStatistics
from dissector.tables.schemas import BY_NAME
from tests.conftest import PCAPS, some_of
from tests.pipeline.without_spark import tables

NAMES = ("java", "trouble-slow", "java-sasl-plain")
Count = Callable[[str, Any], int]
"""How many rows have a value in a column; None for null."""
Reader = Callable[[Path], Count]
"""Opens a table."""


def by_dataset(table: Path) -> Count:
    rows = DeltaTable(table).to_pyarrow_dataset()

    def count(name: str, value: Any) -> int:
        field, of_type = ds.field(name), pa.scalar(value, rows.schema.field(name).type)
        condition = field.is_null() if value is None else field == of_type
        return int(rows.to_table(columns=[name], filter=condition).num_rows)

    return count


def by_polars(table: Path) -> Count:
    rows = pl.scan_delta(str(table))

    def count(name: str, value: Any) -> int:
        condition = pl.col(name).is_null() if value is None else pl.col(name) == value
        return rows.filter(condition).select(name).collect().height

    return count


def by_datafusion(table: Path) -> Count:
    builder = QueryBuilder().register("t", DeltaTable(table))

    def count(name: str, value: Any) -> int:
        words = "IS NULL" if value is None else f"= {_literal(value)}"
        rows = pa.table(builder.execute(f'SELECT count(*) AS n FROM t WHERE "{name}" {words}').read_all())
        return int(rows.column("n")[0].as_py())

    return count


def _literal(value: Any) -> str:
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return str(value) if isinstance(value, int | bool) else "'" + str(value).replace("'", "''") + "'"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three captures, each in files of its own, so that there is something to skip."""
    folder = tmp_path_factory.mktemp("tables")
    create_tables(str(folder))
    for name in NAMES:
        made = tables([PCAPS / f"{name}.pcapng"])
        rows = [(table, row) for table, found in made.items() if table in BY_NAME for row in found]
        append_facts(str(folder), write_rows(rows, Output(str(folder), "_runs/1", 1)))
    return folder


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("reader", some_of([by_dataset, by_polars, by_datafusion], by_polars))
@pytest.mark.parametrize(
    "name", some_of(["connections", "exchanges", "bodies", "records", "findings"], "exchanges", "bodies", "records")
)
def test_every_reader_finds_every_value_and_every_null(written: Path, name: str, reader: Reader) -> None:
    rows, count = DeltaTable(written / name).to_pyarrow_table(), reader(written / name)
    for field in rows.schema:
        if pa.types.is_nested(field.type):
            continue
        values = rows.column(field.name).to_pylist()
        for value in {values[0], values[len(values) // 2], values[-1], None}:
            wanted = sum(each == value if value is not None else each is None for each in values)
            assert count(field.name, value) == wanted, (field.name, value)


@pytest.mark.long
def test_files_that_can_t_have_a_capture_are_skipped(written: Path) -> None:
    table = DeltaTable(written / "exchanges")
    captures = set(table.to_pyarrow_table(columns=["capture"]).column(0).to_pylist())
    assert len(captures) == len(NAMES)
    for capture in captures:
        fragments = list(table.to_pyarrow_dataset().get_fragments(ds.field("capture") == capture))
        assert len(fragments) == 1


TEXTS = st.text(st.characters(codec="utf-8"), max_size=50)


@given(st.lists(st.tuples(TEXTS | st.none(), st.integers(-(1 << 63), (1 << 63) - 1) | st.none()), max_size=8))
def test_bounds_hold_all_values_whatever_they_are(rows: list[tuple[str | None, int | None]]) -> None:
    schema = arrow_columns("a STRING, b STRUCT<n: BIGINT, s: STRING>")
    cells = [[text for text, _ in rows], [{"n": number, "s": text} for text, number in rows]]
    statistics = FileStatistics()
    arrays = [column(each, field.type) for each, field in zip(cells, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    for at in range(table.num_rows):
        statistics.add(table.slice(at, 1))
    found = json.loads(statistics.json())
    texts = [text.encode() for text, _ in rows if text is not None]
    numbers = [number for _, number in rows if number is not None]
    assert found["numRecords"] == len(rows)
    if rows:
        assert found["nullCount"] == {
            "a": len(rows) - len(texts), "b": {"n": len(rows) - len(numbers), "s": len(rows) - len(texts)}
        }  # fmt: skip
    if texts:
        assert found["minValues"]["a"].encode() <= min(texts)
        assert found["maxValues"]["a"].encode() >= max(texts)
        assert found["minValues"]["b"]["s"] == found["minValues"]["a"]
    if numbers:
        assert (found["minValues"]["b"]["n"], found["maxValues"]["b"]["n"]) == (min(numbers), max(numbers))
