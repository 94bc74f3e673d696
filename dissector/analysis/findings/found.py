"""What was found, by row: bounded, and told in the order of rows.

Invariant: of each code so many are kept, the first ones; the rest is counted.
"""

from collections import Counter
from typing import Final

import numpy as np

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.told import NOTHING, Told
from dissector.columns import Column, Numbers
from dissector.findings import Finding, Severity
from dissector.session.table import Ints

MOST: Final = 10_000
"""Findings of a code that are kept."""


class Case:
    """A finding that may be told anew as more of its cause is seen."""

    __slots__ = ("finding",)

    def __init__(self, finding: Finding) -> None:
        self.finding = finding

    def retell(self, message: str) -> None:
        """The same finding with other words."""
        old = self.finding
        self.finding = Finding(old.code, old.severity, message, old.path)


class Found:
    """Cases by row."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._cases: dict[int, list[Case]] = {}
        self._counts: Counter[str] = Counter()
        self._told: Numbers[Told] = Numbers()
        self._told.of(NOTHING)
        self._numbers = Column(np.uint32)

    def tell(
        self, explanation: Explanation, row: int, message: str, path: str = "", severity: Severity | None = None
    ) -> Case:
        """Keep a finding, if there is room for one more of its code."""
        case = Case(Finding(explanation.code, severity or explanation.severity, message, path))
        self._counts[explanation.code] += 1
        if self._counts[explanation.code] <= self._most:
            self._cases.setdefault(row, []).append(case)
            self._numbers.grow(row + 1)
            known = self.told[int(self._numbers.values[row])]
            self._numbers.values[row] = self._told.of(known.more(case.finding))
        return case

    @property
    def told(self) -> list[Told]:
        """What the numbers of rows stand for."""
        return self._told.values

    def numbers(self, rows: Ints) -> Ints:
        """The numbers of rows, `(n,)`: 0 where nothing is found."""
        numbers = self._numbers.values
        found = np.zeros(len(rows), np.int64)
        there = rows < len(numbers)
        found[there] = numbers[rows[there]]
        return found

    def of(self, row: int) -> list[Finding]:
        """The findings of a row."""
        return [case.finding for case in self._cases.get(row, ())]

    def all(self) -> list[tuple[int, Finding]]:
        """All that are kept, with their rows, by row."""
        return [(row, case.finding) for row in sorted(self._cases) for case in self._cases[row]]

    def keep(self, rows: Ints) -> None:
        """Forget what was found of all but these rows."""
        staying = set(rows.tolist())
        self._cases = {row: cases for row, cases in self._cases.items() if row in staying}
        self._numbers.keep(rows[rows < len(self._numbers)])

    def take_left_out(self) -> dict[str, int]:
        """How many of a code had no room; each is told once."""
        left_out = {code: count - self._most for code, count in self._counts.items() if count > self._most}
        self._counts.update({code: -count for code, count in left_out.items()})
        return left_out
