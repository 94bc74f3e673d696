"""The order in which rows are examined if a capture is read in micro-batches: cross-message findings depend on it.

A row waits for rows of its connection that begin before it and may still get a response. No row waits forever: a
request is overdue when `MAX_OVERTAKES` requests after it have a response, as brokers respond in order; when its
connection was closed `CLOSED_FOR_NS` ago; or after `MAX_WAIT_NS`. It is then examined as one without a response.

Invariant: if brokers respond in order, and before a request is overdue, the rows of a connection are examined in the
same order as if the capture was read at once, wherever micro-batches end.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import is_in
from dissector.core.times import SECOND
from dissector.index.exchange_table import NO_FRAME
from dissector.index.indexer import Indexer

MAX_OVERTAKES: Final = 100
CLOSED_FOR_NS: Final = 10 * SECOND
"""Retransmissions have arrived by then."""
MAX_WAIT_NS: Final = 600 * SECOND
"""Measured in the time of the capture."""


class ExaminationQueue(NamedTuple):
    """Rows not examined yet, by when they are examined."""

    ready: Int64
    """Rows to examine now, in order."""
    overdue: Int64
    """Ready rows that may still get a response."""
    pending: Int64
    """The other rows, which wait."""


def examination_queue(index: Indexer, rows: Int64, complete: Bool, now_ns: int, most: int) -> ExaminationQueue:
    """Return the queue of `rows`; `complete` ones can't change any more. At most `most` rows wait."""
    if complete.all():
        return ExaminationQueue(in_start_order(index, rows), rows[:0], rows[:0])
    table, times = index.table, index.frames.time_ns.values
    connection, request = table.connection.values[rows], table.request.values[rows]
    order = np.lexsort((*_start(index, rows), connection))
    group = np.cumsum(np.diff(connection[order], prepend=-1) != 0)
    is_open = (~complete & (request != NO_FRAME))[order]
    is_open[is_open] = times[request[order][is_open]] > now_ns - MAX_WAIT_NS
    has_response = (request != NO_FRAME) & (table.response.values[rows] != NO_FRAME)
    is_open &= _count_after(has_response[order], group) < MAX_OVERTAKES
    is_open[is_open] = ~index.is_closed(rows[order][is_open], now_ns - CLOSED_FOR_NS)
    blocked = np.zeros(len(rows), np.bool_)
    blocked[order] = _any_up_to(is_open, group)
    pending = in_start_order(index, rows[blocked])
    pending = pending[max(0, len(pending) - most) :]
    ready = ~is_in(rows, pending)
    return ExaminationQueue(in_start_order(index, rows[ready]), rows[ready & ~complete], pending)


def in_start_order(index: Indexer, rows: Int64) -> Int64:
    """Return rows in the order in which they begin."""
    return rows[np.lexsort(_start(index, rows))]


def _start(index: Indexer, rows: Int64) -> tuple[Int64, Int64]:
    """Return sort keys for `np.lexsort`: stream offset and, more significant, packet of the rows' first bytes."""
    request, response = index.table.request.values[rows], index.table.response.values[rows]
    first = np.where(request == NO_FRAME, response, request)
    start = np.zeros(len(rows), np.int64)
    start[first != NO_FRAME] = index.frames.start.values[first[first != NO_FRAME]]
    return start, index.table.packet.values[rows]


def _count_after(flags: Bool, group: Int64) -> Int64:
    """Return for each row how many rows with a flag follow it in its group."""
    so_far = np.cumsum(flags)
    last = np.searchsorted(group, group, side="right") - 1
    after: Int64 = so_far[last] - so_far
    return after


def _any_up_to(flags: Bool, group: Int64) -> Bool:
    """Return for each row whether it, or a row before it in its group, has a flag."""
    before = np.concatenate([[0], np.cumsum(flags)])
    any_before: Bool = before[1:] > before[np.searchsorted(group, group)]
    return any_before
