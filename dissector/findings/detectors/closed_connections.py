"""Connections that were closed on a request, each with its cause: those that need a change come first, and a close of
which no more can be said is the last."""

from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.core.text import counted, duration
from dissector.findings.explanation import Explanation
from dissector.findings.framework import contradictions as if_
from dissector.findings.framework.acknowledgements import acknowledged_words
from dissector.findings.framework.closed_requests import (
    PATIENCE_AT_START_NS,
    PATIENCE_NS,
    CloseCause,
    ClosedRequest,
    cause,
    counts_requests,
)
from dissector.findings.framework.connection_end import ConnectionEnd
from dissector.findings.framework.extractor import Scope
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import SECOND
from dissector.protocol.explain.releases import Removal, removal
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api

AT_START: Final = 16
"""Rows of a connection up to which a close is at its start."""
IDLE_NS: Final = 3 * SECOND
"""A broker or a device that closes connections for being idle waits longer."""
SURE_IDLE_NS: Final = 30 * SECOND
"""From here on idling is why; a connection that was silent for less may as well be one of a broker that was stopped."""
USUAL_IDLE_NS: Final = 600 * SECOND
"""`connections.max.idle.ms` of brokers unless configured otherwise."""
_REFUSED: Final = (
    if_.closed_by_client, if_.closed_before, if_.closed_later, if_.version_answered, if_.unreadable, if_.cut,
    if_.too_large, if_.other_protocol, if_.never_acknowledged,
)  # fmt: skip
"""What contradicts every cause by which a broker refuses a request that it read."""


@cause
class OversizedRequest(CloseCause):
    """Finds requests that a broker refuses to read."""

    contradictions: ClassVar = (if_.closed_before, if_.other_protocol, if_.never_acknowledged, if_.sent_more)
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

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """Too large for any broker, or large and cut off."""
        return end.size > if_.LARGEST_REQUEST or (end.size >= if_.LARGE and end.captured < end.size)

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        more = (
            "; brokers accept 100 MiB by default"
            if end.size > if_.LARGEST_REQUEST
            else ": the broker's socket.request.max.bytes may be less"
        )
        return f"the connection was closed on a request of {counted(end.size, 'byte')}{more}"


