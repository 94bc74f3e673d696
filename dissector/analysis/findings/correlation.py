"""Correlation ids and the order of answers: what a connection's two streams promise each other.

A broker answers the requests of a connection one after the other, in the order in which they came.
"""

from typing import ClassVar, Final

import numpy as np

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, RowFinder
from dissector.analysis.findings.found import Found
from dissector.analysis.findings.rows import Rows
from dissector.columns import Column
from dissector.events import NEVER
from dissector.findings import Severity
from dissector.session.table import NO_FRAME, Flag, Ints

IN_FLIGHT: Final = 4_096
"""Requests that are remembered while they wait, the newest ones."""


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

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._in_flight: Rows | None = None

    def take(self, rows: Rows) -> None:
        """Equal ids of a connection stand together once sorted."""
        asked = rows.asked
        if not len(asked.row):
            return
        new = asked.row
        if self._in_flight is not None:
            asked = Rows(*map(np.concatenate, zip(self._in_flight, asked, strict=True)))
        until = np.where(asked.response == NO_FRAME, NEVER, asked.answered_ns)
        until[asked.flags & Flag.NO_RESPONSE_EXPECTED != 0] = 0
        order = np.lexsort((asked.row, asked.correlation_id, asked.connection))
        same = (np.diff(asked.correlation_id[order]) == 0) & (np.diff(asked.connection[order]) == 0)
        taken = same & (asked.asked_ns[order][1:] < until[order][:-1])
        self._tell(asked.where(np.sort(order[1:][taken])), new)
        waiting = np.flatnonzero(until > asked.asked_ns.max())
        self._in_flight = asked.where(waiting[-IN_FLIGHT:])

    def _tell(self, rows: Rows, new: Ints) -> None:
        rows = rows.where(np.isin(rows.row, new))
        columns = (rows.row, rows.connection, rows.correlation_id, rows.asked_ns)
        for row, connection, number, time_ns in zip(*(column.tolist() for column in columns), strict=True):
            words = f"correlation id {number} was that of a request still in flight"
            self.again(connection, row, time_ns, words, "request.header.correlation_id", "such requests")


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

    def __init__(self, found: Found, around: Around) -> None:
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


def _behind(furthest: Column, connection: Ints, starts: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
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
