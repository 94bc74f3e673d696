"""Connections that the broker, or a device on the way, ended whatever the request on them was: for being idle, or
because a login had expired."""

from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.core.text import duration
from dissector.core.times import SECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework import contradictions as if_
from dissector.findings.framework.closed_requests import CloseCause
from dissector.findings.framework.connection_end import ConnectionEnd

IDLE_NS: Final = 3 * SECOND
"""A broker or a device that closes connections for being idle waits longer."""
SURE_IDLE_NS: Final = 30 * SECOND
"""From here on idling is why; a connection that was silent for less may as well be one of a broker that was stopped."""
USUAL_IDLE_NS: Final = 600 * SECOND
"""`connections.max.idle.ms` of brokers unless configured otherwise."""


class ClosedBeforeRequest(CloseCause):
    """Finds requests on connections that the broker had closed already, mostly for being idle."""

    contradictions: ClassVar = (if_.closed_by_client, if_.other_protocol)
    explanation: ClassVar = Explanation(
        "closed-before-request",
        "Request on a connection that was already closed",
        Severity.ERROR,
        "The broker, or a device on the way, had closed the connection before the client sent this request. The "
        "broker never read it, whatever it contains.",
        "If the connection had been quiet for a while, it was closed as idle: by the broker (connections.max.idle.ms, "
        "10 minutes unless configured otherwise), a load balancer or a firewall (often 4 to 6 minutes). Otherwise the "
        "broker or a proxy was stopped.",
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
        usual = _is_usual(end.idle_ns)
        whose = "the default of connections.max.idle.ms" if usual else "connections.max.idle.ms, or a device between"
        return (
            f"the connection was closed as idle {before}: nothing had been said for {duration(end.idle_ns)} ({whose}); "
            "have the client close idle connections sooner, or repeat the request on a new one"
        )


class SessionExpired(CloseCause):
    """Finds requests behind the end of their login, on which the broker closes the connection."""

    contradictions: ClassVar = (
        if_.closed_by_client, if_.closed_later, if_.unreadable, if_.other_protocol, if_.never_acknowledged,
    )  # fmt: skip
    explanation: ClassVar = Explanation(
        "session-expired",
        "Closed because the login had expired",
        Severity.ERROR,
        "SaslAuthenticate gave the session a lifetime (session_lifetime_ms), the client sent this request after its "
        "end without another login on the connection, and the broker closed the connection.",
        "The broker has connections.max.reauth.ms, or the token of OAUTHBEARER expired (KIP-368). Kafka's client "
        "logs in again on the connection before that; librdkafka does since 2.2. Older clients and some others don't: "
        "they lose the connection each time.",
        "Use a client that logs in again, or repeat the request on a new connection. Otherwise raise or remove "
        "connections.max.reauth.ms on the listener, or issue tokens with a longer lifetime.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """The request came too late."""
        return end.request_ns >= end.session_end_ns

    @classmethod
    def kind(cls, _end: ConnectionEnd) -> str:
        """One for all requests."""
        return ""

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        late = duration(end.request_ns - end.session_end_ns)
        return (
            f"the broker closed the connection as its login had expired {late} before this request "
            "(session_lifetime_ms of SaslAuthenticate): use a client that logs in again (KIP-368), or raise "
            "connections.max.reauth.ms and the lifetime of tokens"
        )


class ClosedWhileWaiting(CloseCause):
    """Finds connections that were closed as idle while a request on them waited for its response."""

    contradictions: ClassVar = (if_.closed_by_client, if_.closed_before, if_.other_protocol, if_.never_acknowledged)
    explanation: ClassVar = Explanation(
        "closed-while-waiting",
        "Closed as idle while a request waited",
        Severity.WARNING,
        "The broker, or a device on the way, closed the connection half a minute or longer after the last byte on it, "
        "and a request was still waiting for its response.",
        "A connection on which nothing is sent counts as idle, whatever waits on it: after connections.max.idle.ms of "
        "the broker (10 minutes unless configured otherwise), or the timeout of a load balancer or firewall (often 4 "
        "to 6 minutes). A JoinGroup waits for the other members as long as the rebalance timeout, a Fetch for "
        "max_wait_ms. Or the broker hung and was stopped.",
        "Have requests wait for less: max.poll.interval.ms (session.timeout.ms in old clients) for JoinGroup, "
        "fetch.max.wait.ms for Fetch; or raise the idle timeout of the broker and of every device in between.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """Nothing was said for long."""
        return end.idle_ns >= SURE_IDLE_NS

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        waited = duration(end.closed_ns - end.request_ns)
        if _is_usual(end.idle_ns):
            return (
                f"the connection was closed as idle while {end.name} had waited for {waited}: nothing was said for "
                f"{duration(end.idle_ns)} (the default of connections.max.idle.ms)"
            )
        return (
            f"the broker closed the connection while {end.name} had waited for {waited}: nothing was said for "
            f"{duration(end.idle_ns)}, so it may have been closed as idle (connections.max.idle.ms, or a device "
            "between), or the broker was stopped"
        )


def _is_usual(idle_ns: int) -> bool:
    return abs(idle_ns - USUAL_IDLE_NS) < USUAL_IDLE_NS // 20
