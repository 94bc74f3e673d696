"""All findings of a capture, by code, and which rows have something wrong: known once a row was looked at.

What several rows together tell is the capture's own; what a row tells by itself is counted here, row after row.

Invariants:
  * a row is looked at once, when nothing is added to it any more;
  * of each code so many findings are kept, the first ones; all are counted;
  * of a row without findings a byte is kept.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.columns import Column
from dissector.core.finding import Finding, Severity
from dissector.exchange.model import Exchange, worst
from dissector.findings.registry import FINDERS

KEPT: Final = 1_000
"""Findings of a code that can be gone to."""
PIECE: Final = 4_096
"""Rows of which is found out together what they tell."""
TOGETHER: Final = 64
"""Rows that are looked at before the clock is."""
SECONDS: Final = 0.02
OPEN, QUIET, WRONG = 0, 1, 2
"""Of a row: it was not looked at yet; nothing is wrong with it; something is."""
_ORDER: Final = list(Severity)
_SERIOUS: Final = (Severity.WARNING, Severity.ERROR)
_OF_SEVERAL: Final = frozenset(finder.explanation.code for finder in FINDERS)


@dataclass
class FindingGroup:
    """The findings of one code."""

    code: str
    severity: Severity
    count: int = 0
    kept: list[tuple[int, Finding]] = field(default_factory=list)
    """Rows, from 0, with what was found there."""


class FindingGroups:
    """Findings, counted by code."""

    def __init__(self) -> None:
        self._by_code: dict[str, FindingGroup] = {}

    def add(self, row: int, finding: Finding) -> None:
        """Count a finding, and keep it if there is room."""
        group = self._by_code.setdefault(finding.code, FindingGroup(finding.code, finding.severity))
        group.severity = max(group.severity, finding.severity, key=_ORDER.index)
        group.count += 1
        if len(group.kept) < KEPT:
            group.kept.append((row, finding))

    def all(self) -> list[FindingGroup]:
        """In the order in which they came."""
        return list(self._by_code.values())


class FindingsModel:
    """What was found so far. One thread looks; any may ask."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._own = FindingGroups()
        self._states = Column(np.uint8)
        self._told: Int64 = np.zeros(0, np.int64)
        """Rows with which something is wrong by what several tell, ascending."""
        self.done = 0
        self.total = 0
        """How far it is, and out of how much."""

    def groups(self) -> list[FindingGroup]:
        """The gravest first, of these the most frequent."""
        several = FindingGroups()
        for row, finding in self._capture.findings.cross_message():
            several.add(row, finding)
        return sorted(several.all() + self._own.all(), key=lambda group: (-_ORDER.index(group.severity), -group.count))

    @property
    def told(self) -> Int64:
        """Rows with which something is wrong by what several of them tell, as far as that is known; ascending."""
        return self._told

    @property
    def has_new(self) -> bool:
        """Whether rows came, or were completed, since the last look."""
        return len(self._states) < len(self._capture) or len(self._open()) > 0

    def first(self, rows: Int64) -> int | None:
        """The first of some rows, in the order given, with which something is wrong. Only those that were not looked
        at yet are decoded."""
        states = self._states.values
        known = np.full(len(rows), OPEN, np.uint8)
        old = rows < len(states)
        known[old] = states[rows[old]]
        known[np.isin(rows, self._told)] = WRONG
        for at in np.flatnonzero(known != QUIET).tolist():
            if known[at] == WRONG or self._capture.has_warning(int(rows[at])):
                return int(rows[at])
        return None

    def look(self) -> Iterator[bool]:
        """Look at what has come, in short steps; whether a step has found what only several rows together tell."""
        for progress in self._capture.examine():
            self.done, self.total = progress.done, 2 * progress.total
            yield False
        before, self._told = self._told, self._serious()
        yield not np.array_equal(before, self._told)
        self._states.grow(count := len(self._capture))
        rows = self._open()
        self.total = count + len(rows)
        begun = time.monotonic()
        for at in range(0, len(rows), PIECE):
            for _ in self._look_at(rows[at : at + PIECE]):
                if time.monotonic() - begun > SECONDS:
                    self.done = count + at
                    yield False
                    begun = time.monotonic()
        self.done = self.total

    def _look_at(self, rows: Int64) -> Iterator[object]:
        """Only rows that tell something are decoded for their words."""
        yield from self._capture.examine_messages(rows)
        speaks = self._capture.findings.may_have_message_findings(rows)
        self._states.values[rows[~speaks]] = QUIET
        rows = rows[speaks]
        for at in range(0, len(rows), TOGETHER):
            some = rows[at : at + TOGETHER]
            for row, exchange in zip(some.tolist(), self._capture.at(some), strict=True):
                self._take(row, exchange)
            yield at

    def _take(self, row: int, exchange: Exchange) -> None:
        findings = exchange.findings
        for finding in findings:
            if finding.code not in _OF_SEVERAL:
                self._own.add(row, finding)
        self._states.values[row] = WRONG if worst(findings) in _SERIOUS else QUIET

    def _serious(self) -> Int64:
        rows = {row for row, finding in self._capture.findings.cross_message() if finding.severity in _SERIOUS}
        return np.array(sorted(rows), np.int64)

    def _open(self) -> Int64:
        """Rows that were not looked at and can be, ascending."""
        rows = np.flatnonzero(self._states.values == OPEN)
        return rows if self._capture.is_read else rows[self._capture.is_complete(rows)]
