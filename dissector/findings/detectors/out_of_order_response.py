"""Responses that overtake others: a broker responds to the requests of a connection in order."""

from typing import ClassVar

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink


class OutOfOrderResponse(ConnectionDetector):
    """Finds responses that overtook others."""

    explanation: ClassVar = Explanation(
        "out-of-order-response",
        "Response out of order",
        Severity.ERROR,
        "The server responded to a later request of the connection before an earlier one.",
        "Kafka's brokers respond to the requests of a connection strictly in order. A proxy, a mock or another "
        "vendor's broker does not, or a proxy merged several connections into one.",
        "Make every proxy between client and broker keep the order. Clients that match responses only by order mix "
        "them up, and Kafka's Java client closes the connection on an unexpected correlation id.",
    )

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._furthest = (Column(np.int64, -1), Column(np.int64, -1))
        """By connection: the furthest start of a paired request in the client's stream, and of a response in the
        server's."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report pairs whose requests and responses are not in the same order in their streams."""
        paired = rows.with_response
        if not len(paired.row):
            return
        order = np.lexsort((paired.request_start, paired.connection))
        paired = paired.where(order)
        late = np.zeros(len(order), np.bool_)
        for furthest, starts in zip(self._furthest, (paired.request_start, paired.response_start), strict=True):
            late |= _behind(furthest, paired.connection, starts)
        for at in np.flatnonzero(late).tolist():
            connection, row, time_ns = (int(each[at]) for each in (paired.connection, paired.row, paired.response_ns))
            words = "this response and another one came in a different order than their requests"
            self.report_repeated(connection, row, time_ns, words, "response", "times on this connection")


def _behind(furthest: Column, connection: Int64, starts: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows, sorted by connection, start before a previous one. Updates `furthest`."""
    furthest.grow(int(connection[-1]) + 1)
    first = np.concatenate([[True], np.diff(connection) != 0])
    group = np.cumsum(first) - 1
    # One running maximum for all: each connection's numbers are lifted above those of the ones before it.
    lift = group * np.int64(1 << 44)
    before = np.where(first, furthest.values[connection], -1)
    so_far = np.maximum.accumulate(np.maximum(starts, np.where(first, before, starts)) + lift)
    previous = np.where(first, before, np.concatenate([[-1], so_far[:-1]]) - lift)
    last = np.concatenate([first[1:], [True]])
    furthest.values[connection[last]] = (so_far - lift)[last]
    behind: np.ndarray[tuple[int], np.dtype[np.bool_]] = starts < previous
    return behind
