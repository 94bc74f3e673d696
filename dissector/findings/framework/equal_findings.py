"""Findings that many rows have alike, as a column of numbers: four bytes a row, however many rows have some.

Invariant: what is added is final. Findings that may change are kept one by one, bounded (`open_findings`).
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column
from dissector.core.finding import Finding

MOST_LISTS: Final = 1 << 16
"""Different lists of findings that are kept."""
Findings = tuple[Finding, ...]


class EqualFindings:
    """Of one capture."""

    def __init__(self) -> None:
        self._numbers = Column(np.uint32)
        self._lists: list[Findings] = [()]
        """What each number stands for."""
        self._by_list: dict[Findings, int] = {(): 0}

    def __getstate__(self) -> tuple[Column, list[Findings]]:
        """For a checkpoint: without keys that may be long."""
        return self._numbers, self._lists

    def __setstate__(self, state: tuple[Column, list[Findings]]) -> None:
        self._numbers, self._lists = state
        self._by_list = {(): 0}

    @property
    def has_room(self) -> bool:
        """Whether more can be added."""
        return len(self._lists) < MOST_LISTS

    def add(self, rows: Int64, findings: Findings) -> None:
        """Add findings to each of some rows."""
        self._numbers.grow(int(rows.max()) + 1)
        before = self._numbers.values[rows]
        for number in np.unique(before).tolist():
            together = (*self._lists[number], *findings)
            after = self._by_list.setdefault(together, len(self._lists))
            if after == len(self._lists):
                self._lists.append(together)
            self._numbers.values[rows[before == number]] = after

    def of(self, row: int) -> Findings:
        """The findings of a row."""
        return self._lists[int(self._numbers.values[row])] if row < len(self._numbers) else ()

    def rows(self) -> Int64:
        """The rows that have some, ascending."""
        return np.flatnonzero(self._numbers.values)

    def keep(self, rows: Int64) -> None:
        """Keep these rows, ascending, and forget the others: for a checkpoint."""
        rows = rows[rows < len(self._numbers)]
        numbers = self._numbers.values[rows]
        used = np.union1d(numbers, [0])
        self._numbers.values[:] = 0
        self._numbers.values[rows] = np.searchsorted(used, numbers)
        self._lists = [self._lists[number] for number in used.tolist()]
        self._by_list = {(): 0}
        self._numbers.keep(rows)
