"""Bytes that the capture lacks, and the exchanges that stand next to them."""

from typing import ClassVar, Final

import numpy as np

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, RowFinder
from dissector.analysis.findings.found import Found
from dissector.analysis.findings.recurring import SECOND, Recent
from dissector.analysis.findings.rows import Rows
from dissector.findings import Severity
from dissector.session.table import NO_FRAME, RowKind

NEAR_NS: Final = SECOND


class NearLoss(RowFinder):
    """A hole in a connection's stream, next to an exchange."""

    explanation: ClassVar = Explanation(
        "near-loss",
        "Next to a loss",
        Severity.NOTE,
        "Bytes of this connection are missing from the capture right before this exchange, or right behind a request "
        "without an answer, which may have been among them.",
        "The capture dropped packets or began too late. Bytes that the receiver acknowledged were lost by the capture "
        "alone; others by the network, which then sends them again: that takes 200 ms or more, and looks like a slow "
        "answer.",
        "Do not judge latency or missing answers here by this capture alone. Capture nearer, with a larger buffer; see "
        "whether TCP repeats itself in Wireshark (tcp.analysis.retransmission).",
    )
    quiet_ns: ClassVar = 10 * SECOND

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._waiting: Recent[int, list[int]] = Recent(list)
        """By connection: row and time of its newest request without an answer."""

    def take(self, rows: Rows) -> None:
        """Holes are few, and so are requests without an answer."""
        alone = (rows.kind == RowKind.EXCHANGE) & (rows.response == NO_FRAME)
        some = rows.where((rows.kind == RowKind.GAP) | alone)
        sizes, times = some.asked_size + some.answered_size, np.maximum(some.asked_ns, some.answered_ns)
        columns = (some.row, some.kind, some.connection, sizes, times)
        for row, kind, connection, size, time_ns in zip(*(column.tolist() for column in columns), strict=True):
            if kind == RowKind.EXCHANGE:
                self._waiting.of(connection)[:] = row, time_ns
            else:
                self._hole(rows, row, connection, size, time_ns)

    def _hole(self, rows: Rows, row: int, connection: int, size: int, time_ns: int) -> None:
        """Tell the request before it that has no answer; else the exchange behind it."""
        waiting = self._waiting.of(connection)
        if waiting and 0 <= time_ns - waiting[1] <= NEAR_NS:
            words = f"{size:,} bytes are missing behind it (row {row + 1:,}): the answer may be among them"
            self.again(connection, waiting[0], time_ns, words, "request", "losses on this connection")
            waiting.clear()
            return
        later = (rows.connection == connection) & (rows.row > row) & (rows.kind == RowKind.EXCHANGE)
        later &= (rows.asked_ns >= time_ns) & (rows.asked_ns - time_ns <= NEAR_NS)
        if later.any():
            words = f"{size:,} bytes are missing before it (row {row + 1:,})"
            self.again(connection, int(rows.row[later][0]), time_ns, words, "request", "losses on this connection")
