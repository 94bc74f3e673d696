"""Row fields of many rows at once, from the index: what `show --fields` prints without decoding frames.

Invariant: a column has what `RowField.from_exchange` gives for each row: a property test. The few rows for which the
index alone can't say (responses without a request, connections of another protocol) are decoded one by one.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.text import duration
from dissector.exchange.decoder import ExchangeDecoder
from dissector.exchange.index_rows import IndexRows, RowValues
from dissector.exchange.model import Exchange, ExchangeRow
from dissector.exchange.row_field import RowField, Value, joined
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.index.indexer import Indexer

EMPTY: Final = 0
NUMBER: Final = 1
TEXT: Final = 2


class Listing:
    """Columns of the index of one capture."""

    def __init__(self, indexer: Indexer, decoder: ExchangeDecoder) -> None:
        self._indexer = indexer
        self._decoder = decoder

    def columns(self, names: Sequence[str], numbers: range | Int64) -> list[list[Value]]:
        """A column for each name of an indexed row field, with these rows: a range, or numbers from 0."""
        return [cells.listed() for cells in self.cells(names, numbers)]

    def cells(self, names: Sequence[str], numbers: range | Int64) -> list["Cells"]:
        """The same, without a Python object for each row."""
        rows = IndexRows(self._indexer, self._decoder, numbers)
        decode = cache(lambda at: self._decoder.exchange(int(numbers[at])))
        return [_column(ROW_FIELDS[name], rows, decode) for name in names]


class Cells(NamedTuple):
    """What is printed of a field for each row."""

    values: Int64
    """Numbers, or the numbers of texts."""
    kinds: UInt8
    """`EMPTY`, `NUMBER` or `TEXT`."""
    texts: list[Value]
    """What is printed for the number of a text."""

    @classmethod
    def of(cls, values: list[Value]) -> "Cells":
        """Return a column of values, one for each row."""
        empty = cls(np.zeros(len(values), np.int64), np.zeros(len(values), np.uint8), [])
        return empty.replaced(range(len(values)), values)

    def replaced(self, rows: Iterable[int], values: Iterable[Value]) -> "Cells":
        """Return the column with other values in some rows."""
        numbers, kinds, texts = self.values.copy(), self.kinds.copy(), self.texts.copy()
        for row, value in zip(rows, values, strict=True):
            kinds[row] = EMPTY if value is None else NUMBER if isinstance(value, int) else TEXT
            if isinstance(value, int):
                numbers[row] = value
            elif value is not None:
                numbers[row] = len(texts)
                texts.append(value)
        return Cells(numbers, kinds, texts)

    def listed(self) -> list[Value]:
        """Return a value for each row."""
        if (self.kinds == NUMBER).all():
            return list(self.values.tolist())
        found = self.values.astype(object)
        found[self.kinds == EMPTY] = None
        is_text = self.kinds == TEXT
        if is_text.any():
            found[is_text] = np.array(self.texts, object)[self.values[is_text]]
        return list(found.tolist())


def _column(field: RowField, rows: IndexRows, decode: Callable[[int], Exchange]) -> Cells:
    """What is printed of a field for each row; `decode` gives the exchange of an unclear row, by its place."""
    columns = [column(rows) for column in field.from_index]
    cells = [_cells(column, field) for column in columns]
    found = (
        cells[0] if len(cells) == 1 else Cells.of([*map(joined, zip(*(each.listed() for each in cells), strict=True))])
    )
    unclear = _unclear(columns)
    if unclear is not None and unclear.any():
        rows_to_decode = np.flatnonzero(unclear).tolist()
        found = found.replaced(rows_to_decode, [field.from_exchange(decode(at)) for at in rows_to_decode])
    return found


def _unclear(columns: Sequence[RowValues]) -> Bool | None:
    """The rows for which any of the columns can't say."""
    flags = [column.unclear for column in columns if column.unclear is not None]
    return np.logical_or.reduce(flags) if flags else None


def _cells(column: RowValues, field: RowField) -> Cells:
    """What is printed for each row, where the index can say."""
    show = column.texts or field.show
    if show is None:
        return Cells(column.values.astype(np.int64), np.where(column.present, NUMBER, EMPTY).astype(np.uint8), [])
    distinct, numbers = np.unique(column.values, return_inverse=True)
    texts = [show(number) for number in distinct.tolist()]
    is_there = np.array([text is not None for text in texts], np.bool_)
    return Cells(numbers, np.where(column.present & is_there[numbers], TEXT, EMPTY).astype(np.uint8), texts)


def latency_words(row: ExchangeRow) -> str:
    """Return where the time of an exchange went: ``1.0 ms until the response began, 40.0 ms to receive it``; empty
    where each message came at once, and where the parts are not known."""
    sending, wait, receiving = row.request_transfer_ns, row.wait_ns, row.response_transfer_ns
    if wait is None or not (sending or receiving):
        return ""
    words = [f"{duration(sending)} to send the request"] if sending else []
    words.append(f"{duration(wait)} until the response began")
    return ", ".join([*words, *([f"{duration(receiving)} to receive it"] if receiving else [])])
