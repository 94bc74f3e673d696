"""Connections whose packets the capture has twice, under two pairs of addresses: on both sides of a NAT (a service's
address and that of its pod), or on several interfaces of one machine.

Both have the same sequence numbers, which each end draws at random: 64 bits that are equal at the same time are no
chance, unless packets are made up: those have small ones. A NAT that draws its own is not noticed. Packets that are
there twice under the same addresses are one connection, and counted once.
"""

from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.columns import unique
from dissector.core.finding import Severity
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.decoded_exchange import RowPosition
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, Apis, Extractor, ObservationSink, Scope
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.transport.deliveries import LEAST_RANDOM

APART_NS: Final = SECOND // 10
"""Copies of a packet are captured within this time. Recordings that were copied into larger ones are
farther apart."""
MOST_CONNECTIONS: Final = 65_536
"""Connections whose sequence numbers are remembered."""


class SeenConnection(NamedTuple):
    """A connection, as observed."""

    numbers: tuple[int, int]
    """The sequence numbers with which client and broker begin."""
    began_ns: int
    server: str
    ends: str


class ConnectionStarts(Extractor):
    """Observes each connection that may be a copy, or have one, at its first row."""

    max_scopes: ClassVar = 1

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._seen: BoundedStates[int, list[None]] = BoundedStates(list, MOST_CONNECTIONS)

    def needed_apis(self, rows: ExaminedRows, _is_clean: object) -> Apis:
        """All rows, if one of these may be of a copy: any may be the first of a connection."""
        return None if self.context.may_be_copies(unique(rows.connection), APART_NS).any() else NO_API

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Observe connections that are new."""
        connections, firsts = np.unique(rows.connection, return_index=True)
        may = self.context.may_be_copies(connections, APART_NS)
        connections, firsts = connections[may], firsts[may]
        for at in np.sort(firsts[[self._seen.get(each) is None for each in connections.tolist()]]).tolist():
            connection = int(rows.connection[at])
            self._seen.of(connection)
            numbers = self.context.first_sequence_numbers(connection)
            if min(numbers) >= LEAST_RANDOM:
                client, server = self.context.client(connection), self.context.server(connection)
                began_ns = self.context.began_ns(connection)
                seen = SeenConnection(numbers, began_ns, server, f"{client} to {server}")
                start = rows.request_start if rows.request[at] >= 0 else rows.response_start
                position: RowPosition = (int(rows.packet[at]), int(start[at]))
                self.observe(("capture",), int(rows.row[at]), position, seen)


class CapturedTwice(Aggregator[SeenConnection]):
    """Finds connections that were seen before under other addresses."""

    extractor: ClassVar = ConnectionStarts
    explanation: ClassVar = Explanation(
        "captured-twice",
        "The same packets with different addresses",
        Severity.WARNING,
        "The capture has the packets of this connection twice: another connection has the same TCP sequence numbers at "
        "the same time. Its messages are counted twice in rows, statistics and rates.",
        "The capture was taken on all interfaces (-i any) of a machine that translates addresses, as a Kubernetes node "
        "does between a service and its pod, or on a mirror port that sees both sides of a NAT or load balancer.",
        "Show only one of the two: -Y 'server == 10.0.0.1:9092' with the broker's own address, or capture on one "
        "interface.",
    )

    def __init__(self, sink: FindingSink, scope: Scope) -> None:
        super().__init__(sink, scope)
        self._known: BoundedStates[tuple[int, int], list[SeenConnection]] = BoundedStates(list, MOST_CONNECTIONS)

    def add(self, row: int, observed: SeenConnection) -> None:
        """Report one finding for each pair of brokers' addresses."""
        known = self._known.of(observed.numbers)
        for each in known:
            if each.ends != observed.ends and abs(each.began_ns - observed.began_ns) <= APART_NS:
                words = f"the same packets are in the capture as {each.ends}: one exchange counts as two"
                key = (each.server, observed.server)
                self.report_repeated(key, row, observed.began_ns, words, "", "such connections")
                return
        known[:] = [observed]
