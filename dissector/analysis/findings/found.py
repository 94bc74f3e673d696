"""What was found, by row: bounded, and told in the order of rows.

Invariant: of each code so many are kept, the first ones; the rest is counted. What was forgotten makes room.
"""

import sys
from collections import Counter
from typing import Final, Protocol

import numpy as np

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.told import NOTHING, Told
from dissector.columns import Column, Numbers
from dissector.findings import Finding, Severity
from dissector.session.table import Ints

MOST: Final = 10_000
"""Findings of a code that are kept."""
ALL: Final = sys.maxsize


class Case:
    """A finding that may be told anew as more of its cause is seen."""

    __slots__ = ("finding", "is_wide")

    def __init__(self, finding: Finding, *, is_wide: bool = False) -> None:
        self.finding = finding
        self.is_wide = is_wide
        """Whether several connections tell it together."""

    @property
    def order(self) -> tuple[bool, str]:
        """Among the cases of a row: those of several connections first, by their codes; the others as they came."""
        return (False, self.finding.code) if self.is_wide else (True, "")

    def retell(self, message: str) -> None:
        """The same finding with other words."""
        old = self.finding
        self.finding = Finding(old.code, old.severity, message, old.path)


def case_of(explanation: Explanation, message: str, path: str, severity: Severity | None, *, is_wide: bool) -> Case:
    """A case, told for the first time."""
    return Case(Finding(explanation.code, severity or explanation.severity, message, path), is_wide=is_wide)


class Telling(Protocol):
    """Where finders tell what they find."""

    def tell(
        self, explanation: Explanation, row: int, message: str, path: str, severity: Severity | None, *, is_wide: bool
    ) -> Case:
        """A finding about a row; its severity where it is not that of the explanation."""


class Found:
    """Cases by row."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._cases: dict[int, list[Case]] = {}
        self._kept: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        """Both by code."""
        self._told: Numbers[Told] = Numbers()
        self._told.of(NOTHING)
        self._numbers = Column(np.uint32)

    def tell(
        self, explanation: Explanation, row: int, message: str, path: str = "", severity: Severity | None = None, *,
        is_wide: bool = False,
    ) -> Case:  # fmt: skip
        """Keep a finding, if there is room for one more of its code."""
        case = case_of(explanation, message, path, severity, is_wide=is_wide)
        if self._kept[explanation.code] == self._most:
            self._left_out[explanation.code] += 1
        else:
            self._kept[explanation.code] += 1
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
        return [case.finding for case in self._ordered(row)]

    def all(self) -> list[tuple[int, Finding]]:
        """All that are kept, with their rows, by row."""
        return [(row, case.finding) for row in sorted(self._cases) for case in self._ordered(row)]

    def _ordered(self, row: int) -> list[Case]:
        return sorted(self._cases.get(row, ()), key=lambda case: case.order)

    def keep(self, rows: Ints) -> None:
        """Forget what was found of all but these rows."""
        staying = set(rows.tolist())
        self._cases = {row: cases for row, cases in self._cases.items() if row in staying}
        self._kept = Counter(case.finding.code for cases in self._cases.values() for case in cases)
        self._numbers.keep(rows[rows < len(self._numbers)])

    def take_left_out(self) -> dict[str, int]:
        """How many of a code had no room; each is told once."""
        left_out, self._left_out = self._left_out, Counter()
        return dict(left_out)
