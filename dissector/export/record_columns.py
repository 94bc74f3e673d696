"""Columns of records by name: fields of records with or without ``record.`` in front, then row fields of the exchange.

``offset,key,value.order.id,headers.traceparent,api,client_id`` are such names.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.record_list import CarriedRecord
from dissector.capture_session import Capture
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.records.record import ExchangeRecord
from dissector.records.record_text import cell_of, headers_text, offset_text, time_words, value_text

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
    from dissector.filter.errors import nearest
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
