"""The order in which rows are examined where a capture is read in pieces: cross-message findings depend on it.

A row waits for those of its connection that begin before it and may still get a response. No row waits forever: a
request is overdue when `MAX_OVERTAKES` requests behind it have a response, as brokers answer in order, when its
connection was closed `CLOSED_FOR_NS` ago, or after `MAX_WAIT_NS`; it is then examined as one without a response.

Invariant: where brokers answer in order, and none of them later than that, each connection of a capture is examined in
the order in which reading the whole does it, wherever pieces end.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.findings.framework.recurrence import SECOND
from dissector.index.exchange_table import NO_FRAME
from dissector.index.indexer import Indexer

MAX_OVERTAKES: Final = 100
CLOSED_FOR_NS: Final = 10 * SECOND
"""By then, retransmissions have arrived."""
MAX_WAIT_NS: Final = 600 * SECOND
"""In the time of the capture."""


class ExaminationQueue(NamedTuple):
    """What becomes of rows that were not examined yet."""

    ready: Int64
    """Those to examine now, in order."""
    overdue: Int64
    """Of these, those that may still get a response."""
    pending: Int64
    """All others."""


def examination_queue(session: Indexer, rows: Int64, complete: Bool, now_ns: int, most: int) -> ExaminationQueue:
    """Sort rows into the queue; to `complete` ones nothing is added. At most `most` wait."""
    if complete.all():
        return ExaminationQueue(in_start_order(session, rows), rows[:0], rows[:0])
    table, times = session.table, session.frames.time_ns.values
    connection, request = table.connection.values[rows], table.request.values[rows]
    order = np.lexsort((*_start(session, rows), connection))
    group = np.cumsum(np.diff(connection[order], prepend=-1) != 0)
    is_open = (~complete & (request != NO_FRAME))[order]
    is_open[is_open] = times[request[order][is_open]] > now_ns - MAX_WAIT_NS
    has_response = (request != NO_FRAME) & (table.response.values[rows] != NO_FRAME)
    is_open &= _count_behind(has_response[order], group) < MAX_OVERTAKES
    is_open[is_open] = ~session.is_closed(rows[order][is_open], now_ns - CLOSED_FOR_NS)
    blocked = np.zeros(len(rows), np.bool_)
    blocked[order] = _any_upto(is_open, group)
    pending = in_start_order(session, rows[blocked])
    pending = pending[max(0, len(pending) - most) :]
    ready = ~np.isin(rows, pending)
    return ExaminationQueue(in_start_order(session, rows[ready]), rows[ready & ~complete], pending)


def in_start_order(session: Indexer, rows: Int64) -> Int64:
    """Rows in the order in which they begin."""
    return rows[np.lexsort(_start(session, rows))]


def _start(session: Indexer, rows: Int64) -> tuple[Int64, Int64]:
    """Sort keys of where rows begin: the stream offset of their first byte, and its packet, which counts more."""
    request, response = session.table.request.values[rows], session.table.response.values[rows]
    first = np.where(request == NO_FRAME, response, request)
    start = np.zeros(len(rows), np.int64)
    start[first != NO_FRAME] = session.frames.start.values[first[first != NO_FRAME]]
    return start, session.table.packet.values[rows]


def _count_behind(those: Bool, group: Int64) -> Int64:
    """How many of `those` come behind each in its group."""
    so_far = np.cumsum(those)
    last = np.searchsorted(group, group, side="right") - 1
    behind: Int64 = so_far[last] - so_far
    return behind


def _any_upto(those: Bool, group: Int64) -> Bool:
    """Whether one of `those` is in the group up to each."""
    before = np.concatenate([[0], np.cumsum(those)])
    any_upto: Bool = before[1:] > before[np.searchsorted(group, group)]
    return any_upto
