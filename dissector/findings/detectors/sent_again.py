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
from dissector.findings.detectors.slow import LEAST_NS
from dissector.findings.explanation import Explanation
from dissector.findings.framework.detector import Around, RowFinder
from dissector.findings.framework.examined_rows import Rows
from dissector.findings.framework.open_findings import Case, Telling
from dissector.index.exchange_table import NO_FRAME, RowKind

KEPT: Final = 4_096
"""Rows that are looked at once more: live, a row is complete before its bytes are sent again."""


class SentAgain(RowFinder):
    """Retransmissions, and the exchanges whose bytes they brought or held back."""

    explanation: ClassVar[Explanation] = NEAR_LOSS

    def __init__(self, found: Telling, around: Around) -> None:
        super().__init__(found, around)
        self._recent: Rows | None = None
        self._cases: dict[int, Case] = {}
        """Of recent rows."""

    def take(self, rows: Rows) -> None:
        """One case an exchange, told anew where more of it is sent again."""
        if self._recent is not None:
            rows = Rows(*(np.concatenate(pair) for pair in zip(self._recent, rows, strict=True)))
        self._recent = rows.where(slice(-KEPT, None))
        if not self.around.has_resent or not len(rows.row):
            return
        rows = rows.where(rows.kind == RowKind.EXCHANGE)
        again, waited = self.around.delays(rows.request)
        was_there = (rows.response != NO_FRAME) & (rows.asked_ns + again > rows.answered_ns)
        words = _words("request", rows.row, np.where(was_there, 0, again), waited)
        for row, said in _words("response", rows.row, *self.around.delays(rows.response)).items():
            words[row] = "; ".join(filter(None, (words.get(row), said)))
        for row, said in words.items():
            self._retell(row, said)
        recent = set(self._recent.row.tolist())
        self._cases = {row: case for row, case in self._cases.items() if row in recent}

    @property
    def remembers(self) -> Int64:
        return super().remembers if self._recent is None else self._recent.row

    @property
    def looks_back(self) -> Int64:
        if self._recent is None:
            return super().looks_back
        frames: Int64 = np.concatenate([self._recent.request, self._recent.response])
        there: Int64 = frames[frames != NO_FRAME]
        return there

    def _retell(self, row: int, words: str) -> None:
        case = self._cases.get(row)
        if case is None:
            self._cases[row] = self.tell(row, words)
        elif case.finding.message != words:
            case.retell(words)


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
