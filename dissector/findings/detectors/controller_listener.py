"""Clients that connect to a controller's listener and find no API there that they can use."""

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
from dissector.protocol.schema.api_keys import ApiKey

NO_ROW: Final = -1
"""All rows of a connection were taken: the one at hand was the last of them."""


class ControllerListener(ConnectionDetector):
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

    def __init__(self, sink: FindingSink, context: FindingContext) -> None:
        super().__init__(sink, context)
        self._first: dict[int, int] = {}
        """By connection: its ApiVersions exchange, which may be the only one."""

    @property
    def revisable_rows(self) -> Int64:
        """Exchanges whose connection is not closed yet."""
        return np.array(list(self._first.values()), np.int64)

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report an exchange once its connection is closed, if no other came after it."""
        opening = rows.has_both & (rows.api_key == ApiKey.API_VERSIONS) & (rows.request_start == 0)
        for row, connection in zip(rows.row[opening].tolist(), rows.connection[opening].tolist(), strict=True):
            if _is_controller(self.context, connection):
                self._first[connection] = row
        for connection, row in list(self._first.items()):
            is_last = self.context.last_row(connection) in (row, NO_ROW)
            if self.context.closed(connection)[0] == NEVER and is_last:
                continue
            del self._first[connection]
            if is_last:
                advice = "set bootstrap.servers to a broker's listener"
                self.report(row, f"this is a controller's listener, which has no Metadata: {advice}", "response")


def _is_controller(context: FindingContext, connection: int) -> bool:
    offered = context.offered(connection)
    return ApiKey.VOTE in offered and ApiKey.METADATA not in offered
