"""What TCP lost or delayed: exchanges next to bytes that are missing from the capture, and exchanges whose bytes were
retransmitted or waited for others.

Delays shorter than that of a slow response do not count. TCP probes for a lost tail after some milliseconds already if
a receiver is busy and nothing was lost: captures of the loopback are full of it. And packets are captured twice. A
request that was retransmitted after its response does not count either, as it was not lost.
"""

from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import is_in, tuples
from dissector.core.finding import Severity
from dissector.core.text import duration
from dissector.findings.detectors.slow_response import LEAST_NS
from dissector.findings.detectors.unacknowledged import waits_for_acknowledgement
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.findings.framework.recurrence import BoundedStates
from dissector.index.exchange_table import NO_FRAME, RowKind

NEAR_LOSS: Final = Explanation(
    "near-loss",
    "Next to missing bytes",
    Severity.NOTE,
    "Bytes of this connection are missing from the capture right before this exchange, or its response may be "
    "missing. Or TCP retransmitted bytes of the exchange, or held them back until "
    "late bytes arrived: the message says for how long.",
    "Missing bytes that the receiver acknowledged were lost only by the capture: it dropped packets or began too "
    "late. What the network loses is retransmitted; if nothing follows it, that takes 200 ms or more and looks like a "
    "slow response. A receiver that is too busy to acknowledge causes retransmissions too.",
    "Do not judge latency or missing responses here by this capture alone. If bytes were retransmitted, look at the "
    "network and not at the broker: tcp.analysis.retransmission in Wireshark, nstat TcpRetransSegs on either side. If "
    "bytes are missing from the capture, capture nearer to the client or the broker, and with a larger buffer.",
)


LOSSES: Final = "losses on this connection"
Side = tuple[int, bool]
"""A connection, and whether it is its client's direction."""


class _Hole(NamedTuple):
    end: int
    """Where in the stream the bytes continue."""
    size: int
    time_ns: int


class NearLoss(ConnectionDetector):
    """Finds exchanges next to a hole in their connection's stream."""

    explanation: ClassVar = NEAR_LOSS

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._waiting: BoundedStates[int, list[int]] = BoundedStates(list)
        """By connection: its newest request without a response."""
        self._open: BoundedStates[Side, list[_Hole]] = BoundedStates(list)
        """The newest hole whose next exchange is not known yet."""
        self._ahead = np.zeros((4, 0), np.int64)
        """Row, connection, start and packet of responses that come after all rows so far in the capture."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Examine holes, requests without a response, and exchanges where a hole ends. All are few."""
        if not len(rows.row):
            return
        is_hole = rows.kind == RowKind.GAP
        events = is_hole | (rows.is_exchange & (rows.response == NO_FRAME))
        begun: dict[tuple[Side, int], int] = {}
        if is_hole.any() or len(self._open):
            ends = self._ends(rows.where(is_hole))
            events |= is_in(rows.request_start, ends) | is_in(rows.response_start, ends)
            ahead = self._ahead[:3, is_in(self._ahead[2], ends)]
            begun = {((connection, False), start): row for row, connection, start in ahead.T.tolist()}
        self._go_through(rows.where(events), begun)
        later = np.flatnonzero(rows.has_both & (rows.response_packet >= rows.packet[-1]))
        columns = (rows.row, rows.connection, rows.response_start, rows.response_packet)
        old = self._ahead[:, self._ahead[3] >= rows.packet[-1]]
        self._ahead = np.concatenate((old, np.stack([column[later] for column in columns])), axis=1)

    @property
    def revisable_rows(self) -> Int64:
        """Rows that may turn out to be next to a hole."""
        waiting = [row for rows in self._waiting.values() for row in rows]
        return np.concatenate([np.array(waiting, np.int64), self._ahead[0]])

    def _ends(self, holes: ExaminedRows) -> Int64:
        """Return where bytes continue after these holes and the open ones."""
        ends = [hole.end for known in self._open.values() for hole in known]
        is_request = holes.request != NO_FRAME
        start = np.where(is_request, holes.request_start, holes.response_start)
        return np.append(
            start + np.where(is_request, holes.request_size, holes.response_size), np.array(ends, np.int64)
        )

    def _go_through(self, rows: ExaminedRows, begun: dict[tuple[Side, int], int]) -> None:
        """Examine row by row. `begun` has the known rows that have a side which begins where a hole ends."""
        columns = (
            rows.row, rows.kind, rows.connection, rows.request, rows.response, rows.request_start, rows.response_start,
            rows.request_size, rows.response_size, np.maximum(rows.request_ns, rows.response_ns),
        )  # fmt: skip
        for row, kind, connection, request, response, *starts, request_size, response_size, time_ns in tuples(*columns):
            if kind == RowKind.GAP:
                at, size = (0, request_size) if request != NO_FRAME else (1, response_size)
                self._hole((connection, at == 0), _Hole(starts[at] + size, size, time_ns), begun)
            elif kind == RowKind.EXCHANGE:
                for is_request, frame, start in zip((True, False), (request, response), starts, strict=True):
                    if frame != NO_FRAME:
                        self._behind((connection, is_request), start, row, begun)
                if response == NO_FRAME:
                    self._waiting.of(connection)[:] = [row]

    def _hole(self, side: Side, hole: _Hole, begun: dict[tuple[Side, int], int]) -> None:
        connection, is_request = side
        if not is_request and (waiting := self._waiting.of(connection)):
            words = f"the response may be among {hole.size:,} missing bytes"
            self.report_repeated(connection, waiting.pop(), hole.time_ns, words, "", LOSSES)
        elif (side, hole.end) in begun:
            self._report_hole(begun[side, hole.end], side, hole)
        else:
            self._open.of(side)[:] = [hole]

    def _behind(self, side: Side, start: int, row: int, begun: dict[tuple[Side, int], int]) -> None:
        """Match the begin of a side of an exchange with a known hole, or keep it for one in a later row."""
        known = self._open.get(side)
        if known and known[0].end == start:
            self._open.forget(side)
            self._report_hole(row, side, known[0])
        else:
            begun[side, start] = row

    def _report_hole(self, row: int, side: Side, hole: _Hole) -> None:
        connection, is_request = side
        words = f"{hole.size:,} bytes are missing right before the {'request' if is_request else 'response'}"
        self.report_repeated(connection, row, hole.time_ns, words, "", LOSSES)


