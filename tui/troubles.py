"""All findings of a capture, by code: what several rows tell together first, then row after row.

Invariant: of each code so many are kept, the first ones; all are counted.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dissector.capture_file import Capture
from dissector.findings import Finding, Severity

KEPT: Final = 1_000
"""Findings of a code that can be gone to."""
TOGETHER: Final = 64
"""Rows that are looked at before the clock is."""
SECONDS: Final = 0.05
_ORDER: Final = list(Severity)


@dataclass
class Group:
    """The findings of one code."""

    code: str
    severity: Severity
    count: int = 0
    kept: list[tuple[int, Finding]] = field(default_factory=list)
    """Rows, from 0, with what was found there."""


class Troubles:
    """What was found so far."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self.looked_at = 0
        """Rows, from the first on."""

    def add(self, row: int, finding: Finding) -> None:
        """Count a finding, and keep it if there is room."""
        group = self._groups.setdefault(finding.code, Group(finding.code, finding.severity))
        group.severity = max(group.severity, finding.severity, key=_ORDER.index)
        group.count += 1
        if len(group.kept) < KEPT:
            group.kept.append((row, finding))

    def groups(self) -> list[Group]:
        """The gravest first, of these the most frequent."""
        return sorted(self._groups.values(), key=lambda group: (-_ORDER.index(group.severity), -group.count))

    def gather(self, capture: Capture) -> Iterator[tuple[int, int]]:
        """Look at the rest of a capture, in short steps; how far it is and out of how much, after each."""
        for progress in capture.examine():
            yield progress.done, 2 * progress.total
        rows = len(capture)
        begun = time.monotonic()
        while self.looked_at < rows:
            for exchange in capture.between(self.looked_at, min(self.looked_at + TOGETHER, rows)):
                for finding in exchange.findings:
                    self.add(self.looked_at, finding)
                self.looked_at += 1
            if time.monotonic() - begun > SECONDS:
                begun = time.monotonic()
                yield rows + self.looked_at, 2 * rows
        yield 2 * rows, 2 * rows
