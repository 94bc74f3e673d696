"""All findings of a capture by code, and which rows have a warning or an error.

Cross-message findings come from the capture; message findings are collected here, row by row.

Invariants:
  * a row is analyzed once, when it is final;
  * the first `KEPT` findings of a code are kept; all are counted;
  * a row costs one byte.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.columns import Column
from dissector.core.finding import Finding, Severity
from dissector.exchange.model import Exchange, worst
from dissector.findings.registry import EXAMINATION_CODES

KEPT: Final = 1_000
"""Findings of a code that the user can go to."""
PIECE: Final = 4_096
"""Rows that are searched for findings together."""
TOGETHER: Final = 64
"""Rows that are decoded between two looks at the clock."""
SECONDS: Final = 0.02
PENDING, CLEAN, PROBLEM = 0, 1, 2
"""State of a row: not analyzed yet; without a warning or an error; with one."""
_ORDER: Final = list(Severity)
_SERIOUS: Final = (Severity.WARNING, Severity.ERROR)


@dataclass
class FindingGroup:
    """The findings of one code."""

    code: str
    severity: Severity
    count: int = 0
    kept: list[tuple[int, Finding]] = field(default_factory=list)
    """Rows, from 0, with their findings."""


class FindingPlace(NamedTuple):
    """Findings of one code on one connection."""

    connection: int
    """From 1."""
    client: str
    """The client id, as on the wire; empty if there is none."""
    found: list[tuple[int, Finding, int]]
    """Rows, from 0, with the finding and the time in nanoseconds."""


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
        """Return the groups in the order in which their codes were found."""
        return list(self._by_code.values())


class FindingsModel:
    """The findings so far. One thread analyzes; any thread may read."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._message_groups = FindingGroups()
        self._states = Column(np.uint8)
        self._cross_message_rows: Int64 = np.zeros(0, np.int64)
        """Rows with a warning or an error of a cross-message finding, ascending."""
        self.done = 0
        self.total = 0
        """Progress of the analysis: steps done, and all steps."""

    @property
    def start_ns(self) -> int:
        """What times of findings count from."""
        return self._capture.start_ns

    def groups(self) -> list[FindingGroup]:
        """Return the groups, the most severe first, of these the most frequent first."""
        groups = FindingGroups()
        for row, finding in self._capture.findings.cross_message():
            groups.add(row, finding)
        return sorted(
            groups.all() + self._message_groups.all(), key=lambda group: (-_ORDER.index(group.severity), -group.count)
        )

    def places(self, group: FindingGroup) -> list[FindingPlace]:
        """Return the kept findings of a group by client and connection, in the order in which they occurred."""
        rows = np.array([row for row, _ in group.kept], np.int64)
        connections, clients, times = self._capture.index.columns(["connection", "client_id", "time_ns"], rows)
        places: dict[tuple[object, object], FindingPlace] = {}
        for (row, finding), connection, client, time_ns in zip(group.kept, connections, clients, times, strict=True):
            key = client, connection
            if key not in places:
                places[key] = FindingPlace(int(str(connection)), str(client or ""), [])
            places[key].found.append((row, finding, int(str(time_ns))))
        return sorted(places.values(), key=lambda place: place.client)

    @property
    def cross_message_rows(self) -> Int64:
        """Rows with a warning or an error of a cross-message finding, as far as they are known; ascending."""
        return self._cross_message_rows

    @property
    def needs_analysis(self) -> bool:
        """Whether rows came or became final since the last analysis."""
        return len(self._states) < len(self._capture) or len(self._pending_rows()) > 0

    def first(self, rows: Int64) -> int | None:
        """Return the first of `rows`, in their order, that has a warning or an error. Only rows that are not analyzed
        yet are decoded."""
        states = self._states.values
        known = np.full(len(rows), PENDING, np.uint8)
        old = rows < len(states)
        known[old] = states[rows[old]]
        known[np.isin(rows, self._cross_message_rows)] = PROBLEM
        for at in np.flatnonzero(known != CLEAN).tolist():
            if known[at] == PROBLEM or self._capture.has_warning(int(rows[at])):
                return int(rows[at])
        return None

    def analyze(self) -> Iterator[bool]:
        """Analyze new rows in short steps; each yields whether it changed the rows of cross-message findings."""
        for progress in self._capture.findings.examine():
            self.done, self.total = progress.done, 2 * progress.total
            yield False
        before, self._cross_message_rows = self._cross_message_rows, self._problem_rows()
        yield not np.array_equal(before, self._cross_message_rows)
        self._states.grow(count := len(self._capture))
        rows = self._pending_rows()
        self.total = count + len(rows)
        begun = time.monotonic()
        for at in range(0, len(rows), PIECE):
            for _ in self._analyze_rows(rows[at : at + PIECE]):
                if time.monotonic() - begun > SECONDS:
                    self.done = count + at
                    yield False
                    begun = time.monotonic()
        self.done = self.total

    def _analyze_rows(self, rows: Int64) -> Iterator[object]:
        """Only rows that have findings are decoded, for their messages."""
        yield from self._capture.findings.examine_messages(rows)
        speaks = self._capture.findings.may_have_message_findings(rows)
        self._states.values[rows[~speaks]] = CLEAN
        rows = rows[speaks]
        for at in range(0, len(rows), TOGETHER):
            some = rows[at : at + TOGETHER]
            for row, exchange in zip(some.tolist(), self._capture.at(some), strict=True):
                self._take(row, exchange)
            yield at

    def _take(self, row: int, exchange: Exchange) -> None:
        findings = exchange.findings
        for finding in findings:
            if finding.code not in EXAMINATION_CODES:
                self._message_groups.add(row, finding)
        self._states.values[row] = PROBLEM if worst(findings) in _SERIOUS else CLEAN

    def _problem_rows(self) -> Int64:
        rows = {row for row, finding in self._capture.findings.cross_message() if finding.severity in _SERIOUS}
        return np.array(sorted(rows), np.int64)

    def _pending_rows(self) -> Int64:
        """Return the rows that are not analyzed and final, ascending."""
        rows = np.flatnonzero(self._states.values == PENDING)
        return rows if self._capture.is_read else rows[self._capture.index.is_complete(rows)]
