"""Connections that were closed with requests in flight, one of them for its size."""

from typing import ClassVar, Final

from dissector.core.batches import NEVER
from dissector.core.columns import tuples
from dissector.core.finding import Severity
from dissector.core.text import counted, duration
from dissector.findings.detectors.closed_at_start import cause_of_close
from dissector.findings.detectors.unacknowledged import acknowledged_words, request_is_stuck
from dissector.findings.detectors.versions import removal_of
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import SECOND, BoundedStates
from dissector.protocol.schema.api_groups import HARMLESS_IN_FLIGHT, WAITING

PATIENCE_NS: Final = 5 * SECOND
"""A client that waited so long for what brokers answer at once gave up."""
LARGEST_REQUEST: Final = 100 << 20
"""`socket.request.max.bytes` unless the broker is configured otherwise."""
LARGE: Final = 1 << 20
"""No broker closes the connection on smaller requests: past `message.max.bytes`, 1 MiB, it responds with an error."""


class ClosedInFlight(ConnectionDetector):
    """Finds requests whose connection was closed before their response."""

    explanation: ClassVar = Explanation(
        "closed-in-flight",
        "Closed with requests in flight",
        Severity.WARNING,
        "A connection was closed while requests waited for their responses. If the client closed it, Fetch, Metadata "
        "and the like do not count: clients routinely stop with those in flight.",
        "The client gave up (request.timeout.ms, delivery.timeout.ms) or was killed, the broker restarted, a load "
        "balancer or firewall cut an idle connection, or the broker closed the connection because it could not read a "
        "request.",
        "Whether the request took effect is unknown: a producer needs enable.idempotence=true to send it again "
        "without duplicates. See which side sent FIN or RST first, and read its log for this time. Set "
        "connections.max.idle.ms on clients below the idle timeout of every device in between.",
    )
    only_unanswered: ClassVar = True

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._findings: BoundedStates[int, _ClosedConnection] = BoundedStates(_ClosedConnection)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report one finding for each connection, at its oldest request."""
        unanswered = rows.unanswered
        columns = (
            unanswered.row, unanswered.connection, unanswered.api_key, unanswered.version, unanswered.request,
            unanswered.request_size, unanswered.request_ns,
        )  # fmt: skip
        for row, connection, key, version, *frame, request_ns in tuples(*columns):
            closed_ns, by_client = self.context.closed(connection)
            if closed_ns == NEVER or (by_client and not _gave_up(key, closed_ns - request_ns)):
                continue
            if (
                request_is_stuck(self.context, connection)
                or not self.context.is_offered(connection, key, version)
                or _is_refused(self.context, *frame)
                or self.context.is_server_foreign(connection)
                or cause_of_close(self.context, connection) is not None
                or removal_of(self.context, connection, key, version) is not None
            ):
                continue  # reported by other detectors, with the reason
            state = self._findings.of(connection)
            state.count += 1
            state.first_ns, state.last_ns = min(state.first_ns, request_ns), max(state.last_ns, request_ns)
            age = duration(max(0, closed_ns - state.first_ns))
            if state.finding is None:
                state.words = f"the {'client' if by_client else 'broker'} closed the connection"
                state.more = (
                    acknowledged_words(self.context, connection)
                    if by_client and closed_ns - request_ns >= PATIENCE_NS
                    else ""
                )
                words = f"{state.words} {age} later, before the response{state.more}"
                state.finding = self.report(row, words, "request")
                continue
            state.finding.update(
                f"{state.words} with {counted(state.count, 'request')} in flight, the oldest {age} old{state.more}"
            )


class _ClosedConnection:
    finding: OpenFinding | None = None
    words = ""
    more = ""
    count = 0
    first_ns = NEVER
    last_ns = 0


def _gave_up(key: int, waited_ns: int) -> bool:
    """Whether a client that closes its connection gave up on a request, rather than stopped with it in flight."""
    return key not in HARMLESS_IN_FLIGHT or (key not in WAITING and waited_ns >= PATIENCE_NS)


def _is_refused(context: FindingContext, frame: int, size: int) -> bool:
    """Return whether a request is too large for any broker, or is large and was cut off."""
    return size > LARGEST_REQUEST or (size >= LARGE and context.captured(frame) < size)


class OversizedRequest(ConnectionDetector):
    """Finds requests that a broker refuses to read."""

    explanation: ClassVar = Explanation(
        "oversized-request",
        "Request larger than the broker accepts",
        Severity.ERROR,
        "A request is larger than socket.request.max.bytes (100 MiB unless the broker is configured otherwise), or the "
        "connection ended in the middle of a large one.",
        "A broker reads the size first, and closes the connection if it is too large: the client sees a disconnect "
        "and no error. A huge size often means that the bytes are not Kafka at all: TLS or HTTP on a plain listener, "
        "or a client that wrote its stream wrongly.",
        "Lower max.request.size, batch.size or the number of partitions in one request, or raise "
        "socket.request.max.bytes on the brokers. If the size makes no sense, check security.protocol and the port.",
    )
    only_unanswered: ClassVar = True

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Examine large requests without a response."""
        large = rows.unanswered
        large = large.where(large.request_size >= LARGE)
        for row, connection, frame, size in tuples(large.row, large.connection, large.request, large.request_size):
            if self.context.closed(connection)[0] != NEVER and _is_refused(self.context, frame, size):
                words = f"the connection was closed on a request of {counted(size, 'byte')}"
                more = "; brokers accept 100 MiB by default" if size > LARGEST_REQUEST else ""
                self.report(row, words + more, "request")
