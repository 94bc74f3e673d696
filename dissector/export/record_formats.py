"""Records in each format: lines of text, JSON lines, CSV, Parquet, the values alone.

A new format is an entry of `RecordFormat` and a function. Command and screen write by the same. Columns are named as
``offset,key,value.order.id,headers.traceparent,api,client_id``: fields of records with or without ``record.`` in front,
then row fields of the exchange.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from dissector.analysis.record_list import CarriedRecord
from dissector.capture_session import Capture
from dissector.core.json_text import dumps
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.export.table_cells import TableForm, as_csv, as_tabs
from dissector.records.record import ExchangeRecord
from dissector.records.record_text import (
    cell_of,
    headers_text,
    offset_text,
    place_text,
    record_object,
    time_words,
    value_text,
)

_PREFIX: Final = "record."
WHOLE: Final = 1 << 20
"""Characters of a cell, at most."""
_TEXTS: Final[dict[str, Callable[[ExchangeRecord], object]]] = {
    "offset": offset_text,
    "timestamp": lambda it: time_words(it.timestamp),
    "key": lambda it: None if it.key is None else value_text(it.opened_key, WHOLE),
    "value": lambda it: None if it.value is None else value_text(it.opened_value, WHOLE),
    "headers": lambda it: headers_text(it, WHOLE),
}
"""Fields that have a text of their own."""
_VALUES: Final[dict[str, Callable[[ExchangeRecord], object]]] = {
    "key": lambda it: it.opened_key.value,
    "value": lambda it: it.opened_value.value,
    "headers": lambda it: dict(it.headers),
}


class UnknownColumnError(ValueError):
    """A name that is no column. The message is one plain line."""


class RecordColumn(NamedTuple):
    """A column."""

    name: str
    values: Callable[[Capture, Sequence[CarriedRecord]], list[object]]
    """Values for programs."""
    cells: Callable[[Capture, Sequence[CarriedRecord]], list[object]]
    """Text for tables."""


def named_columns(names: Sequence[str]) -> list[RecordColumn]:
    """Return the columns of names. Raises `UnknownColumnError`."""
    return [_column(name) for name in names]


def _column(name: str) -> RecordColumn:
    from dissector.core.suggestions import nearest
    from dissector.filter.record_fields import RECORD_FIELDS, record_field

    short = name.removeprefix(_PREFIX)
    field = record_field(_PREFIX + short)
    if field is not None:
        values_of = field.values

        def value(record: ExchangeRecord) -> object:
            read = _VALUES.get(short)
            if read is not None:
                return read(record)
            found = list(values_of(record))
            is_header = short.startswith("headers.")
            return found[0] if len(found) == 1 or (found and is_header) else found or None

        def cell(record: ExchangeRecord) -> object:
            text = _TEXTS.get(short)
            return cell_of(value(record)) if text is None else text(record)

        return RecordColumn(
            name,
            lambda _, some: [value(each.record) for each in some],
            lambda _, some: [cell(each.record) for each in some],
        )
    if name in ROW_FIELDS:
        return RecordColumn(name, lambda capture, some: _of_rows(capture, name, some),
                            lambda capture, some: list(map(cell_of, _of_rows(capture, name, some))))  # fmt: skip
    known = [*(each.removeprefix(_PREFIX) for each in RECORD_FIELDS), *ROW_FIELDS]
    near = nearest(name, known)
    raise UnknownColumnError(f"--fields {name}: no such field" + (f"; did you mean {', '.join(near)}" if near else ""))


def _of_rows(capture: Capture, name: str, some: Sequence[CarriedRecord]) -> list[object]:
    """Return a row field of the exchanges of records."""
    rows = np.unique(np.array([each.row for each in some], np.int64))
    if ROW_FIELDS[name].is_indexed:
        [values] = capture.index.columns([name], rows)
    else:
        values = [ROW_FIELDS[name].from_exchange(exchange) for exchange in capture.at(rows)]
    known = dict(zip(rows.tolist(), values, strict=True))
    return [known[each.row] for each in some]


TOGETHER: Final = 1 << 10
"""Records of one piece, at most."""
BYTES_TOGETHER: Final = 8 << 20
"""Bytes of keys and values in one piece, unless one record has more."""
FIRST: Final = 16
"""Records of the first piece, so that it comes at once; each next one is twice as large."""
_EXCHANGE_FIELDS: Final = ("number", "api", "client_id")
"""What JSON says of the exchange of a record."""
_WHOLE: Final = 1 << 20
"""Characters of a value on a line."""


@dataclass(frozen=True)
class RecordWriting:
    """How records are written."""

    names: tuple[str, ...] = ()
    """Columns, in place of whole records."""
    cells: TableForm = as_csv


Pieces = Iterator[bytes]
Write = Callable[[Capture, Iterator[CarriedRecord], RecordWriting], Pieces]


def pieces_of(records: Iterator[CarriedRecord]) -> Iterator[list[CarriedRecord]]:
    """Yield records, some at a time: fewer where they are large."""
    size, room, some = FIRST, BYTES_TOGETHER, list[CarriedRecord]()
    for found in records:
        some.append(found)
        room -= len(found.record.key or b"") + len(found.record.value or b"")
        if len(some) >= size or room < 0:
            yield some
            size, room, some = min(2 * size, TOGETHER), BYTES_TOGETHER, []
    if some:
        yield some


def _text(capture: Capture, records: Iterator[CarriedRecord], writing: RecordWriting) -> Pieces:
    if writing.names:
        yield from _table(capture, records, named_columns(writing.names), as_tabs)
        return
    for some in pieces_of(records):
        yield "".join(map(_line, some)).encode()


def _line(found: CarriedRecord) -> str:
    record = found.record
    headers = headers_text(record)
    parts = (
        place_text(record), time_words(record.timestamp), value_text(record.opened_key),
        value_text(record.opened_value, _WHOLE), f"[{headers}]" if headers else "",
    )  # fmt: skip
    return " ".join(part for part in parts if part) + "\n"


def _json(capture: Capture, records: Iterator[CarriedRecord], writing: RecordWriting) -> Pieces:
    if writing.names:
        columns = named_columns(writing.names)
        for some in pieces_of(records):
            values = [column.values(capture, some) for column in columns]
            lines = (dict(zip(writing.names, cells, strict=True)) for cells in zip(*values, strict=True))
            yield b"".join(dumps(line) + b"\n" for line in lines)
        return
    for some in pieces_of(records):
        rows = np.array([found.row for found in some], np.int64)
        of_rows = np.unique(rows)
        known = dict(
            zip(of_rows.tolist(), zip(*capture.index.columns(_EXCHANGE_FIELDS, of_rows), strict=True), strict=True)
        )  # fmt: skip
        yield b"".join(dumps(_object(found, known[found.row])) + b"\n" for found in some)


def _object(found: CarriedRecord, exchange: Sequence[object]) -> dict[str, Any]:
    number, api, client_id = exchange
    carried = {"number": number, "api": api} | ({"client_id": client_id} if client_id is not None else {})
    return record_object(found.record) | {"produced": found.record.is_produced, "exchange": carried}


def _csv(capture: Capture, records: Iterator[CarriedRecord], writing: RecordWriting) -> Pieces:
    names = writing.names or TABLE
    yield (",".join(_quoted(name) for name in names) + "\n").encode()
    yield from _table(capture, records, named_columns(names), writing.cells)


TABLE: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
"""The columns of CSV by default."""


def _quoted(name: str) -> str:
    return f'"{name}"' if set(name) & {",", '"', "\n"} else name


def _table(
    capture: Capture, records: Iterator[CarriedRecord], columns: Sequence[RecordColumn], cells: TableForm
) -> Pieces:
    for some in pieces_of(records):
        yield cells([column.cells(capture, some) for column in columns])


def _raw(_capture: Capture, records: Iterator[CarriedRecord], _writing: RecordWriting) -> Pieces:
    for some in pieces_of(records):
        yield b"".join(part for found in some for part in (found.record.value or b"", b"\n"))


def _parquet(capture: Capture, records: Iterator[CarriedRecord], _writing: RecordWriting) -> Pieces:
    from dissector.export.record_parquet import parquet_pieces

    return parquet_pieces(capture, records)


@dataclass(frozen=True)
class RecordFormatEntry:
    """A format: its name on the screen, what it is, the suffix of a file, and what writes it."""

    label: str
    description: str
    suffix: str
    write: Write
    takes_names: bool = False
    is_text: bool = True
    """Whether it may go to a terminal."""


class RecordFormat(StrEnum):
    """Formats of records."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    RAW = "raw"

    @property
    def entry(self) -> RecordFormatEntry:
        """What is known of the format."""
        return _ENTRIES[self]


_ENTRIES: Final = MappingProxyType({
    RecordFormat.TEXT: RecordFormatEntry("Text", "one line per record", ".txt", _text, takes_names=True),
    RecordFormat.JSON: RecordFormatEntry(
        "JSON lines", "one object per record, values decoded", ".jsonl", _json, takes_names=True
    ),
    RecordFormat.CSV: RecordFormatEntry("CSV", "a table for other programs", ".csv", _csv, takes_names=True),
    RecordFormat.PARQUET: RecordFormatEntry(
        "Parquet", "a table with bytes as they are", ".parquet", _parquet, is_text=False
    ),
    RecordFormat.RAW: RecordFormatEntry("Values", "as they are, a line end after each", ".bin", _raw, is_text=False),
})  # fmt: skip
SUFFIXES: Final = {form.entry.suffix: form for form in RecordFormat} | dict.fromkeys(
    (".json", ".ndjson"), RecordFormat.JSON
)
