"""The rest of a message that came late, as its sender waited for an acknowledgement that the receiver delayed.

A program that writes a message in two pieces meets Nagle's algorithm: the second, small one waits until the first is
acknowledged, and the receiver, which has nothing to answer yet, delays that by 40 to 200 ms. Twice may be chance: a
program may write the rest late by itself.
"""

from typing import ClassVar, Final

import numpy as np

from dissector.core.columns import tuples
from dissector.core.finding import Severity
from dissector.core.text import duration
from dissector.core.times import MILLISECOND
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.index.exchange_table import NO_FRAME

LEAST_NS: Final = 30 * MILLISECOND
"""The least time that a delayed acknowledgement takes: 40 ms with Linux, more with others."""
LEAST_SEEN: Final = 3
"""Such messages of one end of a connection before it is reported."""


class HeldTail(ConnectionDetector):
    """Finds ends of connections whose messages come in two pieces, the second one late."""

    explanation: ClassVar = Explanation(
        "delayed-tail",
        "Rest of a message held back",
        Severity.WARNING,
        "The last bytes of messages came right after the other end acknowledged the first ones, and this "
        "acknowledgment was delayed: until then, the sender held the rest back. At least three messages on this "
        "connection show it.",
        "The sender writes a message in several pieces, with Nagle's algorithm on: the last piece waits until the "
        "earlier ones are acknowledged. The receiver delays the acknowledgment by 40 ms (Linux) to 200 ms (Windows), "
        "because it has nothing to send. Neither the network nor the broker is slow.",
        "Set TCP_NODELAY on the sender's socket (socket.nagle.disable=true of librdkafka), or write each message at "
        "once: size, header and body in one buffer.",
    )

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._seen: BoundedStates[tuple[int, bool], list[int]] = BoundedStates(list)
        """How many are not reported yet, by connection and side."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Examine messages whose bytes came far apart."""
        sides = (
            ("request", rows.request, rows.request_ns, rows.request_transfer_ns),
            ("response", rows.response, rows.response_ns, rows.response_transfer_ns),
        )
        for side, frame, time_ns, transfer_ns in sides:
            slow = np.flatnonzero(rows.is_exchange & (frame != NO_FRAME) & (transfer_ns >= LEAST_NS))
            columns = (rows.row[slow], rows.connection[slow], time_ns[slow], transfer_ns[slow])
            for row, connection, begin_ns, took_ns in tuples(*columns):
                self._examine(row, connection, begin_ns, took_ns, side)

    def _examine(self, row: int, connection: int, begin_ns: int, took_ns: int, side: str) -> None:
        is_request = side == "request"
        if not self.context.was_held(connection, begin_ns + took_ns, of_client=is_request):
            return
        seen = self._seen.of((connection, is_request))
        seen.append(row)
        if len(seen) < LEAST_SEEN:
            return
        del seen[LEAST_SEEN:]
        other = "broker" if is_request else "client"
        words = (
            f"the last bytes of the {side} came {duration(took_ns)} after the first ones, when the {other} "
            "acknowledged these (Nagle's algorithm and a delayed acknowledgement)"
        )
        self.report_repeated((connection, is_request), row, begin_ns, words, side, f"such {side}s")
