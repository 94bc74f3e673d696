"""Delays that TCP adds to an exchange: bytes that were retransmitted, or that waited for others.

Delays shorter than that of a slow response do not count. TCP probes for a lost tail after some milliseconds already if
a receiver is busy and nothing was lost: captures of the loopback are full of it. And packets are captured twice. A
request that was retransmitted after its response does not count either, as it was not lost.
"""

from typing import ClassVar, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.text import duration
from dissector.findings.detectors.near_loss import NEAR_LOSS
from dissector.findings.detectors.slow_response import LEAST_NS
from dissector.findings.explanation import Explanation
from dissector.findings.framework.context import FindingContext
from dissector.findings.framework.detector import ConnectionDetector
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.findings.framework.open_findings import FindingSink, OpenFinding
from dissector.index.exchange_table import NO_FRAME, RowKind

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
            rows = ExaminedRows(*(np.concatenate(pair) for pair in zip(self._recent, rows, strict=True)))
        self._recent = rows.where(slice(-KEPT, None))
        if not self.context.has_retransmissions or not len(rows.row):
            return
        rows = rows.where(rows.kind == RowKind.EXCHANGE)
        again, waited = self.context.delays(rows.request)
        was_there = (rows.response != NO_FRAME) & (rows.request_ns + again > rows.response_ns)
        messages = _messages("request", rows.row, np.where(was_there, 0, again), waited)
        for row, message in _messages("response", rows.row, *self.context.delays(rows.response)).items():
            messages[row] = "; ".join(filter(None, (messages.get(row), message)))
        for row, message in messages.items():
            self._report_or_update(row, message)
        recent = set(self._recent.row.tolist())
        self._findings = {row: finding for row, finding in self._findings.items() if row in recent}

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
