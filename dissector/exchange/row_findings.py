"""Findings that a row has because of what the capture holds of it, not because of a field."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from dissector.core.finding import Finding, Severity
from dissector.core.text import counted
from dissector.detection.other_protocols import OtherProtocol
from dissector.detection.tls_alerts import NO_ALERT, alert_name
from dissector.exchange.model import ExchangeMessage
from dissector.exchange.silence_causes import UNANSWERED_CODE
from dissector.index.exchange_table import RowKind
from dissector.index.frame_table import FrameTable
from dissector.protocol.schema.api_groups import WAITING
from dissector.tls.session import TlsSession

ORPHAN: Final = Finding("orphan", Severity.WARNING, "response without a request in this capture", "response")
ORPHAN_OF_WHOLE: Final = Finding(
    "orphan", Severity.WARNING,
    "response without a request, although the capture of its connection is complete: the broker may have answered no "
    "request",
    "response",
)  # fmt: skip
NOT_PENDING: Final = "response-not-pending"
"""The code of a response that the broker sent to no request, on a connection of which nothing is missing."""
UNANSWERED: Final = Finding(UNANSWERED_CODE, Severity.NOTE, "no response in this capture", "request")
"""A state of the row, and a note: a cause that several rows show is one finding, at one of them, with its number."""
MAY_WAIT: Final = Finding(
    UNANSWERED_CODE,
    Severity.NOTE,
    f"{UNANSWERED.message}: it may wait for records or other members",
    "request",
)
CLOSED: Final = Finding(UNANSWERED_CODE, Severity.NOTE, "no response before the connection closed", "request")
NO_RESPONSE: Final = (UNANSWERED, MAY_WAIT, CLOSED)
CUT_SHORT: Final = Finding(
    "cut-short", Severity.ERROR, "the connection closed before the response was complete", "response"
)
ACKS_0: Final = Finding("no-response-expected", Severity.NOTE, "acks=0: the broker sends no response", "request")

ENCRYPTED: Final = Finding("tls", Severity.WARNING, "encrypted: TLS")
TLS_ON_PLAIN_PORT: Final = Finding(
    "tls-on-plain-port", Severity.ERROR,
    "TLS on a plaintext listener: set security.protocol=PLAINTEXT (SASL_PLAINTEXT with a login), or use an SSL "
    "listener",
)  # fmt: skip
_USE_TLS: Final = "set security.protocol=SSL (SASL_SSL with a login), or use a PLAINTEXT listener"
_OF_CERTIFICATES: Final = frozenset((41, 42, 43, 44, 45, 46, 48, 49, 116))
"""Alerts about the certificate of the other side, or its absence."""
MOST_SHOWN: Final = 3
"""Ids that are named."""
_OF_VERSIONS: Final = frozenset((40, 70, 71, 86))
_UNRECOGNIZED_NAME: Final = 112


def not_pending(number: int, pending: Sequence[int], *, is_answered: bool) -> Finding:
    """The finding of a response whose id is that of no request that waits: `pending` are the ids of those that do.
    `is_answered`: a request with this id has its response already."""
    waiting = ", ".join(map(str, pending[:MOST_SHOWN])) + (", …" if len(pending) > MOST_SHOWN else "")
    words = (
        f"the broker answered correlation id {number} again: its request has a response already"
        if is_answered
        else f"the broker answered correlation id {number}, which no request of this connection has"
    )
    words += f"; {waiting} {'waits' if len(pending) == 1 else 'wait'}" if pending else ""
    return Finding(NOT_PENDING, Severity.ERROR, words, "response.header.correlation_id")


def missing_response(api_key: int, *, is_expected: bool, is_ended: bool) -> Finding:
    """The finding of a request without a response; `is_ended`: its connection was closed, or begun to be."""
    if not is_expected:
        return ACKS_0
    if is_ended:
        return CLOSED
    return MAY_WAIT if api_key in WAITING else UNANSWERED


def ends_stream(frames: FrameTable, frame: int, response: ExchangeMessage) -> bool:
    """Whether the bytes of a direction end in the middle of this response, and not those that were captured alone."""
    if len(response.data) == response.size or response.whole < len(response.data) or response.is_cut:
        return False
    return frames.is_last(frame)


def between_frames(kind: RowKind, size: int, tls: TlsSession | None) -> Finding:
    """The finding of a gap, or of bytes without frames. `tls` is that of their connection."""
    words = "without a frame that could be recognized"
    if kind is RowKind.GAP:
        words = "were not captured" if tls is None else "were not captured or not decrypted"
    return Finding(kind.name.lower(), Severity.ERROR, f"{size:,} bytes {words}")


class NonKafka(NamedTuple):
    """What is known of a connection on Kafka's port that speaks something else."""

    kind: RowKind
    protocol: OtherProtocol
    alert: int
    """The TLS alert that ended it, `NO_ALERT` for none."""
    is_alert_of_client: bool
    is_refused: bool
    """Whether the server closed it without a byte."""
    tls: TlsSession | None


