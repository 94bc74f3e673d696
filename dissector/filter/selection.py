"""Select the rows of a capture that match a filter, in steps so short that a screen can draw between them.

A filter is evaluated on columns of the index first, batch by batch; rows that are open then on columns of their
messages; and only those that are still open are decoded.

Invariants:
  * rows come in ascending order, each once, however a range is split;
  * a step decodes for a few hundredths of a second, except for a single row that takes longer;
  * work is done only as results are consumed.
"""

from collections.abc import Iterator
from time import perf_counter
from typing import Final, NamedTuple, Protocol

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
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


class Candidates(NamedTuple):
    """Rows that may match, ascending."""

    rows: Int64
    is_sure: Bool
    """Which of them do match."""


class _RowColumns(Protocol):
    def field_columns(self, rows: range | Int64, *, reads_messages: bool = False) -> tuple[int, IndexRows]:
        """Return how many of these rows, which come first, are not in the index, and columns of the others."""


class _RowFindings(Protocol):
    def examine_messages(self, rows: Int64) -> Iterator[object]:
        """Examine rows in short steps, and keep their findings and errors."""


class SelectableRows(Protocol):
    """A capture, as far as selecting rows needs it."""

    @property
    def start_ns(self) -> int:
        """Start of the capture, nanoseconds since 1970."""

    @property
    def index(self) -> _RowColumns:
        """Its rows as columns."""

    @property
    def findings(self) -> _RowFindings:
        """What its messages are found to have."""

    def at(self, rows: Int64) -> Iterator[Exchange]:
        """Decode rows on demand."""


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


def evaluate_index(
    filter: Filter, capture: SelectableRows, rows: range | Int64, *, reads_messages: bool = False
) -> UInt8:
    """Evaluate a filter on the index for rows in ascending order, `(n,)`: `NO`, `OPEN`, `YES`; and on columns of their
    messages too if that is wanted."""
    entries, columns = capture.index.field_columns(rows, reads_messages=reads_messages)
    of_index = filter.evaluate(columns)
    return np.concatenate([np.full(entries, OPEN, np.uint8), of_index]) if entries else of_index


def candidates(filter: Filter, capture: SelectableRows, rows: range) -> Candidates:
    """Return those rows that may match, by columns of the index and of messages."""
    found, sure = [np.zeros(0, np.int64)], [np.zeros(0, np.bool_)]
    for start in range(rows.start, rows.stop, LARGEST_BATCH):
        some = np.arange(start, min(start + LARGEST_BATCH, rows.stop))
        results = evaluate_index(filter, capture, range(start, start + len(some)))
        _evaluate_messages(filter, capture, some, results, np.flatnonzero(results == OPEN))
        found.append(some[results != NO])
        sure.append(results[results != NO] == YES)
    return Candidates(np.concatenate(found), np.concatenate(sure))


def matching(filter: Filter, capture: SelectableRows, rows: Int64) -> Int64:
    """Return which of these rows, in ascending order, match now, `(n,)`: for rows that were completed since."""
    found = [np.zeros(0, np.int64)]
    for start in range(0, len(rows), LARGEST_BATCH):
        some = rows[start : start + LARGEST_BATCH]
        results = evaluate_index(filter, capture, some)
        undecided = _evaluate_messages(filter, capture, some, results, np.flatnonzero(results == OPEN))
        if filter.reads_findings and len(undecided):
            for _ in capture.findings.examine_messages(some[undecided]):
                pass
            undecided = _evaluate_messages(filter, capture, some, results, undecided)
        for at, exchange in zip(undecided.tolist(), capture.at(some[undecided]), strict=True):
            results[at] = YES if filter.matches(exchange, capture.start_ns) else NO
        found.append(some[results == YES])
    return np.concatenate(found)


def _select_decoded(filter: Filter, capture: SelectableRows, start: int, results: UInt8) -> Iterator[SelectedRows]:
    """Yield the matching rows of a range that has open rows, step by step."""
    undecided = np.flatnonzero(results == OPEN)
    rows = start + np.arange(len(results))
    reported = 0
    step_start = perf_counter()
    for first in range(0, len(undecided), EXAMINED_TOGETHER):
        some = undecided[first : first + EXAMINED_TOGETHER]
        some = _evaluate_messages(filter, capture, rows, results, some)
        if filter.reads_findings:
            for _ in capture.findings.examine_messages(start + some):
                if perf_counter() - step_start > STEP:
                    yield SelectedRows(start + reported, np.zeros(0, np.int64))
                    step_start = perf_counter()
            some = _evaluate_messages(filter, capture, rows, results, some)
        for at, exchange in _decoded(capture, start, some):
            results[at] = YES if filter.matches(exchange, capture.start_ns) else NO
            if perf_counter() - step_start > STEP:
                yield SelectedRows(start + at + 1, start + reported + np.flatnonzero(results[reported : at + 1]))
                reported, step_start = at + 1, perf_counter()
        upto = int(undecided[first + EXAMINED_TOGETHER]) if first + EXAMINED_TOGETHER < len(undecided) else len(results)
        if perf_counter() - step_start > STEP or upto == len(results):
            yield SelectedRows(start + upto, start + reported + np.flatnonzero(results[reported:upto]))
            reported, step_start = upto, perf_counter()


def _evaluate_messages(filter: Filter, capture: SelectableRows, rows: Int64, results: UInt8, undecided: Int64) -> Int64:
    """Evaluate a filter on columns of messages, of the rows at some places; return those that are still open."""
    if len(undecided):
        results[undecided] = evaluate_index(filter, capture, rows[undecided], reads_messages=True)
    still: Int64 = undecided[results[undecided] == OPEN]
    return still


def _decoded(capture: SelectableRows, start: int, undecided: Int64) -> Iterator[tuple[int, Exchange]]:
    """Yield the exchanges of rows that count from `start`, with these rows."""
    for first in range(0, len(undecided), DECODED_TOGETHER):
        some = undecided[first : first + DECODED_TOGETHER]
        yield from zip(some.tolist(), capture.at(start + some), strict=True)
