"""Select the rows of a capture that match a filter, in steps so short that a screen can draw between them.

A filter is evaluated on columns of the index first, batch by batch; only open rows are decoded.

Invariants:
  * rows come in ascending order, each once, however a range is split;
  * a step decodes for a few hundredths of a second, except for a single row that takes longer;
  * work is done only as results are consumed.
"""

from collections.abc import Iterator
from time import perf_counter
from typing import Final, NamedTuple, Protocol

import numpy as np

from dissector.core.arrays import Int64, UInt8
from dissector.exchange.index_rows import IndexRows
from dissector.exchange.model import Exchange
from dissector.filter.column_evaluation import NO, OPEN, YES
from dissector.filter.compiler import Filter

FIRST_BATCH: Final = 1 << 10
LARGEST_BATCH: Final = 1 << 16
"""Rows whose columns are evaluated together: few at first, so that results appear at once."""
STEP: Final = 0.02
"""Seconds of decoding between two results."""
EXAMINED_TOGETHER: Final = 1 << 12
"""Rows that are examined together."""
DECODED_TOGETHER: Final = 64
"""Rows that are decoded together."""


class SelectedRows(NamedTuple):
    """The result of a step."""

    upto: int
    """All rows before this one are decided."""
    rows: Int64
    """Rows that match, numbered from 0, `(n,)`."""


class SelectableRows(Protocol):
    """A capture, as far as selecting rows needs it."""

    @property
    def start_ns(self) -> int:
        """Start of the capture, nanoseconds since 1970."""

    def index_rows(self, rows: range | Int64) -> tuple[int, IndexRows]:
        """Return how many of these rows, which come first, are not in the index, and columns of the others."""

    def at(self, rows: Int64) -> Iterator[Exchange]:
        """Decode rows on demand."""

    def examine_messages(self, rows: Int64) -> Iterator[object]:
        """Examine rows in short steps, and keep their findings and errors."""


def select(filter: Filter, capture: SelectableRows, start: int, stop: int) -> Iterator[SelectedRows]:
    """Yield the rows from `start` to before `stop` that match."""
    batch = FIRST_BATCH
    while start < stop:
        end = min(start + batch, stop)
        results = evaluate_index(filter, capture, range(start, end))
        if (results == OPEN).any():
            yield from _select_decoded(filter, capture, start, results)
        else:
            yield SelectedRows(end, start + np.flatnonzero(results))
        start, batch = end, min(2 * batch, LARGEST_BATCH)


def evaluate_index(filter: Filter, capture: SelectableRows, rows: range | Int64) -> UInt8:
    """Evaluate a filter on the index for rows in ascending order, `(n,)`: `NO`, `OPEN`, `YES`."""
    entries, columns = capture.index_rows(rows)
    of_index = filter.evaluate(columns)
    return np.concatenate([np.full(entries, OPEN, np.uint8), of_index]) if entries else of_index


def candidates(filter: Filter, capture: SelectableRows, rows: range) -> Int64:
    """Return those rows that may match, by the index alone, `(n,)`."""
    found = [np.zeros(0, np.int64)]
    for start in range(rows.start, rows.stop, LARGEST_BATCH):
        results = evaluate_index(filter, capture, range(start, min(start + LARGEST_BATCH, rows.stop)))
        found.append(start + np.flatnonzero(results != NO))
    return np.concatenate(found)


def matching(filter: Filter, capture: SelectableRows, rows: Int64) -> Int64:
    """Return which of these rows, in ascending order, match now, `(n,)`: for rows that were completed since."""
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(rows), LARGEST_BATCH):
        some = rows[start : start + LARGEST_BATCH]
        results = evaluate_index(filter, capture, some)
        undecided = np.flatnonzero(results == OPEN)
        if filter.reads_row_summaries and len(undecided):
            for _ in capture.examine_messages(some[undecided]):
                pass
            results[undecided] = evaluate_index(filter, capture, some[undecided])
            undecided = undecided[results[undecided] == OPEN]
        for at, exchange in zip(undecided.tolist(), capture.at(some[undecided]), strict=True):
            results[at] = YES if filter.matches(exchange, capture.start_ns) else NO
        found.append(some[results == YES])
    return np.concatenate(found)


def _select_decoded(filter: Filter, capture: SelectableRows, start: int, results: UInt8) -> Iterator[SelectedRows]:
    """Yield the matching rows of a range that has open rows, step by step."""
    undecided = np.flatnonzero(results == OPEN)
    reported = 0
    step_start = perf_counter()
    for first in range(0, len(undecided), EXAMINED_TOGETHER):
        some = undecided[first : first + EXAMINED_TOGETHER]
        if filter.reads_row_summaries:
            for _ in capture.examine_messages(start + some):
                if perf_counter() - step_start > STEP:
                    yield SelectedRows(start + reported, np.zeros(0, np.int64))
                    step_start = perf_counter()
            results[some] = evaluate_index(filter, capture, start + some)
            some = some[results[some] == OPEN]
        for at, exchange in _decoded(capture, start, some):
            results[at] = YES if filter.matches(exchange, capture.start_ns) else NO
            if perf_counter() - step_start > STEP:
                yield SelectedRows(start + at + 1, start + reported + np.flatnonzero(results[reported : at + 1]))
                reported, step_start = at + 1, perf_counter()
        upto = int(undecided[first + EXAMINED_TOGETHER]) if first + EXAMINED_TOGETHER < len(undecided) else len(results)
        if perf_counter() - step_start > STEP or upto == len(results):
            yield SelectedRows(start + upto, start + reported + np.flatnonzero(results[reported:upto]))
            reported, step_start = upto, perf_counter()


def _decoded(capture: SelectableRows, start: int, undecided: Int64) -> Iterator[tuple[int, Exchange]]:
    """Yield the exchanges of rows that count from `start`, with these rows."""
    for first in range(0, len(undecided), DECODED_TOGETHER):
        some = undecided[first : first + DECODED_TOGETHER]
        yield from zip(some.tolist(), capture.at(start + some), strict=True)
