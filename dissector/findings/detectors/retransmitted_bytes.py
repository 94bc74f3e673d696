"""What TCP added to an exchange: bytes that were sent again, or that waited for others.

What takes less time than a slow answer is left out. TCP probes for a lost tail after some milliseconds already where a
receiver is busy and nothing was lost: captures of the loopback are full of it. And packets are captured twice. What is
left out too: a request that came again after it was answered, which so was not lost.
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
"""Rows that are looked at once more: live, a row is complete before its bytes are sent again."""


class RetransmittedBytes(ConnectionDetector):
    """Retransmissions, and the exchanges whose bytes they brought or held back."""

    explanation: ClassVar[Explanation] = NEAR_LOSS

    def __init__(self, found: FindingSink, context: FindingContext) -> None:
        super().__init__(found, context)
        self._recent: ExaminedRows | None = None
        self._findings: dict[int, OpenFinding] = {}
        """Of recent rows."""

    def examine_rows(self, rows: ExaminedRows) -> None:
        """One finding an exchange, updated where more of it is sent again."""
        if self._recent is not None:
            rows = ExaminedRows(*(np.concatenate(pair) for pair in zip(self._recent, rows, strict=True)))
        self._recent = rows.where(slice(-KEPT, None))
        if not self.context.has_retransmissions or not len(rows.row):
            return
        rows = rows.where(rows.kind == RowKind.EXCHANGE)
        again, waited = self.context.delays(rows.request)
        was_there = (rows.response != NO_FRAME) & (rows.request_ns + again > rows.response_ns)
        words = _words("request", rows.row, np.where(was_there, 0, again), waited)
        for row, said in _words("response", rows.row, *self.context.delays(rows.response)).items():
            words[row] = "; ".join(filter(None, (words.get(row), said)))
        for row, said in words.items():
            self._retell(row, said)
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

    def _retell(self, row: int, words: str) -> None:
        finding = self._findings.get(row)
        if finding is None:
            self._findings[row] = self.report(row, words)
        elif finding.finding.message != words:
            finding.update(words)


def _words(side: str, row: Int64, again: Int64, waited: Int64) -> dict[int, str]:
    """What is to be said of one side of exchanges, by row: the longer of the two delays."""
    words = {}
    for at in np.flatnonzero(np.maximum(again, waited) >= LEAST_NS).tolist():
        if waited[at] >= again[at]:
            said = f"the {side} waited {duration(int(waited[at]))} for bytes that TCP brought late"
        else:
            said = f"TCP sent bytes of the {side} again, {duration(int(again[at]))} after it began"
        words[int(row[at])] = said
    return words
