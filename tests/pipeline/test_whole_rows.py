"""Rows by columns are those that are made one by one, of every capture and of damaged ones."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dissector.core.arrays import Int64
from dissector.exchange.record_columns import CarriedColumns
from dissector.pipeline import whole_rows
from dissector.pipeline.carried_columns import Columns, record_columns
from dissector.pipeline.whole_rows import Made, WholeRowBuilder
from dissector.tables.arrow_types import arrow_schema
from dissector.tables.schemas import BY_NAME, FACT_TABLES
from tests.conftest import PCAPS
from tests.pipeline.without_spark import tables


def none_of(*_: object) -> Iterator[Made]:
    return iter(())


def as_written(table: str, rows: list[dict[str, object]]) -> Counter[str]:
    """Rows as they are in a file."""
    written = pa.Table.from_pylist(rows, arrow_schema(BY_NAME[table]))
    return Counter(map(repr, written.to_pylist()))


def assert_same(files: list[Path], parts: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compare both ways; return how many rows came by columns."""
    by_columns = 0
    make = WholeRowBuilder.rows

    def counted(builder: WholeRowBuilder, chosen: Int64) -> Iterator[Made]:
        nonlocal by_columns
        for made in make(builder, chosen):
            by_columns += len(made.rows)
            yield made

    monkeypatch.setattr(WholeRowBuilder, "rows", counted)
    found = tables(files, parts=parts)
    monkeypatch.setattr(WholeRowBuilder, "rows", none_of)
    expected = tables(files, parts=parts)
    for table in FACT_TABLES:
        assert as_written(table, found[table]) == as_written(table, expected[table]), table
    return by_columns


@pytest.mark.parametrize("parts", [1, 3])
def test_rows_of_a_capture(bundled: Path, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same([bundled], parts, monkeypatch)


def test_most_rows_come_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PCAPS / "librdkafka-pipelined.pcapng"
    by_columns = assert_same([path], 1, monkeypatch)
    assert by_columns > 0.8 * len(tables([path])["exchanges"])


def test_records_that_columns_cannot_hold_are_made_one_by_one_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    path = PCAPS / "librdkafka-pipelined.pcapng"
    whole = assert_same([path], 1, monkeypatch)
    monkeypatch.undo()
    refused: set[int] = set()

    def refusing(carried: CarriedColumns) -> Columns:
        if not refused:
            refused.add(int(carried.row[-1]))
        if refused & set(carried.row.tolist()):
            raise pa.ArrowInvalid
        return record_columns(carried)

    monkeypatch.setattr(whole_rows, "record_columns", refusing)
    assert whole / 2 < assert_same([path], 1, monkeypatch) < whole
