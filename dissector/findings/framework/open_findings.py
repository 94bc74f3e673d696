"""Cross-message findings by row, bounded.

Invariants:
  * of each code the first `MAX_FINDINGS` are kept; the rest is counted. Findings that are released make room;
  * after rows are taken, later changes to their findings are recorded as `Revision`s.
"""

import sys
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column, ValueNumbers
from dissector.core.finding import Finding, Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import RowPosition
from dissector.findings.summary import NO_FINDINGS, FindingSummary

MAX_FINDINGS: Final = 10_000
"""Findings of a code that are kept."""
UNLIMITED: Final = sys.maxsize


class OpenFinding:
    """A finding whose message may be updated as more of its cause is seen."""

    __slots__ = ("_revisions", "finding", "position")

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.position: RowPosition | None = None
        """Position of its row, once that was taken."""
        self._revisions: Revisions | None = None

    def update(self, message: str) -> None:
        """Replace the message."""
        old = self.finding
        self.finding = Finding(old.code, old.severity, message, old.path)
        if self._revisions is not None:
            self._revisions.add(self, old)

    def track(self, position: RowPosition, revisions: "Revisions") -> None:
        """Record later changes in `revisions`: its row was taken, and is now known by its position."""
        self.position = position
        self._revisions = revisions


class Revision(NamedTuple):
    """A new or changed finding about a row that was taken before."""

    position: RowPosition
    before: Finding | None
    """The finding when the row was taken; None if it is new."""
    finding: Finding


class Revisions:
    """Changes to findings about rows that were taken. Findings that their detectors dropped are not kept."""

    def __init__(self) -> None:
        self._before: dict[OpenFinding, Finding | None] = {}

    def add(self, finding: OpenFinding, before: Finding | None) -> None:
        """Record that a finding is new or was updated. Only the `before` of its first update is kept."""
        self._before.setdefault(finding, before)

    def take(self) -> list[Revision]:
        """Return revisions since the last call."""
        changed, self._before = self._before, {}
        return [
            Revision(each.position, before, each.finding)
            for each, before in changed.items()
            if each.position is not None and before != each.finding
        ]


def open_finding(explanation: Explanation, message: str, path: str, severity: Severity | None) -> OpenFinding:
    """Return a new finding; its severity is that of the explanation if `severity` is None."""
    return OpenFinding(Finding(explanation.code, severity or explanation.severity, message, path))


class FindingSink(Protocol):
    """Takes the findings of detectors."""

    def report(
        self, explanation: Explanation, row: int, message: str, path: str, severity: Severity | None
    ) -> OpenFinding:
        """Take a finding about a row; `severity` if it is not that of the explanation."""


class FindingStore:
    """Findings by row, and the summary of each row as a column of numbers."""

    def __init__(self, most: int = MAX_FINDINGS) -> None:
        self._most = most
        self._by_row: dict[int, list[OpenFinding]] = {}
        self._kept: Counter[str] = Counter()
        self._omitted: Counter[str] = Counter()
        """Numbers of findings kept and omitted, by code."""
        self._summaries: ValueNumbers[FindingSummary] = ValueNumbers()
        self._summaries.of(NO_FINDINGS)
        self._numbers = Column(np.uint32)
        self._taken: dict[int, RowPosition] = {}
        """Positions of rows that were taken, and about which findings may still be reported."""
        self.revisions = Revisions()
        """Revisions of findings about rows that were taken."""

    def report(
        self, explanation: Explanation, row: int, message: str, path: str = "", severity: Severity | None = None
    ) -> OpenFinding:
        """Keep a finding, unless its code has `most` already."""
        new = open_finding(explanation, message, path, severity)
        if row in self._taken:
            new.track(self._taken[row], self.revisions)
            self.revisions.add(new, None)
        elif self._kept[explanation.code] == self._most:
            self._omitted[explanation.code] += 1
        else:
            self._kept[explanation.code] += 1
            self._by_row.setdefault(row, []).append(new)
            self._numbers.grow(row + 1)
            known = self.summaries[int(self._numbers.values[row])]
            self._numbers.values[row] = self._summaries.of(known.with_finding(new.finding))
        return new

    @property
    def summaries(self) -> list[FindingSummary]:
        """The summaries, by the numbers of `numbers`."""
        return self._summaries.values

    def numbers(self, rows: Int64) -> Int64:
        """Return the number of the summary of each row, `(n,)`: 0 if it has no finding."""
        numbers = self._numbers.values
        found = np.zeros(len(rows), np.int64)
        known = rows < len(numbers)
        found[known] = numbers[rows[known]]
        return found

    def of(self, row: int) -> list[Finding]:
        """Return the findings about a row."""
        return [each.finding for each in self._by_code(row)]

    def all(self) -> list[tuple[int, Finding]]:
        """Return all findings that are kept, with their rows, by row."""
        return [(row, each.finding) for row in sorted(self._by_row) for each in self._by_code(row)]

    def _by_code(self, row: int) -> list[OpenFinding]:
        return sorted(self._by_row.get(row, ()), key=lambda each: each.finding.code)

    def keep(self, rows: Int64, revisable: Int64, position_of: Callable[[int], RowPosition]) -> None:
        """Keep the findings of `rows`; all other rows were taken. Findings about `revisable` ones may still be
        reported."""
        remaining = set(rows.tolist())
        for row, findings in self._by_row.items():
            for each in findings if row not in remaining else ():
                each.track(position_of(row), self.revisions)
        taken = (row for row in revisable.tolist() if row not in remaining)
        self._taken = {row: self._taken[row] if row in self._taken else position_of(row) for row in taken}
        self._by_row = {row: findings for row, findings in self._by_row.items() if row in remaining}
        self._kept = Counter(each.finding.code for findings in self._by_row.values() for each in findings)
        self._numbers.keep(rows[rows < len(self._numbers)])

    def take_omitted(self) -> dict[str, int]:
        """Return how many findings of each code were omitted since the last call."""
        omitted, self._omitted = self._omitted, Counter()
        return dict(omitted)
