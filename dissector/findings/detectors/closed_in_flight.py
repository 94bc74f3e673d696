"""Requests in flight when their connection was closed, by either side, of which no more can be said; and those that the
broker left out before that."""

from typing import ClassVar

from dissector.core.finding import Severity
from dissector.core.text import counted, duration
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework import contradictions as if_
from dissector.findings.framework.closed_requests import (
    PATIENCE_AT_START_NS,
    PATIENCE_NS,
    CloseCause,
    ClosedRequest,
)
from dissector.findings.framework.connection_end import ConnectionEnd
from dissector.findings.framework.contradictions import acknowledged_words
from dissector.findings.framework.extractor import Scope
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.protocol.schema.api_keys import ApiKey


class LeftOut(CloseCause):
    """Finds requests that the broker left out: it answered later ones of the connection before this was closed."""

    contradictions: ClassVar = (if_.other_protocol, if_.has_gaps)
    explanation: ClassVar = Explanation(
        "left-out",
        "Request that the broker left out",
        Severity.WARNING,
        "The broker answered a later request of the connection and not this one, and the connection was closed. The "
        "capture has the whole connection, from its beginning and without a gap. On connections that stay open it is "
        "broker-silent.",
        "Kafka's brokers answer the requests of a connection in order. Those of Kafka 0.9 never answer ApiVersions, "
        "which they do not know. Otherwise the server is an in-house one, a mock, or a proxy that dropped the "
        "response.",
        "If it is ApiVersions, use a client for the broker's release, or upgrade the broker. Otherwise correct the "
        "server: a client that matches responses by their order closes the connection on the next one.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """A later one has a response."""
        return end.is_left_out

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        why = "brokers answer in order, so the server or a proxy dropped it"
        if end.key == ApiKey.API_VERSIONS:
            why = f"it may be of Kafka 0.9, which never answers ApiVersions ({end.advice.older})"
        return f"the broker answered a later request of this connection, and never {end.name}: {why}"


class ClosedInFlight(CloseCause):
    """Finds requests whose connection was closed before their response."""

    contradictions: ClassVar = (
        if_.other_protocol, if_.version_not_offered, if_.never_acknowledged, if_.answered_by_another_id,
        if_.response_may_be_missing,
    )  # fmt: skip
    quiet_ns: ClassVar = 60 * SECOND
    counts_requests: ClassVar = True
    explanation: ClassVar = Explanation(
        "closed-in-flight",
        "Closed with requests in flight",
        Severity.WARNING,
        "A connection was closed while requests waited for their responses. If the client closed it, Fetch, Metadata "
        "and the like do not count: clients routinely stop with those in flight. Connections of a client to a broker "
        "that were closed within a minute of each other are one finding, at the first of them.",
        "The client gave up (request.timeout.ms, delivery.timeout.ms) or was killed, the broker restarted, a load "
        "balancer or firewall cut an idle connection, or the broker closed the connection because it could not read a "
        "request. Brokers of Kafka 0.9 never answer ApiVersions.",
        "Whether the request took effect is unknown: a producer needs enable.idempotence=true to send it again "
        "without duplicates. See which side sent FIN or RST first, and read its log for this time. Set "
        "connections.max.idle.ms on clients below the idle timeout of every device in between.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """There is a request without a response."""
        return True

    @classmethod
    def kind(cls, end: ConnectionEnd) -> str:
        """Which side closed."""
        return "client" if end.by_client else "broker"

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        return f"the {cls.kind(end)} closed the connection"

    @classmethod
    def more(cls, end: ConnectionEnd) -> str:
        """Say that the broker had the request, of a client that waited long."""
        waited_ns = end.closed_ns - end.request_ns if end.by_client else 0
        at_start = end.key == ApiKey.API_VERSIONS and len(end.rows.row) == 1 and waited_ns >= PATIENCE_AT_START_NS
        if not (at_start or waited_ns >= PATIENCE_NS):
            return ""
        words = acknowledged_words(end.context, end.connection)
        old = f": it may be of Kafka 0.9, which never answers ApiVersions ({end.advice.older}), or no broker"
        return words + old if at_start and words else words

    def __init__(self, found: FindingSink, scope: Scope) -> None:
        super().__init__(found, scope)
        self._open: dict[str, _ClosedConnections] = {}
        """By kind."""

    def add(self, row: int, observed: ClosedRequest) -> None:
        """Report one finding for connections that one side closed within a minute of each other."""
        if observed.code != self.explanation.code:
            return
        closed = self._open.get(observed.kind)
        if closed is None or abs(observed.closed_ns - closed.last_ns) > self.quiet_ns:
            closed = self._open[observed.kind] = _ClosedConnections(observed)
        closed.add(observed)
        if closed.finding is None:
            closed.finding = self.report(row, closed.message, observed.path)
        else:
            closed.finding.update(closed.message)


class _ClosedConnections:
    """Connections that were closed one after the other with requests in flight. Only numbers are kept of them."""

    def __init__(self, first: ClosedRequest) -> None:
        self.finding: OpenFinding | None = None
        self._first = first
        self._oldest_ns = first.request_ns
        self._begin_ns = self.last_ns = first.closed_ns
        self._requests = self._connections = 0

    def add(self, observed: ClosedRequest) -> None:
        """Count a request."""
        self._requests += 1
        self._connections += observed.is_first
        if observed.connection == self._first.connection:
            self._oldest_ns = min(self._oldest_ns, observed.request_ns)
        self._begin_ns = min(self._begin_ns, observed.closed_ns)
        self.last_ns = max(self.last_ns, observed.closed_ns)

    @property
    def message(self) -> str:
        """What is said of all."""
        words = self._first.words
        if self._connections > 1:
            within, requests = duration(self.last_ns - self._begin_ns), counted(self._requests, "request")
            return f"{words} with requests in flight; {self._connections:,} connections within {within}, {requests}"
        age = duration(max(0, self._first.closed_ns - self._oldest_ns))
        if self._requests > 1:
            return (
                f"{words} with {counted(self._requests, 'request')} in flight, the oldest {age} old{self._first.more}"
            )
        return f"{words} {age} later, before the response{self._first.more}"
