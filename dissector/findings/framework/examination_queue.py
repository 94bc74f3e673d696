"""Rows in the order in which they begin, where a capture comes in portions: what several rows tell depends on it.

A row waits for those of its connection that begin before it and may still be answered. What waits for ever holds
nothing for ever: a request is passed when `PASSED` others behind it were answered, as servers answer in order, when its
connection was closed `CLOSED_NS` ago, or when `PATIENCE_NS` have gone by; it counts as one without an answer then.

Invariant: a capture whose servers answer in order, and none of them later than that, is examined connection by
connection in the order in which reading the whole does it, wherever portions end.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.findings.framework.recurrence import SECOND
from dissector.index.exchange_table import NO_FRAME
from dissector.index.indexer import Indexer

PASSED: Final = 100
CLOSED_NS: Final = 10 * SECOND
"""What TCP sends again has come by then."""
PATIENCE_NS: Final = 600 * SECOND
"""Of the capture's time, likewise."""


class Turns(NamedTuple):
    """What becomes of rows that were not examined yet."""

    ready: Int64
    """Those that are examined now, in order."""
    passed: Int64
    """Of these, those that may still be answered."""
    waiting: Int64
    """All others."""


def turns(session: Indexer, rows: Int64, complete: Bool, now_ns: int, most: int) -> Turns:
    """Who of these rows is next; `complete` are those to which nothing is added. No more than `most` wait."""
    if complete.all():
        return Turns(in_order(session, rows), rows[:0], rows[:0])
    table, times = session.table, session.frames.time_ns.values
    connection, request = table.connection.values[rows], table.request.values[rows]
    order = np.lexsort((*_place(session, rows), connection))
    group = np.cumsum(np.diff(connection[order], prepend=-1) != 0)
    is_open = (~complete & (request != NO_FRAME))[order]
    is_open[is_open] = times[request[order][is_open]] > now_ns - PATIENCE_NS
    answered = (request != NO_FRAME) & (table.response.values[rows] != NO_FRAME)
    is_open &= _behind(answered[order], group) < PASSED
    is_open[is_open] = ~session.is_closed(rows[order][is_open], now_ns - CLOSED_NS)
    held = np.zeros(len(rows), np.bool_)
    held[order] = _any_upto(is_open, group)
    waiting = in_order(session, rows[held])
    waiting = waiting[max(0, len(waiting) - most) :]
    ready = ~np.isin(rows, waiting)
    return Turns(in_order(session, rows[ready]), rows[ready & ~complete], waiting)


def in_order(session: Indexer, rows: Int64) -> Int64:
    """Rows in the order in which they begin."""
    return rows[np.lexsort(_place(session, rows))]


def _place(session: Indexer, rows: Int64) -> tuple[Int64, Int64]:
    """Where rows begin: the stream offset of their first byte, and its packet, which comes first."""
    request, response = session.table.request.values[rows], session.table.response.values[rows]
    first = np.where(request == NO_FRAME, response, request)
    start = np.zeros(len(rows), np.int64)
    start[first != NO_FRAME] = session.frames.start.values[first[first != NO_FRAME]]
    return start, session.table.packet.values[rows]


def _behind(those: Bool, group: Int64) -> Int64:
    """How many of `those` stand behind each in its group."""
    so_far = np.cumsum(those)
    last = np.searchsorted(group, group, side="right") - 1
    behind: Int64 = so_far[last] - so_far
    return behind


def _any_upto(those: Bool, group: Int64) -> Bool:
    """Whether there is one of `those` in the group up to there."""
    before = np.concatenate([[0], np.cumsum(those)])
    any_upto: Bool = before[1:] > before[np.searchsorted(group, group)]
    return any_upto
