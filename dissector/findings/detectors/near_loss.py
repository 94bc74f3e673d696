"""Bytes that the capture lacks, and the exchanges that stand next to them."""

from typing import ClassVar, Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.finding import Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink
from dissector.findings.framework.recurrence import BoundedStates
from dissector.index.exchange_table import NO_FRAME, RowKind

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


LOSSES: Final = "losses on this connection"
Side = tuple[int, bool]
"""A connection, and whether it is what its client sends."""


class _Hole(NamedTuple):
    end: int
    """Where in the stream the bytes come again."""
    size: int
    time_ns: int


class NearLoss(ConnectionDetector):
    """A hole in a connection's stream, next to an exchange."""

    explanation: ClassVar = NEAR_LOSS

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._waiting: BoundedStates[int, list[int]] = BoundedStates(list)
        """By connection: its newest request without an answer."""
        self._open: BoundedStates[Side, list[_Hole]] = BoundedStates(list)
        """The newest hole of which it is not known yet what stands behind it."""
        self._ahead = np.zeros((4, 0), np.int64)
        """Row, connection, start and packet of responses that come later in the capture than all rows so far."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """Holes are few, and so are requests without an answer."""
        if not len(rows.row):
            return
        is_hole = rows.kind == RowKind.GAP
        events = is_hole | (rows.is_exchange & (rows.response == NO_FRAME))
        begun: dict[tuple[Side, int], int] = {}
        if is_hole.any() or len(self._open):
            ends = self._ends(rows.where(is_hole))
            events |= np.isin(rows.request_start, ends) | np.isin(rows.response_start, ends)
            ahead = self._ahead[:3, np.isin(self._ahead[2], ends)]
            begun = {((connection, False), start): row for row, connection, start in ahead.T.tolist()}
        self._go_through(rows.where(events), begun)
        later = np.flatnonzero(rows.has_both & (rows.response_packet >= rows.packet[-1]))
        columns = (rows.row, rows.connection, rows.response_start, rows.response_packet)
        old = self._ahead[:, self._ahead[3] >= rows.packet[-1]]
        self._ahead = np.concatenate((old, np.stack([column[later] for column in columns])), axis=1)

    @property
    def revisable_rows(self) -> Int64:
        """Rows next to which a hole may be found to be."""
        waiting = [row for rows in self._waiting.values() for row in rows]
        return np.concatenate([np.array(waiting, np.int64), self._ahead[0]])

    def _ends(self, holes: ExaminedRows) -> Int64:
        """Where bytes come again, of these holes and those that are open."""
        ends = [hole.end for known in self._open.values() for hole in known]
        is_asked = holes.request != NO_FRAME
        start = np.where(is_asked, holes.request_start, holes.response_start)
        return np.append(start + np.where(is_asked, holes.request_size, holes.response_size), np.array(ends, np.int64))

    def _go_through(self, rows: ExaminedRows, begun: dict[tuple[Side, int], int]) -> None:
        """Row by row; `begun` has the rows of which a side begins where a hole ends, as far as they are known."""
        columns = (
            rows.row, rows.kind, rows.connection, rows.request, rows.response, rows.request_start, rows.response_start,
            rows.request_size, rows.response_size, np.maximum(rows.request_ns, rows.response_ns),
        )  # fmt: skip
        for row, kind, connection, request, response, *starts, asked, answered, time_ns in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            if kind == RowKind.GAP:
                at, size = (0, asked) if request != NO_FRAME else (1, answered)
                self._hole((connection, at == 0), _Hole(starts[at] + size, size, time_ns), begun)
            elif kind == RowKind.EXCHANGE:
                for is_asked, frame, start in zip((True, False), (request, response), starts, strict=True):
                    if frame != NO_FRAME:
                        self._behind((connection, is_asked), start, row, begun)
                if response == NO_FRAME:
                    self._waiting.of(connection)[:] = [row]

    def _hole(self, side: Side, hole: _Hole, begun: dict[tuple[Side, int], int]) -> None:
        connection, is_asked = side
        if not is_asked and (waiting := self._waiting.of(connection)):
            words = f"the answer may be among {hole.size:,} bytes that the capture lacks"
            self.report_repeated(connection, waiting.pop(), hole.time_ns, words, "", LOSSES)
        elif (side, hole.end) in begun:
            self._tell(begun[side, hole.end], side, hole)
        else:
            self._open.of(side)[:] = [hole]

    def _behind(self, side: Side, start: int, row: int, begun: dict[tuple[Side, int], int]) -> None:
        """A side of an exchange begins: behind a hole that is known, or behind one that comes later in the rows."""
        known = self._open.get(side)
        if known and known[0].end == start:
            self._open.forget(side)
            self._tell(row, side, known[0])
        else:
            begun[side, start] = row

    def _tell(self, row: int, side: Side, hole: _Hole) -> None:
        connection, is_asked = side
        words = f"{hole.size:,} bytes are missing right before the {'request' if is_asked else 'response'}"
        self.report_repeated(connection, row, hole.time_ns, words, "", LOSSES)