KEPT: Final = 4_096
"""Rows that are examined again: in a live capture a row is complete before its bytes are retransmitted."""


class RetransmittedBytes(ConnectionDetector):
    """Finds exchanges that retransmissions delayed."""

    explanation: ClassVar[Explanation] = NEAR_LOSS

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._recent: ExaminedRows | None = None
        self._findings: dict[int, OpenFinding] = {}
        """Of recent rows."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Report one finding for each exchange, and update it if more of it is retransmitted."""
        if self._recent is not None:
            rows = self._recent.followed_by(rows)
        self._recent = rows.where(slice(-KEPT, None)).kept()
        if not self.context.has_retransmissions or not len(rows.row):
            return
        rows = rows.where((rows.kind == RowKind.EXCHANGE) & ~waits_for_acknowledgement(self.context, rows))
        again, waited = self.context.delays(rows.request)
        was_there = (rows.response != NO_FRAME) & (rows.request_ns + again > rows.response_ns)
        messages = _messages("request", rows.row, np.where(was_there, 0, again), waited)
        again, waited = self.context.delays(rows.response)
        again = np.where(self._had_no_room(rows, again), 0, again)
        for row, message in _messages("response", rows.row, again, waited).items():
            messages[row] = "; ".join(filter(None, (messages.get(row), message)))
        for row, message in messages.items():
            self._report_or_update(row, message)
        recent = set(self._recent.row.tolist())
        self._findings = {row: finding for row, finding in self._findings.items() if row in recent}

    def _had_no_room(self, rows: ExaminedRows, again: Int64) -> Bool:
        """Which responses were sent again while the client's window was closed: they are probes of it."""
        had_none = np.zeros(len(rows.row), np.bool_)
        for at in np.flatnonzero(again >= LEAST_NS).tolist():
            begin = int(rows.response_ns[at])
            had_none[at] = self.context.had_no_room(
                int(rows.connection[at]), begin, begin + int(again[at]), of_client=True
            )
        return had_none

    @property
    def revisable_rows(self) -> Int64:
        return super().revisable_rows if self._recent is None else self._recent.row

    @property
    def rechecked_frames(self) -> Int64:
        if self._recent is None:
            return super().rechecked_frames
        frames: Int64 = np.concatenate([self._recent.request, self._recent.response])
        there: Int64 = frames[frames != NO_FRAME]
        return there

    def _report_or_update(self, row: int, message: str) -> None:
        finding = self._findings.get(row)
        if finding is None:
            self._findings[row] = self.report(row, message)
        elif finding.finding.message != message:
            finding.update(message)


def _messages(side: str, row: Int64, again: Int64, waited: Int64) -> dict[int, str]:
    """Return messages on one side of exchanges, by row: each describes the longer of the two delays."""
    messages = {}
    for at in np.flatnonzero(np.maximum(again, waited) >= LEAST_NS).tolist():
        if waited[at] >= again[at]:
            message = f"the {side} waited {duration(int(waited[at]))} for bytes that arrived late"
        else:
            message = f"bytes of the {side} were retransmitted {duration(int(again[at]))} after it began"
        messages[int(row[at])] = message
    return messages
