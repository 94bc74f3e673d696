"""Bytes that the capture lacks, and the exchanges that stand next to them."""

from typing import ClassVar, Final

import numpy as np

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, RowFinder
from dissector.analysis.findings.found import Found
from dissector.analysis.findings.recurring import Recent
from dissector.analysis.findings.rows import Rows
from dissector.findings import Severity
from dissector.session.table import NO_FRAME, RowKind

NEAR_LOSS: Final = Explanation(
    "near-loss",
    "Next to a loss",
    Severity.NOTE,
    "Bytes of this connection are missing from the capture right before this exchange, or right behind a request "
    "without an answer, which may have been among them; or TCP sent bytes of the exchange again, or kept them waiting "
    "for others that came late: the message says for how long.",
    "Missing bytes that the receiver acknowledged were lost by the capture alone: it dropped packets or began too "
    "late. What the network loses is sent again: that takes 200 ms or more where nothing follows it, and looks like a "
    "slow answer. A receiver that is too busy to acknowledge makes TCP repeat itself too.",
    "Do not judge latency or missing answers here by this capture alone. Where bytes were sent again, look at the "
    "network and not at the broker: tcp.analysis.retransmission in Wireshark, nstat TcpRetransSegs on either side. "
    "Where the capture lacks bytes, capture nearer and with a larger buffer.",
)


class NearLoss(RowFinder):
    """A hole in a connection's stream, next to an exchange."""

    explanation: ClassVar = NEAR_LOSS

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._waiting: Recent[int, list[int]] = Recent(list)
        """By connection: its newest request without an answer."""

    def take(self, rows: Rows) -> None:
        """Holes are few, and so are requests without an answer."""
        alone = (rows.kind == RowKind.EXCHANGE) & (rows.response == NO_FRAME)
        some = rows.where((rows.kind == RowKind.GAP) | alone)
        of_client = some.request != NO_FRAME
        ends = np.where(of_client, some.asked_start + some.asked_size, some.answered_start + some.answered_size)
        times = np.maximum(some.asked_ns, some.answered_ns)
        columns = (some.row, some.kind, some.connection, of_client, ends, times)
        for row, kind, connection, is_asked, end, time_ns in zip(*(column.tolist() for column in columns), strict=True):
            if kind == RowKind.EXCHANGE:
                self._waiting.of(connection)[:] = [row]
            elif not is_asked and (waiting := self._waiting.of(connection)):
                words = f"the answer may be among the bytes that row {row + 1:,} lacks"
                self._tell(waiting.pop(), connection, time_ns, words)
            else:
                starts = rows.asked_start if is_asked else rows.answered_start
                behind = (rows.connection == connection) & (rows.kind == RowKind.EXCHANGE) & (starts == end)
                for number in rows.row[behind][:1].tolist():
                    side = "request" if is_asked else "response"
                    words = f"bytes are missing right before the {side}: see row {row + 1:,}"
                    self._tell(number, connection, time_ns, words)

    def _tell(self, row: int, connection: int, time_ns: int, words: str) -> None:
        self.again(connection, row, time_ns, words, "", "losses on this connection")
