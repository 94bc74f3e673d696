"""Connections that end at their first requests, for a wrong setting of the client: the broker closed them without a
response, or they lead to a controller's listener."""

from abc import abstractmethod
from collections.abc import Iterable
from enum import Enum, auto
from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NEVER
from dissector.core.columns import tuples
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
"""All rows of a connection were taken: the one at hand was the last of them."""
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
        for row, connection in tuples(unanswered.row, unanswered.connection):
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


class LastExchange(ConnectionDetector):
    """Finds connections that end with a certain row: of each the row that may be the last one is kept until the
    connection is closed."""

    def __init__(self, sink: FindingSink, context: FindingContext) -> None:
        super().__init__(sink, context)
        self._rows: dict[int, int] = {}
        """By connection: the row that may be the last one."""

    @property
    def revisable_rows(self) -> Int64:
        """Rows whose connection is not closed yet."""
        return np.array(list(self._rows.values()), np.int64)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report a row once its connection is closed, if nothing came after it."""
        for row, connection in self._candidates(rows):
            self._rows[connection] = row
        for connection, row in list(self._rows.items()):
            closed_ns, by_client = self.context.closed(connection)
            is_last = self.context.last_row(connection) in (row, NO_ROW)
            if closed_ns == NEVER and is_last:
                continue
            del self._rows[connection]
            if is_last:
                self._report_last(row, by_client=by_client)

    @abstractmethod
    def _candidates(self, rows: ExaminedRows) -> Iterable[tuple[int, int]]:
        """Return the rows, each with its connection, that may be the last of it."""

    @abstractmethod
    def _report_last(self, row: int, *, by_client: bool) -> None:
        """Report a row with which a connection ended, and which end closed it."""


class LoginRefused(LastExchange):
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

    def _candidates(self, rows: ExaminedRows) -> Iterable[tuple[int, int]]:
        tokens = rows.where((rows.kind == RowKind.SASL) & (rows.request != NO_FRAME))
        return tuples(tokens.row, tokens.connection)

    def _report_last(self, row: int, *, by_client: bool) -> None:
        if not by_client:
            advice = "correct user and password"
            self.report(row, f"the broker refused the login and closed the connection: {advice}", "request")


class ControllerListener(LastExchange):
    """Finds connections to a controller of which ApiVersions is the only exchange."""

    explanation: ClassVar = Explanation(
        "controller-listener",
        "Client connected to a controller's listener",
        Severity.ERROR,
        "ApiVersions is the only request of the connection, and its response offers Vote but not Metadata, as a "
        "controller's listener does.",
        "The client's bootstrap.servers has a controller's port (controller.listener.names, often 9093). Producers, "
        "consumers and most admin calls need a broker.",
        "Set bootstrap.servers to a broker's listener, by default on port 9092. Tools that manage controllers take "
        "--bootstrap-controller (bootstrap.controllers).",
    )

    def _candidates(self, rows: ExaminedRows) -> Iterable[tuple[int, int]]:
        opening = rows.where(rows.has_both & (rows.api_key == ApiKey.API_VERSIONS) & (rows.request_start == 0))
        exchanges = tuples(opening.row, opening.connection)
        return ((row, connection) for row, connection in exchanges if self._is_controller(connection))

    def _is_controller(self, connection: int) -> bool:
        offered = self.context.offered(connection)
        return ApiKey.VOTE in offered and ApiKey.METADATA not in offered

    def _report_last(self, row: int, *, by_client: bool) -> None:
        advice = "set bootstrap.servers to a broker's listener"
        self.report(row, f"this is a controller's listener, which has no Metadata: {advice}", "response")
