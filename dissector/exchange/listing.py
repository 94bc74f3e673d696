"""Row fields of many rows at once, from the index: what `show --fields` prints without decoding frames.

Invariant: a column has what `RowField.from_exchange` gives for each row: a property test. The few rows for which the
index alone can't say (responses without a request, connections of another protocol) are decoded one by one.
"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.index_rows import IndexRows, RowValues
from dissector.exchange.model import Exchange
from dissector.exchange.row_fields import ROW_FIELDS, RowField, Value, joined
from dissector.index.indexer import Indexer


class Listing:
    """Columns of the index of one capture."""

    def __init__(self, indexer: Indexer, decoder: ExchangeDecoder) -> None:
        self._indexer = indexer
        self._decoder = decoder

    def columns(self, names: Sequence[str], numbers: range | Int64) -> list[list[Value]]:
        """A column for each name of an indexed row field, with these rows: a range, or numbers from 0."""
        rows = IndexRows(self._indexer, self._decoder, numbers)
        decode = cache(lambda at: self._decoder.exchange(int(numbers[at])))
        return [_column(ROW_FIELDS[name], rows, decode) for name in names]


def _column(field: RowField, rows: IndexRows, decode: Callable[[int], Exchange]) -> list[Value]:
    """What is printed of a field for each row; `decode` gives the exchange of an unclear row, by its place."""
    columns = [column(rows) for column in field.from_index]
    if len(columns) == 1:
        values = _values(columns[0], field)
    else:
        values = [joined(cells) for cells in zip(*(_values(column, field) for column in columns), strict=True)]
    unclear = _unclear(columns)
    if unclear is not None:
        for at in np.flatnonzero(unclear).tolist():
            values[at] = field.from_exchange(decode(at))
    return values


def _unclear(columns: Sequence[RowValues]) -> Bool | None:
    """The rows for which any of the columns can't say."""
    flags = [column.unclear for column in columns if column.unclear is not None]
    return np.logical_or.reduce(flags) if flags else None


def _values(column: RowValues, field: RowField) -> list[Value]:
    """What is printed for each row."""
    show = column.texts or field.show
    if show is None:
        return _where(column.values, column.present)
    distinct, inverse = np.unique(column.values, return_inverse=True)
    texts = np.empty(len(distinct), object)
    texts[:] = [show(number) for number in distinct.tolist()]
    shown = texts[inverse]
    shown[~column.present] = None
    return list(shown.tolist())


def _where(values: Int64, present: Bool) -> list[Value]:
    """The values, None for a row without one."""
    if present.all():
        return list(values.tolist())
    found = values.astype(object)
    found[~present] = None
    return list(found.tolist())
