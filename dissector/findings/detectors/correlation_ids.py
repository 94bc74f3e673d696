"""Correlation ids that two requests in flight share, and responses that overtake others."""

from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
from dissector.core.columns import Column, tuples
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink
from dissector.index.exchange_table import NO_FRAME, Flag

REMEMBERED: Final = 65_536
"""Packets of the capture for which a request without a response is considered in flight."""
IN_FLIGHT: Final = 65_536
"""Requests in flight that are remembered, over all connections: the newest."""


class DuplicateCorrelationId(ConnectionDetector):
    """Finds two requests in flight with the same correlation id."""

    explanation: ClassVar = Explanation(
        "duplicate-correlation-id",
        "Two requests in flight with the same correlation id",
        Severity.ERROR,
        "A client sent a request with the correlation id of another request that was still in flight on the same "
        "connection.",
        "The client's counter is shared between threads without synchronization, is reset too early, or is never "
        "incremented.",
        "Increment the correlation id with each request of a connection. Brokers do not check it, but such responses "
        "can be matched only by their order, as this program does.",
    )

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._in_flight = _RequestsInFlight(*(np.zeros(0, np.int64) for _ in _RequestsInFlight._fields))

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Sort the requests so that those with the same connection and id are adjacent, and compare neighbors."""
        requests = rows.with_request
        if not len(requests.row):
            return
        until = np.where(requests.response == NO_FRAME, NEVER, requests.response_packet)
        until[requests.flags & Flag.NO_RESPONSE_EXPECTED != 0] = 0
        until = np.minimum(until, requests.packet + REMEMBERED)
        ids = requests.connection << 32 | (requests.correlation_id & 0xFFFFFFFF)
        new = _RequestsInFlight(ids, requests.packet, until, np.arange(len(ids)))
        both = _RequestsInFlight(*map(np.concatenate, zip(self._in_flight, new, strict=True)))
        both = both.where(np.argsort(both.id, kind="stable"))
        same = np.diff(both.id) == 0
        if same.any():
            self._report_rows(requests.where(np.sort(both.place[1:][same & (both.until[:-1] > both.packet[1:])])))
        newest = np.append(~same, True)
        seen_upto = min(int(requests.packet.max()), self.context.first_pending_packet)
        waiting = both.where(newest & (both.until > seen_upto))
        if len(waiting.id) > IN_FLIGHT:
            waiting = waiting.where(np.sort(np.argsort(waiting.packet, kind="stable")[-IN_FLIGHT:]))
        self._in_flight = waiting

    def _report_rows(self, rows: ExaminedRows) -> None:
        for row, connection, number, time_ns in tuples(rows.row, rows.connection, rows.correlation_id, rows.request_ns):
            words = f"correlation id {number} is that of another request in flight"
            self.report_repeated(connection, row, time_ns, words, "request.header.correlation_id", "such requests")


class _RequestsInFlight(NamedTuple):
    """Requests, as columns of `(n,)`. Each is in flight until the packet with its response."""

    id: Int64
    """Connection and correlation id."""
    packet: Int64
    until: Int64
    place: Int64
    """Index among the rows of the same step. Requests of earlier steps are reported already."""

    def where(self, which: Bool | Int64) -> "_RequestsInFlight":
        """Return some of them."""
        return _RequestsInFlight(*(column[which] for column in self))


class OutOfOrderResponse(ConnectionDetector):
    """Finds responses that overtook others."""

    explanation: ClassVar = Explanation(
        "out-of-order-response",
        "Response out of order",
        Severity.ERROR,
        "The server responded to a later request of the connection before an earlier one.",
        "Kafka's brokers respond to the requests of a connection strictly in order. A proxy, a mock or another "
        "vendor's broker does not, or a proxy merged several connections into one.",
        "Make every proxy between client and broker keep the order. Clients that match responses only by order mix "
        "them up, and Kafka's Java client closes the connection on an unexpected correlation id.",
    )

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._furthest = (Column(np.int64, -1), Column(np.int64, -1))
        """By connection: the furthest start of a paired request in the client's stream, and of a response in the
        server's."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report pairs whose requests and responses are not in the same order in their streams."""
        paired = rows.with_response
        if not len(paired.row):
            return
        order = np.lexsort((paired.request_start, paired.connection))
        paired = paired.where(order)
        late = np.zeros(len(order), np.bool_)
        for furthest, starts in zip(self._furthest, (paired.request_start, paired.response_start), strict=True):
            late |= _behind(furthest, paired.connection, starts)
        for at in np.flatnonzero(late).tolist():
            connection, row, time_ns = (int(each[at]) for each in (paired.connection, paired.row, paired.response_ns))
            words = "this response and another one came in a different order than their requests"
            self.report_repeated(connection, row, time_ns, words, "response", "times on this connection")


def _behind(furthest: Column, connection: Int64, starts: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows, sorted by connection, start before a previous one. Updates `furthest`."""
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
