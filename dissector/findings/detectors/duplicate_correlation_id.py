"""Two requests in flight on a connection under one correlation id."""

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
"""Packets of the capture for which a request without an answer is taken to wait."""
IN_FLIGHT: Final = 65_536
"""Requests that are remembered while they wait, of all connections: the newest."""


class DuplicateCorrelationId(ConnectionDetector):
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

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._in_flight = _RequestsInFlight(*(np.zeros(0, np.int64) for _ in _RequestsInFlight._fields))

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Requests under one id of a connection stand together once sorted, each behind the one before it."""
        asked = rows.with_request
        if not len(asked.row):
            return
        until = np.where(asked.response == NO_FRAME, NEVER, asked.response_packet)
        until[asked.flags & Flag.NO_RESPONSE_EXPECTED != 0] = 0
        until = np.minimum(until, asked.packet + REMEMBERED)
        ids = asked.connection << 32 | (asked.correlation_id & 0xFFFFFFFF)
        new = _RequestsInFlight(ids, asked.packet, until, np.arange(len(ids)))
        both = _RequestsInFlight(*map(np.concatenate, zip(self._in_flight, new, strict=True)))
        both = both.where(np.argsort(both.id, kind="stable"))
        same = np.diff(both.id) == 0
        if same.any():
            self._tell(asked.where(np.sort(both.place[1:][same & (both.until[:-1] > both.packet[1:])])))
        newest = np.append(~same, True)
        seen_upto = min(int(asked.packet.max()), self.context.first_pending_packet)
        waiting = both.where(newest & (both.until > seen_upto))
        if len(waiting.id) > IN_FLIGHT:
            waiting = waiting.where(np.sort(np.argsort(waiting.packet, kind="stable")[-IN_FLIGHT:]))
        self._in_flight = waiting

    def _tell(self, rows: ExaminedRows) -> None:
        columns = (rows.row, rows.connection, rows.correlation_id, rows.request_ns)
        for row, connection, number, time_ns in zip(*(column.tolist() for column in columns), strict=True):
            words = f"correlation id {number} was that of a request still in flight"
            self.report_repeated(connection, row, time_ns, words, "request.header.correlation_id", "such requests")


class _RequestsInFlight(NamedTuple):
    """Requests, `(n,)` each. They wait until the packet with their answer."""

    id: Int64
    """Connection and correlation id."""
    packet: Int64
    until: Int64
    place: Int64
    """Among the rows that came with it: what waited from before is told already."""

    def where(self, which: Bool | Int64) -> "_RequestsInFlight":
        """Some of them."""
        return _RequestsInFlight(*(column[which] for column in self))
