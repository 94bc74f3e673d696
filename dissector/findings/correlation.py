"""Correlation ids and the order of answers: what a connection's two streams promise each other.

A broker answers the requests of a connection one after the other, in the order in which they came.
"""

from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
from dissector.core.columns import Column
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.finder import Around, RowFinder
from dissector.findings.found import Telling
from dissector.findings.rows import Rows
from dissector.index.exchange_table import NO_FRAME, Flag

REMEMBERED: Final = 65_536
"""Packets of the capture for which a request without an answer is taken to wait."""
IN_FLIGHT: Final = 65_536
"""Requests that are remembered while they wait, of all connections: the newest."""


class DuplicateCorrelationId(RowFinder):
    """Two requests in flight under one id."""

    explanation: ClassVar = Explanation(
        "duplicate-correlation-id",
        "Two requests in flight with the same correlation id",
        Severity.ERROR,
        "A client sent a request under the correlation id of another one that still waited for its answer on the same "
        "connection.",
        "The client's counter is shared by threads without care, is reset too early, or does not count at all.",
        "Count correlation ids up by one a request of a connection. Brokers do not mind, but until then answers can be "
        "told apart by their order alone: this program pairs them so.",
    )

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found, around)
        self._in_flight = _InFlight(*(np.zeros(0, np.int64) for _ in _InFlight._fields))

    def take(self, rows: Rows) -> None:
        """Requests under one id of a connection stand together once sorted, each behind the one before it."""
        asked = rows.asked
        if not len(asked.row):
            return
        until = np.where(asked.response == NO_FRAME, NEVER, asked.answered_packet)
        until[asked.flags & Flag.NO_RESPONSE_EXPECTED != 0] = 0
        until = np.minimum(until, asked.packet + REMEMBERED)
        ids = asked.connection << 32 | (asked.correlation_id & 0xFFFFFFFF)
        new = _InFlight(ids, asked.packet, until, np.arange(len(ids)))
        both = _InFlight(*map(np.concatenate, zip(self._in_flight, new, strict=True)))
        both = both.where(np.argsort(both.id, kind="stable"))
        same = np.diff(both.id) == 0
        if same.any():
            self._tell(asked.where(np.sort(both.place[1:][same & (both.until[:-1] > both.packet[1:])])))
        newest = np.append(~same, True)
        seen_upto = min(int(asked.packet.max()), self.around.waits_from)
        waiting = both.where(newest & (both.until > seen_upto))
        if len(waiting.id) > IN_FLIGHT:
            waiting = waiting.where(np.sort(np.argsort(waiting.packet, kind="stable")[-IN_FLIGHT:]))
        self._in_flight = waiting

    def _tell(self, rows: Rows) -> None:
        columns = (rows.row, rows.connection, rows.correlation_id, rows.asked_ns)
        for row, connection, number, time_ns in zip(*(column.tolist() for column in columns), strict=True):
            words = f"correlation id {number} was that of a request still in flight"
            self.again(connection, row, time_ns, words, "request.header.correlation_id", "such requests")


class _InFlight(NamedTuple):
    """Requests, `(n,)` each. They wait until the packet with their answer."""

    id: Int64
    """Connection and correlation id."""
    packet: Int64
    until: Int64
    place: Int64
    """Among the rows that came with it: what waited from before is told already."""

    def where(self, which: Bool | Int64) -> "_InFlight":
        """Some of them."""
        return _InFlight(*(column[which] for column in self))


class OutOfOrderResponse(RowFinder):
    """An answer that overtook another one."""

    explanation: ClassVar = Explanation(
        "out-of-order-response",
        "A response out of order",
        Severity.ERROR,
        "The server answered a later request of a connection before an earlier one.",
        "Kafka's brokers answer the requests of a connection strictly in order. A proxy, a mock, or a broker of "
        "another make does not; or several connections were merged into one on the way.",
        "Have whatever stands between client and broker keep the order. Clients that match answers by order alone take "
        "one answer for another, and Kafka's own closes the connection on an id that it did not expect.",
    )

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found, around)
        self._furthest = (Column(np.int64, -1), Column(np.int64, -1))
        """By connection: how far requests that were answered go in the client's stream, and the answers in the
        server's."""

    def take(self, rows: Rows) -> None:
        """Of the answered rows of a connection, one after the other, both streams go up."""
        answered = rows.answered
        if not len(answered.row):
            return
        order = np.lexsort((answered.asked_start, answered.connection))
        answered = answered.where(order)
        late = np.zeros(len(order), np.bool_)
        for furthest, starts in zip(self._furthest, (answered.asked_start, answered.answered_start), strict=True):
            late |= _behind(furthest, answered.connection, starts)
        for at in np.flatnonzero(late).tolist():
            connection, row, time_ns = (
                int(each[at]) for each in (answered.connection, answered.row, answered.answered_ns)
            )
            words = "this response and that of another request came in the other order than the requests"
            self.again(connection, row, time_ns, words, "response", "times on this connection")


def _behind(furthest: Column, connection: Int64, starts: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows, sorted by connection, stand behind one before them; `furthest` goes along."""
    furthest.grow(int(connection[-1]) + 1)
    first = np.concatenate([[True], np.diff(connection) != 0])
    group = np.cumsum(first) - 1
    # One running maximum for all: each connection's numbers are lifted above those of the ones before it.
    lift = group * np.int64(1 << 44)
    before = np.where(first, furthest.values[connection], -1)
    so_far = np.maximum.accumulate(np.maximum(starts, np.where(first, before, starts)) + lift)
    previous = np.where(first, before, np.concatenate([[-1], so_far[:-1]]) - lift)
    last = np.concatenate([first[1:], [True]])
    furthest.values[connection[last]] = (so_far - lift)[last]
    behind: np.ndarray[tuple[int], np.dtype[np.bool_]] = starts < previous
    return behind
