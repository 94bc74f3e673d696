"""The rows of a capture that fit a filter, in steps so short that a screen can draw between them.

Rows are narrowed on columns of the index first, a stretch at a time, and only what these leave open is decoded.

Invariants:
  * rows come in ascending order, each once; how a range is cut makes no difference;
  * a step decodes for a few hundredths of a second, but for a single row that takes longer;
  * who stops asking stops the work.
"""

from collections.abc import Iterator
from time import perf_counter
from typing import Final, NamedTuple, Protocol

import numpy as np

from dissector.core.arrays import Int64, UInt8
from dissector.exchange.index_rows import IndexRows
from dissector.exchange.model import Exchange
from dissector.filter.column_answers import NO, OPEN, YES
from dissector.filter.compiler import Filter

FIRST: Final = 1 << 10
STRETCH: Final = 1 << 16
"""Rows whose columns are looked at together: few at first, so that something is there at once."""
STEP: Final = 0.02
"""Seconds of decoding between two results."""
PIECE: Final = 1 << 12
"""Rows that are examined together."""
TOGETHER: Final = 64
"""Rows that are looked up at once."""


class SelectedRows(NamedTuple):
    """What a step has found."""

    upto: int
    """All rows before this one have been looked at."""
    rows: Int64
    """Numbers from 0, `(n,)`."""


class SelectableRows(Protocol):
    """What is selected from: a capture."""

    @property
    def start_ns(self) -> int:
        """When it began."""

    def index_rows(self, rows: range | Int64) -> tuple[int, IndexRows]:
        """How many of these rows, which stand first, are none of the index; and columns of the others."""

    def at(self, rows: Int64) -> Iterator[Exchange]:
        """The exchanges of rows, decoded on demand."""

    def examine_messages(self, rows: Int64) -> Iterator[object]:
        """Examine rows in short steps, and keep their findings and errors."""


def select(filter: Filter, capture: SelectableRows, start: int, stop: int) -> Iterator[SelectedRows]:
    """The rows from `start` to before `stop` that fit."""
    stretch = FIRST
    while start < stop:
        end = min(start + stretch, stop)
        answers = narrowed(filter, capture, range(start, end))
        if (answers == OPEN).any():
            yield from _decoded(filter, capture, start, answers)
        else:
            yield SelectedRows(end, start + np.flatnonzero(answers))
        start, stretch = end, min(2 * stretch, STRETCH)


def narrowed(filter: Filter, capture: SelectableRows, rows: range | Int64) -> UInt8:
    """The index's answers for rows in ascending order, `(n,)`: `NO`, `OPEN`, `YES`."""
    entries, columns = capture.index_rows(rows)
    of_index = filter.answers(columns)
    return np.concatenate([np.full(entries, OPEN, np.uint8), of_index]) if entries else of_index


def candidates(filter: Filter, capture: SelectableRows, rows: range) -> Int64:
    """Those of some rows that may fit, by the index alone, `(n,)`."""
    found = [np.zeros(0, np.int64)]
    for start in range(rows.start, rows.stop, STRETCH):
        answers = narrowed(filter, capture, range(start, min(start + STRETCH, rows.stop)))
        found.append(start + np.flatnonzero(answers != NO))
    return np.concatenate(found)


def matching(filter: Filter, capture: SelectableRows, rows: Int64) -> Int64:
    """Which of these rows, in ascending order, fit now: for those that were answered since they were looked at."""
    fitting = [np.zeros(0, np.int64)]
    for start in range(0, len(rows), STRETCH):
        some = rows[start : start + STRETCH]
        answers = narrowed(filter, capture, some)
        doubtful = np.flatnonzero(answers == OPEN)
        if filter.reads_row_summaries and len(doubtful):
            for _ in capture.examine_messages(some[doubtful]):
                pass
            answers[doubtful] = narrowed(filter, capture, some[doubtful])
            doubtful = doubtful[answers[doubtful] == OPEN]
        for at, exchange in zip(doubtful.tolist(), capture.at(some[doubtful]), strict=True):
            answers[at] = YES if filter.matches(exchange, capture.start_ns) else NO
        fitting.append(some[answers == YES])
    return np.concatenate(fitting)


def _decoded(filter: Filter, capture: SelectableRows, start: int, answers: UInt8) -> Iterator[SelectedRows]:
    """The matching rows of a range that has open rows, result by result."""
    doubtful = np.flatnonzero(answers == OPEN)
    reported = 0
    begun = perf_counter()
    for first in range(0, len(doubtful), PIECE):
        some = doubtful[first : first + PIECE]
        if filter.reads_row_summaries:
            for _ in capture.examine_messages(start + some):
                if perf_counter() - begun > STEP:
                    yield SelectedRows(start + reported, np.zeros(0, np.int64))
                    begun = perf_counter()
            answers[some] = narrowed(filter, capture, start + some)
            some = some[answers[some] == OPEN]
        for at, exchange in _together(capture, start, some):
            answers[at] = YES if filter.matches(exchange, capture.start_ns) else NO
            if perf_counter() - begun > STEP:
                yield SelectedRows(start + at + 1, start + reported + np.flatnonzero(answers[reported : at + 1]))
                reported, begun = at + 1, perf_counter()
        upto = int(doubtful[first + PIECE]) if first + PIECE < len(doubtful) else len(answers)
        if perf_counter() - begun > STEP or upto == len(answers):
            yield SelectedRows(start + upto, start + reported + np.flatnonzero(answers[reported:upto]))
            reported, begun = upto, perf_counter()


def _together(capture: SelectableRows, start: int, doubtful: Int64) -> Iterator[tuple[int, Exchange]]:
    """The exchanges of rows of a stretch, with their places in it."""
    for first in range(0, len(doubtful), TOGETHER):
        some = doubtful[first : first + TOGETHER]
        yield from zip(some.tolist(), capture.at(start + some), strict=True)
