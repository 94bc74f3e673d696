"""Requests that a broker refused by closing the connection: too large, of no layout, or before a login."""

from typing import ClassVar, Final

from dissector.core.finding import Severity
from dissector.core.text import counted
from dissector.findings.explanation import Explanation
from dissector.findings.framework import contradictions as if_
from dissector.findings.framework.closed_requests import CloseCause
from dissector.findings.framework.connection_end import ConnectionEnd
from dissector.protocol.schema.api_keys import ApiKey

AT_START: Final = 16
"""Rows of a connection up to which a close is at its start."""
FIRST_TAGGED: Final = 3
"""The first version of ApiVersions with tagged fields, in its header too."""


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
        "or a client that corrupted its own stream.",
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


class ClosedAtApiVersions(CloseCause):
    """Finds connections that the broker closed on their first request, ApiVersions."""

    contradictions: ClassVar = (*if_.REFUSED, if_.beginning_missing)
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
        "api_version in kafka-python, Config.Version in sarama, kgo.MaxVersions in franz-go. A request without a "
        "client id is legal, but old releases of Redpanda can't read it in version 3: set client.id.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """It is the only request."""
        return end.key == ApiKey.API_VERSIONS and len(end.rows.row) == 1

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        return (
            f"the broker closed the connection on {end.name}: it wants TLS ({end.advice.tls}), or does not know this "
            f"version ({end.advice.older})"
        )

    @classmethod
    def more(cls, end: ConnectionEnd) -> str:
        """Say that there is no client id, which not all brokers can read in versions with tagged fields."""
        has_none = end.version >= FIRST_TAGGED and not end.client_id
        return "; it has no client id, which old Redpanda can't read: set one" if has_none else ""


class LoginRequired(CloseCause):
    """Finds connections that the broker closed on their first request after ApiVersions, as there was no login."""

    contradictions: ClassVar = (
        *if_.REFUSED, if_.beginning_missing, if_.login_begun, if_.others_answered, if_.version_not_offered,
    )  # fmt: skip
    explanation: ClassVar = Explanation(
        "login-required",
        "Closed because there was no login",
        Severity.ERROR,
        "The broker responded to ApiVersions, and closed the connection on the next request. The client did not log "
        "in.",
        "The listener is SASL_PLAINTEXT or SASL_SSL: before a login it accepts only ApiVersions and SaslHandshake. "
        "The client is configured with security.protocol=PLAINTEXT, which is the default, or SSL.",
        "Set security.protocol=SASL_PLAINTEXT (SASL_SSL with TLS), sasl.mechanism and the credentials "
        "(sasl.jaas.config in Java, sasl.username and sasl.password in librdkafka). If the listener needs no login, "
        "or other connections to it work without one, read the broker's log for this time, and that of a proxy in "
        "between: a proxy that is older than the client may offer the broker's versions without knowing them.",
    )

    @classmethod
    def applies(cls, end: ConnectionEnd) -> bool:
        """ApiVersions was answered, and this is the first other request."""
        return end.key != ApiKey.API_VERSIONS and len(end.answered.row) > 0 and len(end.rows.row) <= AT_START

    @classmethod
    def words(cls, end: ConnectionEnd) -> str:
        return (
            f"the broker closed the connection on the first request without a login: {end.advice.login}; if the "
            f"listener needs none, a proxy in between may not know {end.name}"
        )
