"""What was found, by row: bounded, and told in the order of rows.

Invariants:
  * of each code so many are kept, the first ones; the rest is counted. What was forgotten makes room;
  * who took a row with what was found of it learns of whatever is told of that row afterwards: see `Anew`.
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
from dissector.findings.framework.decoded_exchange import Place
from dissector.findings.summary import NO_FINDINGS, FindingSummary

MOST: Final = 10_000
"""Findings of a code that are kept."""
ALL: Final = sys.maxsize


class Case:
    """A finding that may be told anew as more of its cause is seen."""

    __slots__ = ("_changes", "finding", "place")

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.place: Place | None = None
        """Of its row, once somebody took that."""
        self._changes: Changes | None = None

    def retell(self, message: str) -> None:
        """The same finding with other words."""
        old = self.finding
        self.finding = Finding(old.code, old.severity, message, old.path)
        if self._changes is not None:
            self._changes.note(self, old)

    def taken(self, place: Place, changes: "Changes") -> None:
        """Somebody took it with its row, which is found by its place from now on: what changes is noted."""
        self.place = place
        self._changes = changes


class Anew(NamedTuple):
    """What is told of a row that somebody took before."""

    place: Place
    before: Finding | None
    """As it was taken; None where it was not told then."""
    finding: Finding


class Changes:
    """What is told anew of rows that were taken. Nothing is held of cases that their finders dropped."""

    def __init__(self) -> None:
        self._before: dict[Case, Finding | None] = {}

    def note(self, case: Case, before: Finding | None) -> None:
        """A case is new, or was retold: the first time counts."""
        self._before.setdefault(case, before)

    def take(self) -> list[Anew]:
        """Those since the last time."""
        changed, self._before = self._before, {}
        return [
            Anew(case.place, before, case.finding)
            for case, before in changed.items()
            if case.place is not None and before != case.finding
        ]


def case_of(explanation: Explanation, message: str, path: str, severity: Severity | None) -> Case:
    """A case, told for the first time."""
    return Case(Finding(explanation.code, severity or explanation.severity, message, path))


class Telling(Protocol):
    """Where finders tell what they find."""

    def tell(self, explanation: Explanation, row: int, message: str, path: str, severity: Severity | None) -> Case:
        """A finding about a row; its severity where it is not that of the explanation."""


class Found:
    """Cases by row."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._cases: dict[int, list[Case]] = {}
        self._kept: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        """Both by code."""
        self._summaries: ValueNumbers[FindingSummary] = ValueNumbers()
        self._summaries.of(NO_FINDINGS)
        self._numbers = Column(np.uint32)
        self._taken: dict[int, Place] = {}
        """Rows that somebody took, and of which something may be told yet."""
        self.changes = Changes()
        """What is told of those."""

    def tell(
        self, explanation: Explanation, row: int, message: str, path: str = "", severity: Severity | None = None
    ) -> Case:
        """Keep a finding, if there is room for one more of its code."""
        case = case_of(explanation, message, path, severity)
        if row in self._taken:
            case.taken(self._taken[row], self.changes)
            self.changes.note(case, None)
        elif self._kept[explanation.code] == self._most:
            self._left_out[explanation.code] += 1
        else:
            self._kept[explanation.code] += 1
            self._cases.setdefault(row, []).append(case)
            self._numbers.grow(row + 1)
            known = self.summaries[int(self._numbers.values[row])]
            self._numbers.values[row] = self._summaries.of(known.with_finding(case.finding))
        return case

    @property
    def summaries(self) -> list[FindingSummary]:
        """What the numbers of rows stand for."""
        return self._summaries.values

    def numbers(self, rows: Int64) -> Int64:
        """The numbers of rows, `(n,)`: 0 where nothing is found."""
        numbers = self._numbers.values
        found = np.zeros(len(rows), np.int64)
        there = rows < len(numbers)
        found[there] = numbers[rows[there]]
        return found

    def of(self, row: int) -> list[Finding]:
        """The findings of a row."""
        return [case.finding for case in self._ordered(row)]

    def all(self) -> list[tuple[int, Finding]]:
        """All that are kept, with their rows, by row."""
        return [(row, case.finding) for row in sorted(self._cases) for case in self._ordered(row)]

    def _ordered(self, row: int) -> list[Case]:
        return sorted(self._cases.get(row, ()), key=lambda case: case.finding.code)

    def keep(self, rows: Int64, remembered: Int64, place_of: Callable[[int], Place]) -> None:
        """Forget what was found of all but these rows: somebody took the others. Of those that are `remembered`
        something may be told yet."""
        staying = set(rows.tolist())
        for row, cases in self._cases.items():
            for case in cases if row not in staying else ():
                case.taken(place_of(row), self.changes)
        gone = (row for row in remembered.tolist() if row not in staying)
        self._taken = {row: self._taken[row] if row in self._taken else place_of(row) for row in gone}
        self._cases = {row: cases for row, cases in self._cases.items() if row in staying}
        self._kept = Counter(case.finding.code for cases in self._cases.values() for case in cases)
        self._numbers.keep(rows[rows < len(self._numbers)])

    def take_left_out(self) -> dict[str, int]:
        """How many of a code had no room; each is told once."""
        left_out, self._left_out = self._left_out, Counter()
        return dict(left_out)
