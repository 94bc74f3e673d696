"""Connections that end with a certain exchange, for a wrong setting of the client: a login by raw tokens, which the
broker refused, or ApiVersions of a controller's listener."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
from dissector.core.columns import tuples
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.protocol.schema.api_keys import ApiKey

NO_ROW: Final = -1
"""All rows of a connection were taken: the one at hand was the last of them."""


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


def _may_be_last(rows: ExaminedRows) -> Bool:
    """Return the rows behind which none of their connection begins in a later packet."""
    last = np.zeros(int(rows.connection.max(initial=0)) + 1, np.int64)
    np.maximum.at(last, rows.connection, rows.packet)
    found: Bool = rows.packet == last[rows.connection]
    return found


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
        tokens = rows.where((rows.kind == RowKind.SASL) & (rows.request != NO_FRAME) & _may_be_last(rows))
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
        opens = rows.has_both & (rows.api_key == ApiKey.API_VERSIONS) & (rows.request_start == 0)
        opening = rows.where(opens & _may_be_last(rows))
        exchanges = tuples(opening.row, opening.connection)
        return ((row, connection) for row, connection in exchanges if self._is_controller(connection))

    def _is_controller(self, connection: int) -> bool:
        offered = self.context.offered(connection)
        return ApiKey.VOTE in offered and ApiKey.METADATA not in offered

    def _report_last(self, row: int, *, by_client: bool) -> None:
        advice = "set bootstrap.servers to a broker's listener"
        self.report(row, f"this is a controller's listener, which has no Metadata: {advice}", "response")