@cause
class ClosedBeforeRequest(CloseCause):
    """Finds requests on connections that the broker had closed already, mostly for being idle."""

    contradictions: ClassVar = (if_.closed_by_client, if_.other_protocol)
    explanation: ClassVar = Explanation(
        "closed-before-request",
        "Request on a connection that was closed already",
        Severity.ERROR,
        "The broker, or a device on the way, had closed the connection before the client sent this request. It was not "
        "read, whatever is in it.",
        "If nothing had been said on the connection for a while, it was closed as idle: by the broker "
        "(connections.max.idle.ms, 10 minutes unless configured otherwise), a load balancer or a firewall (often 4 to "
        "6 minutes). Else the broker or a proxy was stopped.",
        "Nothing, if the client opens another connection and repeats the request. Otherwise set the client's "
        "connections.max.idle.ms below the idle timeout of the broker and of every device in between, so that the "
        "client closes first.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """The close came first."""
        return if_.closed_before(end)

    @classmethod
    def kind(cls, end: ConnectionEnd) -> str:
        """Idle or not."""
        return "idle" if end.idle_ns >= IDLE_NS else "stopped"

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        before = f"{duration(end.request_ns - end.closed_ns)} before this request"
        if end.idle_ns < IDLE_NS:
            return f"the broker had closed the connection {before}, {duration(end.idle_ns)} after the last message"
        if end.idle_ns < SURE_IDLE_NS:
            return (
                f"the broker had closed the connection {before}, after {duration(end.idle_ns)} without a message: as "
                "idle (connections.max.idle.ms, or a device between), or it was stopped"
            )
        usual = abs(end.idle_ns - USUAL_IDLE_NS) < USUAL_IDLE_NS // 20
        whose = "the default of connections.max.idle.ms" if usual else "connections.max.idle.ms, or a device between"
        return (
            f"the connection was closed as idle {before}: nothing had been said for {duration(end.idle_ns)} ({whose}); "
            "have the client close idle connections sooner, or repeat the request on a new one"
        )


@cause
class UnreadableRequest(CloseCause):
    """Finds requests that break the layout of their version, on which the broker closed the connection."""

    contradictions: ClassVar = (
        if_.closed_by_client, if_.closed_before, if_.closed_later, if_.other_protocol, if_.never_acknowledged,
    )  # fmt: skip
    explanation: ClassVar = Explanation(
        "unreadable-request",
        "Closed on a request that can't be read",
        Severity.ERROR,
        "The request does not have the layout of its API and version, and the broker closed the connection without a "
        "response.",
        "The client writes a field in the wrong version, a wrong length or count, or a tagged field in a version that "
        "does not have it. A broker can't tell where the next field is, and closes the connection; its log has the "
        "error.",
        "Correct the client, or use another version of it. If a setting or a feature adds the field, switch it off "
        "until the broker is upgraded.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """Its bytes break the layout."""
        return bool(end.faults)

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        return f"the broker closed the connection on this request, which it can't read: {end.faults[0].message}"

    @classmethod
    def path(cls, end: ConnectionEnd) -> str:
        return end.faults[0].under("request").path


@cause
class ClosedAtApiVersions(CloseCause):
    """Finds connections that the broker closed on their first request, ApiVersions."""

    contradictions: ClassVar = (*_REFUSED, if_.beginning_missing)
    explanation: ClassVar = Explanation(
        "closed-at-api-versions",
        "Closed on ApiVersions",
        Severity.ERROR,
        "The first request of the connection is ApiVersions, and the broker closed the connection without a response.",
        "The listener, or a proxy in front of it, expects TLS; or the broker does not know ApiVersions, or this "
        "version of it. Kafka's own brokers since 0.10 respond with version 0 instead; Azure Event Hubs and brokers of "
        "0.8 close the connection. Brokers of 0.9 leave the request without a response.",
        "Set security.protocol=SSL or SASL_SSL if the listener uses TLS. Otherwise use an older client, or configure "
        "the broker's version in this one: api.version.request=false and broker.version.fallback in librdkafka, "
        "api_version in kafka-python.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """It is the only request."""
        return end.key == ApiKey.API_VERSIONS and len(end.rows.row) == 1

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        return (
            "the broker closed the connection on ApiVersions: it wants TLS (security.protocol=SSL or SASL_SSL), or is "
            "older than the client (use an older one, or api.version.request=false in librdkafka)"
        )


@cause
class LoginRequired(CloseCause):
    """Finds connections that the broker closed on their first request after ApiVersions, as there was no login."""

    contradictions: ClassVar = (
        *_REFUSED, if_.beginning_missing, if_.login_begun, if_.others_answered, if_.version_not_offered,
    )  # fmt: skip
    explanation: ClassVar = Explanation(
        "login-required",
        "Closed for lack of a login",
        Severity.ERROR,
        "The broker responded to ApiVersions, and closed the connection on the next request. The client did not log "
        "in.",
        "The listener is SASL_PLAINTEXT or SASL_SSL: before a login it accepts only ApiVersions and SaslHandshake. "
        "The client is configured with security.protocol=PLAINTEXT, which is the default, or SSL.",
        "Set security.protocol=SASL_PLAINTEXT (SASL_SSL with TLS), sasl.mechanism and the credentials "
        "(sasl.jaas.config in Java, sasl.username and sasl.password in librdkafka). If other connections to this "
        "listener work without a login, read the broker's log for this time.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """ApiVersions was answered, and this is the first other request."""
        return end.key != ApiKey.API_VERSIONS and len(end.answered.row) > 0 and len(end.rows.row) <= AT_START

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        return (
            "the broker closed the connection on the first request without a login: set security.protocol="
            "SASL_PLAINTEXT (SASL_SSL with TLS) and sasl.mechanism"
        )


_OF_VERSION: Final = "request.header.request_api_version"


@cause
class RemovedVersion(CloseCause):
    """Finds requests in versions that newer brokers removed, on which the connection was closed."""

    contradictions: ClassVar = (
        *_REFUSED, if_.was_read, if_.versions_known, if_.versions_asked, if_.broker_has_removed_versions,
    )  # fmt: skip
    explanation: ClassVar = Explanation(
        "version-removed",
        "Version that newer brokers no longer have",
        Severity.ERROR,
        "The request has a version that newer releases of Kafka removed, and the broker closed the connection without "
        "a response.",
        "The client is older than the broker supports: Kafka 4 removed the versions of before Kafka 2.1 (KIP-896). Or "
        "the client could use newer versions, but a setting says that the broker is old, so it does not send "
        "ApiVersions. Or the broker is so old that it does not have the version yet: nothing on the connection shows "
        "its age, unless the message names one cause only.",
        "See which release the broker is. If it is new, upgrade the client: in librdkafka remove "
        "api.version.request=false and broker.version.fallback, in kafka-python remove api_version, in sarama raise "
        "Config.Version, so that the client learns from ApiVersions which versions the broker has. If it is old, "
        "upgrade it, or set its true version in the client.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """A known release removed the version."""
        return _removal(end) is not None

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        found = _removal(end)
        assert found is not None, "it applies"
        upgrade = "upgrade the client, or remove api.version.request=false and broker.version.fallback"
        lacks = f"Kafka {found.release} no longer has (it has v{found.low} and up)"
        if end.key in if_.FIRST_APIS and end.version == 0:  # no broker is too old for it
            return f"the broker closed the connection on {end.name}, which {lacks}: {upgrade}"
        return (
            f"the broker closed the connection on {end.name}, which {lacks}, and which a broker that is too old does "
            f"not have yet: if it is new, {upgrade}; if it is old, upgrade it, or set its version in the client"
        )

    @classmethod
    def path(cls, _end: ConnectionEnd) -> str:
        return _OF_VERSION


def _removal(end: ConnectionEnd) -> Removal | None:
    """Return since when brokers lack the version of the request; None if the newest one has it."""
    known = api(end.key)
    return None if known is None else removal(known.request, end.version)


@cause
class SuspectVersion(CloseCause):
    """Finds the first request of a version on which the connection was closed, where the client did not ask for
    versions."""

    contradictions: ClassVar = (
        *_REFUSED, if_.was_read, if_.versions_known, if_.versions_asked, if_.all_brokers_have_it, if_.login_begun,
    )  # fmt: skip
    explanation: ClassVar = Explanation(
        "suspect-version",
        "Closed on the first request of a version",
        Severity.WARNING,
        "The broker closed the connection on the first request of this API and version, without a response, and the "
        "client did not ask with ApiVersions which versions the broker has.",
        "A broker that does not have the version closes the connection. It may also have been stopped at this moment, "
        "or want TLS or a login.",
        "See the broker's log for this time. Let the client ask for versions (api.version.request=true in librdkafka, "
        "no api_version in kafka-python), or set the broker's true version in the client.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """Whatever the version is."""
        return end.begins

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        return (
            f"the broker closed the connection on the first {end.name}, and the client did not ask for versions "
            "(ApiVersions): the broker may not have this one"
        )

    @classmethod
    def path(cls, _end: ConnectionEnd) -> str:
        return _OF_VERSION


_OLD_OR_NO_BROKER: Final = (
    ": it may be of Kafka 0.9, which never answers ApiVersions (api.version.request=false and broker.version.fallback "
    "in librdkafka, api_version in kafka-python), or no broker"
)


@counts_requests
class ClosedInFlight(CloseCause):
    """Finds requests whose connection was closed before their response."""

    contradictions: ClassVar = (
        if_.other_protocol, if_.version_not_offered, if_.never_acknowledged, if_.answered_by_another_id,
    )  # fmt: skip
    quiet_ns: ClassVar = 60 * SECOND
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
        return words + _OLD_OR_NO_BROKER if at_start and words else words

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


VERSION_CODES: Final = frozenset(each.explanation.code for each in (RemovedVersion, SuspectVersion))
"""Causes that are about a request's version."""
