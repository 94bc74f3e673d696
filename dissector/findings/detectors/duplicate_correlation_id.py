"""Two requests in flight on a connection with the same correlation id."""

from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
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
        columns = (rows.row, rows.connection, rows.correlation_id, rows.request_ns)
        for row, connection, number, time_ns in zip(*(column.tolist() for column in columns), strict=True):
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
