"""Requests that a broker has, and does not answer, on connections that stay open: all that a client waits for are one
finding. Requests on connections that were closed have the cause of the close instead.

What is only pending when the capture ends is not reported: the broker is silent once other things were seen of the
client `PATIENCE_NS` later. Nor is what may wait on purpose, what TCP did not deliver, and what the capture may lack.
"""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np

from dissector.core.arrays import Bool
from dissector.core.batches import NEVER
from dissector.core.columns import is_in, tuples
from dissector.core.finding import Severity
from dissector.core.text import counted, duration
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.closed_requests import PATIENCE_NS
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import Aggregator
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.extractor import NO_API, Apis, Extractor, ObservationSink, Scope
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import BoundedStates
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol.schema.api_groups import WAITING


class WaitingRequest(NamedTuple):
    """A request without a response on a connection that stays open."""

    connection: int
    """Its first packet."""
    is_first: bool
    """Whether it is the connection's first one."""
    request_ns: int
    seen_ns: int
    """When the client last sent a request on the connection."""
    is_left_out: bool
    """Whether the broker answered requests of the connection behind it."""


class WaitingRequests(Extractor):
    """Observes requests without a response on open connections, by client and server."""

    only_unanswered: ClassVar = True

    def __init__(self, context: FindingContext, sink: ObservationSink) -> None:
        super().__init__(context, sink)
        self._observed: BoundedStates[int, list[bool]] = BoundedStates(list)
        """By connection: whether a request of it was observed."""

    def needed_apis(self, rows: ExaminedRows, _is_clean: Bool) -> Apis:
        """All, if one of these rows has no response: a finding counts the requests of a client."""
        return None if len(rows.unanswered.row) else NO_API

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Observe them, but for those that may wait on purpose."""
        some = rows.unanswered
        some = some.where(~is_in(some.api_key, np.array(sorted(WAITING))))
        ends: dict[int, _OpenEnd] = {}
        columns = some.row, some.connection, some.packet, some.request_start, some.request_ns
        for row, connection, packet, start, request_ns in tuples(*columns):
            if self.context.closed(connection)[0] != NEVER:
                continue
            end = ends.get(connection) or ends.setdefault(connection, _open_end(self.context, connection))
            if not end.is_delivered:
                continue
            known = self._observed.of(connection)
            is_first = not known
            known[:] = [True]
            scope = self.context.client(connection), self.context.server(connection)
            observed = WaitingRequest(
                self.context.first_packet(connection), is_first, request_ns, end.asked_ns,
                request_ns < end.answered_ns,
            )  # fmt: skip
            self.observe(scope, row, (packet, start), observed)


class _OpenEnd(NamedTuple):
    """How a connection stands at the end of what was captured of it."""

    is_delivered: bool
    """Whether the broker has all requests, and the capture all that it sent."""
    asked_ns: int
    """When the client last sent a request."""
    answered_ns: int
    """When the last request was sent that has a response."""


def _open_end(context: FindingContext, connection: int) -> _OpenEnd:
    rows = context.rows_of(connection)
    is_plain = bool((rows.kind == RowKind.EXCHANGE).all() and (rows.request != NO_FRAME).all())
    sent = context.delivery(connection, of_client=True)
    is_delivered = is_plain and sent is not None and sent.is_acked and not context.is_server_foreign(connection)
    return _OpenEnd(
        is_delivered, int(rows.request_ns.max(initial=0)), int(rows.request_ns[rows.has_both].max(initial=0))
    )


class BrokerSilent(Aggregator[WaitingRequest]):
    """Finds brokers that do not answer a client."""

    extractor: ClassVar = WaitingRequests
    quiet_ns: ClassVar = 60 * SECOND
    explanation: ClassVar = Explanation(
        "broker-silent",
        "The broker does not answer",
        Severity.WARNING,
        "TCP delivered requests to the broker, and the capture has no response to them, though the client sent others "
        "more than five seconds later, or though the broker answered later requests of the connection. The connection "
        "stays open. All unanswered requests of a client to one server are one finding, which counts them; a pause of "
        "a minute ends the finding. Requests whose response may be held back on purpose, such as Fetch, do not count.",
        "The broker hangs: its request threads are busy or blocked (a full disk, a lock, an acks=all that waits for "
        "replicas), or the machine is paused. A broker that answers later requests has lost this one: Kafka's brokers "
        "answer in order, so the server is an in-house one, a mock, or a proxy that dropped the response.",
        "Read the broker's log for this time, and take a thread dump; check RequestQueueSize and "
        "RequestHandlerAvgIdlePercent. Capture on the broker's side of a proxy too. request.timeout.ms sets when the "
        "client gives up.",
    )

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._open: dict[bool, _Silence] = {}
        """By whether later requests were answered."""

    def add(self, row: int, observed: WaitingRequest) -> None:
        """Report one finding once a request has waited for long, or was left out."""
        silence = self._open.get(observed.is_left_out)
        if silence is None or observed.request_ns - silence.last_ns > self.quiet_ns:
            silence = self._open[observed.is_left_out] = _Silence(observed)
        silence.add(observed)
        if not observed.is_left_out and silence.waited_ns < PATIENCE_NS:
            return
        if silence.finding is None:
            silence.finding = self.report(row, silence.message, "request")
        else:
            silence.finding.update(silence.message)


class _Silence:
    """Requests of a client that wait at the same time. Only numbers are kept of them."""

    def __init__(self, first: WaitingRequest) -> None:
        self.finding: OpenFinding | None = None
        self._first = first
        self._seen_ns = self.last_ns = first.request_ns
        self._requests = self._connections = 0

    def add(self, observed: WaitingRequest) -> None:
        """Count a request."""
        self._requests += 1
        self._connections += observed.is_first or not self._connections
        self.last_ns = max(self.last_ns, observed.request_ns)
        self._seen_ns = max(self._seen_ns, observed.seen_ns)

    @property
    def waited_ns(self) -> int:
        """For how long the first one waits, as far as is known."""
        return max(0, self._seen_ns - self._first.request_ns)

    @property
    def message(self) -> str:
        """What is said of all."""
        return "".join(self._words())

    def _words(self) -> Iterator[str]:
        if self._first.is_left_out:
            yield "the broker sent no response, though it answered later requests of this connection"
        else:
            yield f"TCP delivered it, and the broker has not answered for {duration(self.waited_ns)}"
        if self._requests > 1:
            yield f"; {counted(self._requests, 'request')} on {counted(self._connections, 'connection')}"
            yield " were left out" if self._first.is_left_out else " wait"
