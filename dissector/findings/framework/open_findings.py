"""The findings of the examination by row, bounded.

Invariants:
  * of each code the first `MAX_FINDINGS` that may change are kept; the rest is counted. Findings that are released make
    room. Of findings that many rows have alike all are kept (`EqualFindings`): what is added there is final;
  * after rows are taken, later changes to their findings are recorded as `Revision`s.
"""

import sys
from collections import Counter
from collections.abc import Callable
from functools import reduce
from typing import Final, NamedTuple, Protocol

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column, ValueNumbers, is_in, unique
from dissector.core.finding import Finding, Severity
from dissector.findings.explanation import Explanation
from dissector.findings.framework.decoded_exchange import RowPosition
from dissector.findings.summary import NO_FINDINGS, FindingSummary

MOST_LISTS: Final = 1 << 16
"""Different lists of findings that are kept."""
Findings = tuple[Finding, ...]


class EqualFindings:
    """Findings that many rows have alike, as a column of numbers: four bytes a row, however many rows have some."""

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
        for number in unique(before).tolist():
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
        used = unique(np.append(numbers, 0))
        self._numbers = self._numbers.with_only(rows, np.searchsorted(used, numbers))
        self._lists = [self._lists[number] for number in used.tolist()]
        self._by_list = {(): 0}


MAX_FINDINGS: Final = 10_000
"""Findings of a code that are kept."""
UNLIMITED: Final = sys.maxsize


class OpenFinding:
    """A finding whose message may be updated as more of its cause is seen."""

    __slots__ = ("_revisions", "finding", "is_revised", "position")

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.position: RowPosition | None = None
        """Position of its row, once that was taken."""
        self.is_revised = False
        """Whether `Revisions` has it."""
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
        self._changed: list[tuple[OpenFinding, Finding | None]] = []
        """With what each was before. No dict: a finding knows its revisions, and a checkpoint has no key that leads to
        itself."""

    def add(self, finding: OpenFinding, before: Finding | None) -> None:
        """Record that a finding is new or was updated. Only the `before` of its first update is kept."""
        if not finding.is_revised:
            finding.is_revised = True
            self._changed.append((finding, before))

    def take(self) -> list[Revision]:
        """Return revisions since the last call."""
        changed, self._changed = self._changed, []
        for each, _ in changed:
            each.is_revised = False
        return [
            Revision(each.position, before, each.finding)
            for each, before in changed
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
        self._equal = EqualFindings()
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
        self._keep_one(row, new)
        return new

    def report_equal(self, rows: Int64, findings: tuple[Finding, ...]) -> None:
        """Keep findings that each of some rows has, and that nothing changes later."""
        is_alone = is_in(rows, np.array(list(self._taken), np.int64)) | (not self._equal.has_room)
        for row in rows[is_alone].tolist():
            for each in findings:
                self._keep_one(row, OpenFinding(each))
        rows = rows[~is_alone]
        if len(rows):
            self._equal.add(rows, findings)
            self._summarize(rows, findings)

    def _keep_one(self, row: int, new: OpenFinding) -> None:
        code = new.finding.code
        if row in self._taken:
            new.track(self._taken[row], self.revisions)
            self.revisions.add(new, None)
        elif self._kept[code] == self._most:
            self._omitted[code] += 1
        else:
            self._kept[code] += 1
            self._by_row.setdefault(row, []).append(new)
            self._summarize(np.array([row]), (new.finding,))

    def _summarize(self, rows: Int64, findings: tuple[Finding, ...]) -> None:
        """Add findings to the summaries of rows."""
        self._numbers.grow(int(rows.max()) + 1)
        before = self._numbers.values[rows]
        for number in unique(before).tolist():
            summary = reduce(FindingSummary.with_finding, findings, self.summaries[number])
            self._numbers.values[rows[before == number]] = self._summaries.of(summary)

    @property
    def summaries(self) -> list[FindingSummary]:
        """The summaries, by the numbers of `numbers`."""
        return self._summaries.values

    def numbers(self, rows: Int64) -> Int64:
        """Return the number of the summary of each row, `(n,)`: 0 if it has no finding."""
        return self._numbers.at(rows)

    def of(self, row: int) -> list[Finding]:
        """Return the findings about a row."""
        found = [*self._equal.of(row), *(each.finding for each in self._by_row.get(row, ()))]
        return sorted(found, key=lambda each: each.code) if len(found) > 1 else found

    def all(self) -> list[tuple[int, Finding]]:
        """Return all findings that are kept, with their rows, by row; of those that many rows have alike the first
        `MAX_FINDINGS` of each code."""
        counts: Counter[str] = Counter()
        found = []
        for row in unique(np.append(self._equal.rows(), np.array(list(self._by_row), np.int64))).tolist():
            for each in self.of(row):
                counts[each.code] += 1
                if counts[each.code] <= self._most:
                    found.append((row, each))
        return found

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
        self._equal.keep(rows)

    def take_omitted(self) -> dict[str, int]:
        """Return how many findings of each code were omitted since the last call."""
        omitted, self._omitted = self._omitted, Counter()
        return dict(omitted)
