"""Requests that are larger than the broker accepts."""

from typing import ClassVar

from dissector.core.batches import NEVER
from dissector.core.finding import Severity
from dissector.core.text import counted
from dissector.findings.detectors.closed_in_flight import LARGE, LARGEST_REQUEST, _is_refused
from dissector.findings.explanation import Explanation
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows


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
        columns = (large.row, large.connection, large.request, large.request_size)
        for row, connection, frame, size in zip(*(column.tolist() for column in columns), strict=True):
            if self.context.closed(connection)[0] != NEVER and _is_refused(self.context, frame, size):
                words = f"the connection was closed on a request of {counted(size, 'byte')}"
                more = "; brokers accept 100 MiB by default" if size > LARGEST_REQUEST else ""
                self.report(row, words + more, "request")
