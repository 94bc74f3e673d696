"""Responses that overtake others: a broker answers the requests of a connection in their order."""

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
    """An answer that overtook another one."""

    explanation: ClassVar = Explanation(
        "out-of-order-response",
        "A response out of order",
        Severity.ERROR,
        "The server answered a later request of a connection before an earlier one.",
        "Kafka's brokers answer the requests of a connection strictly in order. A proxy, a mock, or a broker of "
        "another make does not; or several connections were merged into one on the way.",
        "Have whatever stands between client and broker keep the order. Clients that match answers by order alone take "
        "one answer for another, and Kafka's own closes the connection on an id that it did not expect.",
    )

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._furthest = (Column(np.int64, -1), Column(np.int64, -1))
        """By connection: how far requests that were answered go in the client's stream, and the answers in the
        server's."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Of the answered rows of a connection, one after the other, both streams go up."""
        answered = rows.with_response
        if not len(answered.row):
            return
        order = np.lexsort((answered.request_start, answered.connection))
        answered = answered.where(order)
        late = np.zeros(len(order), np.bool_)
        for furthest, starts in zip(self._furthest, (answered.request_start, answered.response_start), strict=True):
            late |= _behind(furthest, answered.connection, starts)
        for at in np.flatnonzero(late).tolist():
            connection, row, time_ns = (
                int(each[at]) for each in (answered.connection, answered.row, answered.response_ns)
            )
            words = "this response and that of another request came in the other order than the requests"
            self.report_repeated(connection, row, time_ns, words, "response", "times on this connection")


def _behind(furthest: Column, connection: Int64, starts: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows, sorted by connection, stand behind one before them; `furthest` goes along."""
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