def non_kafka(connection: NonKafka) -> Finding:
    """The finding of a connection on Kafka's port that speaks something else."""
    if connection.kind is not RowKind.TLS:
        return Finding(connection.kind.name.lower(), Severity.WARNING, _non_kafka_words(connection.protocol))
    if connection.alert != NO_ALERT:
        return tls_alert(connection.alert, is_client=connection.is_alert_of_client)
    return TLS_ON_PLAIN_PORT if connection.is_refused else _encrypted(connection.tls)


def _encrypted(session: TlsSession | None) -> Finding:
    """The finding of a connection that is not decrypted, with what its hellos say."""
    if session is None or session.hello is None:
        return ENCRYPTED
    words = f"encrypted: {session.version or 'TLS, no answer of the server'}"
    words += f", {session.cipher}" if session.cipher else ""
    words += f", to {session.server_name}" if session.server_name else ""
    words += ", resumed" if session.is_resumed else ""
    words += f", about {counted(session.exchanges, 'exchange')}" if session.exchanges else ""
    return replace(ENCRYPTED, message=words)


def _non_kafka_words(protocol: OtherProtocol) -> str:
    if protocol in (OtherProtocol.HTTP, OtherProtocol.HTTP2):
        return (
            f"{protocol.label} on Kafka's port, not Kafka: no broker answers it; have a health check open a TCP "
            "connection only, or correct the URL"
        )
    if protocol is OtherProtocol.PROXY:
        return (
            f"{protocol.label} on Kafka's port, not Kafka: brokers do not read this header of a load balancer, and "
            "close the connection; switch it off there (send-proxy in HAProxy)"
        )
    if protocol > OtherProtocol.UNKNOWN:
        return f"{protocol.label} on Kafka's port, not Kafka"
    if protocol is OtherProtocol.UNDETERMINED:
        return "on Kafka's port, but no Kafka frame was recognized in it"
    return "on Kafka's port, but not Kafka"


def other_server(protocol: OtherProtocol, alert: int) -> Finding:
    """The finding of the first bytes of a server that responds to Kafka requests in another protocol."""
    if protocol is OtherProtocol.TLS:
        name = f" (alert {alert_name(alert)})" if alert != NO_ALERT else ""
        return Finding("plain-on-tls-port", Severity.ERROR, f"plain Kafka on a TLS listener{name}: {_USE_TLS}")
    words = f"the server responds in {protocol.label}: this is no broker's port; correct bootstrap.servers"
    return Finding("not-a-broker", Severity.ERROR, words)


def tls_alert(alert: int, *, is_client: bool) -> Finding:
    """The finding of a TLS handshake that failed."""
    side = "client" if is_client else "broker"
    words = f"TLS handshake failed: the {side} sent the alert {alert_name(alert)}"
    return Finding("tls-alert", Severity.ERROR, f"{words}: {_alert_advice(alert, is_client=is_client)}")


def _alert_advice(alert: int, *, is_client: bool) -> str:
    if alert in _OF_CERTIFICATES and is_client:
        return (
            "it does not trust the broker's certificate; set ssl.truststore.location (ssl.ca.location in librdkafka) "
            "to the CA that signed it"
        )
    if alert in _OF_CERTIFICATES:
        return (
            "it wants a certificate of the client that it trusts; set ssl.keystore.location "
            "(ssl.certificate.location in librdkafka)"
        )
    if alert in _OF_VERSIONS:
        return "the sides have no version or cipher in common; compare ssl.enabled.protocols and ssl.cipher.suites"
    if alert == _UNRECOGNIZED_NAME:
        return "it has no certificate for the host name; correct bootstrap.servers and advertised.listeners"
    return f"read the log of the {'broker' if is_client else 'client'} too, and compare the ssl.* settings of both"
