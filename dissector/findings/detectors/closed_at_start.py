"""Connections that the broker closed at their first requests, without a response: for a wrong setting of the client."""

from enum import Enum, auto
from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NEVER
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol.schema.api_keys import ApiKey

AT_START: Final = 16
"""Rows of a connection up to which a close is at its start."""
NO_ROW: Final = -1
"""All rows of a connection were taken: the token was the last of them."""
LARGE: Final = 1 << 20
"""A request from this size on may be refused for its size."""
OF_LOGINS: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


class Cause(Enum):
    """Why a broker closed a connection at its first request."""

    API_VERSIONS = auto()
    NO_LOGIN = auto()


def cause_of_close(context: FindingContext, connection: int) -> Cause | None:
    """Return why a broker closed a connection at its first requests, None if it did not or the cause is not known."""
    closed_ns, by_client = context.closed(connection)
    if closed_ns == NEVER or by_client or context.is_server_foreign(connection):
        return None
    rows = context.rows_of(connection, AT_START + 1)
    columns = (rows.kind, rows.api_key, rows.request, rows.response, rows.request_start, rows.request_size)
    kinds, keys, requests, responses, starts, sizes = (column.tolist() for column in columns)  # few: quicker so
    is_opening = starts[0] == 0 and keys[0] == ApiKey.API_VERSIONS and len(kinds) <= AT_START
    if not is_opening or any(kind != RowKind.EXCHANGE for kind in kinds) or max(sizes) >= LARGE:
        return None
    if NO_FRAME in requests:
        return None
    answered = [key for key, response in zip(keys, responses, strict=True) if response != NO_FRAME]
    if not answered:
        return Cause.API_VERSIONS if len(keys) == 1 else None
    others = [at for at, key in enumerate(keys) if key != ApiKey.API_VERSIONS]
    if any(key != ApiKey.API_VERSIONS for key in answered) or not others or not set(OF_LOGINS).isdisjoint(keys):
        return None
    first = others[0]
    is_offered = context.is_offered(connection, keys[first], rows.version[first].item())
    return Cause.NO_LOGIN if is_offered else None


class ClosedAtStart(ConnectionDetector):
    """Finds connections that the broker closed for one cause."""

    cause: ClassVar[Cause]
    advice: ClassVar[str]
    only_unanswered: ClassVar = True

    def __init__(self, sink: FindingSink, context: FindingContext) -> None:
        super().__init__(sink, context)
        self._reported: BoundedStates[int, list[int]] = BoundedStates(list)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report one finding for each connection, at its first request without a response."""
        unanswered = rows.unanswered
        for row, connection in zip(unanswered.row.tolist(), unanswered.connection.tolist(), strict=True):
            reported = self._reported.of(connection)
            if not reported and cause_of_close(self.context, connection) is self.cause:
                reported.append(row)
                self.report(row, self.advice, "request")


class ClosedAtApiVersions(ClosedAtStart):
    """Finds connections that the broker closed on their first request, ApiVersions."""

    cause: ClassVar = Cause.API_VERSIONS
    advice: ClassVar = (
        "the broker closed the connection on ApiVersions: it wants TLS (security.protocol=SSL or SASL_SSL), or is "
        "older than the client (use an older one, or api.version.request=false in librdkafka)"
    )
    explanation: ClassVar = Explanation(
        "closed-at-api-versions",
        "Closed on ApiVersions",
        Severity.ERROR,
        "The first request of the connection is ApiVersions, and the broker closed the connection without a response.",
        "The listener, or a proxy in front of it, expects TLS; or the broker does not know ApiVersions, or this "
        "version of it. Kafka's own brokers since 2.4 respond with version 0 instead (KIP-511); Azure Event Hubs and "
        "brokers before 0.10 close the connection.",
        "Set security.protocol=SSL or SASL_SSL if the listener uses TLS. Otherwise use an older client, or configure "
        "the broker's version in this one: api.version.request=false and broker.version.fallback in librdkafka, "
        "api_version in kafka-python.",
    )


class LoginRequired(ClosedAtStart):
    """Finds connections that the broker closed on their first request after ApiVersions, as there was no login."""

    cause: ClassVar = Cause.NO_LOGIN
    advice: ClassVar = (
        "the broker closed the connection on the first request without a login: set security.protocol=SASL_PLAINTEXT "
        "(SASL_SSL with TLS) and sasl.mechanism"
    )
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


class LoginRefused(ConnectionDetector):
    """Finds raw SASL tokens on which the broker closed the connection: before SaslAuthenticate it could not say why."""

    explanation: ClassVar = Explanation(
        "login-refused",
        "Login refused",
        Severity.ERROR,
        "The client sent a SASL token after SaslHandshake version 0, and the broker closed the connection without a "
        "response.",
        "The user or password is wrong, or the user is not set up for this mechanism. With version 0 of the handshake "
        "a broker can't return an error (KIP-152): it closes the connection.",
        "Correct the credentials (sasl.jaas.config, or sasl.username and sasl.password). The broker's log has the "
        "reason. Clients of Kafka 1.0 and newer use SaslAuthenticate, which returns an error.",
    )

    def __init__(self, sink: FindingSink, context: FindingContext) -> None:
        super().__init__(sink, context)
        self._tokens: dict[int, int] = {}
        """By connection: the row of a client's token that may be the last one."""

    @property
    def revisable_rows(self) -> Int64:
        """Tokens whose connection is not closed yet."""
        return np.array(list(self._tokens.values()), np.int64)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report a token once the connection is closed, if nothing came after it."""
        of_clients = (rows.kind == RowKind.SASL) & (rows.request != NO_FRAME)
        for row, connection in zip(rows.row[of_clients].tolist(), rows.connection[of_clients].tolist(), strict=True):
            self._tokens[connection] = row
        for connection, row in list(self._tokens.items()):
            closed_ns, by_client = self.context.closed(connection)
            is_last = self.context.last_row(connection) in (row, NO_ROW)
            if closed_ns == NEVER and is_last:
                continue
            del self._tokens[connection]
            if is_last and not by_client:
                self.report(
                    row, "the broker refused the login and closed the connection: correct user and password", "request"
                )
