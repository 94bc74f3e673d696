"""One process of the fuzzer: every so many cases of a run, until there are enough or time is up. Tells its parent."""

import hashlib
import mmap
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tools.fuzz import guard
from tools.fuzz.case import CORPUS, Case
from tools.fuzz.kinds import case_of
from tools.fuzz.minimize import minimized
from tools.fuzz.seeds import Seeds

FOUND: Final = Path(__file__).parents[2] / "build" / "fuzz"
EVERY: Final = 2.0
"""Seconds between two reports."""
NUMBER: Final = 8
"""Bytes of a case's number."""


@dataclass(slots=True)
class Report:
    """What a worker did since its last report; `slowest` and `largest` are those of all its life."""

    cases: Counter[str] = field(default_factory=Counter)
    microseconds: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, tuple[float, int]] = field(default_factory=dict)
    """By kind: seconds, and the case's number."""
    largest: dict[str, int] = field(default_factory=dict)
    """By kind: megabytes that the hungriest case needed."""


@dataclass(frozen=True, slots=True)
class Share:
    """Which cases of a run are this worker's: `first`, and every `step`-th after it, below `count`."""

    seed: int
    first: int
    step: int
    count: int
    until: float
    """`time.monotonic` when it has to end."""
    only: str | None = None
    """The kind, if it is to be one alone."""
    current: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, NUMBER))
    """Shared with the parent: the number of the case at work, for when that ends the process."""

    @property
    def at(self) -> int:
        return int.from_bytes(self.current[:NUMBER], "big")

    @property
    def numbers(self) -> Iterator[int]:
        for number in range(self.first, self.count, self.step):
            if time.monotonic() > self.until:
                return
            self.current[:NUMBER] = number.to_bytes(NUMBER, "big")
            yield number


def work(seeds: Seeds, share: Share, parent: Connection) -> None:
    """Run the share; reports go to `parent`, None at the end."""
    guard.fence()
    known: set[str] = set()
    report, next_time = Report(), time.monotonic() + EVERY
    for number in share.numbers:
        case = case_of(seeds, share.seed, number, share.only)
        outcome = guard.run(case)
        if outcome.failure is not None and outcome.failure.what.startswith("slower"):
            outcome = guard.run(case)  # what made readers, or was disturbed, is not slow again
        report.cases[case.kind] += 1
        report.microseconds[case.kind] += int(1e6 * outcome.seconds)
        report.slowest[case.kind] = max(report.slowest.get(case.kind, (0.0, 0)), (outcome.seconds, number))
        report.largest[case.kind] = max(report.largest.get(case.kind, 0), outcome.megabytes)
        if outcome.failure is not None:
            report.failures[outcome.failure.what] += 1
            if outcome.failure.what not in known:
                known.add(outcome.failure.what)
                keep(case, outcome.failure, f"seed {share.seed}, case {number}")
        if time.monotonic() > next_time:
            parent.send(report)
            report, next_time = Report(slowest=report.slowest, largest=report.largest), time.monotonic() + EVERY
    parent.send(report)
    parent.send(None)


def keep(case: Case, failure: guard.Failure, origin: str) -> None:
    """The case as it was found, and the least one like it for the corpus."""
    FOUND.mkdir(parents=True, exist_ok=True)
    name = f"{case.kind}-{hashlib.sha256(failure.what.encode()).hexdigest()[:8]}.json"
    (FOUND / name).write_bytes(case.as_json(what=failure.what, origin=origin, story=failure.story))
    if failure.what.startswith(("slower", "more", "MemoryError")):
        return  # trying it hundreds of times would take the day

    def fails(data: bytes) -> bool:
        if case.side not in ("capture", "captures") and len(data) < 4:
            return False
        again = guard.run(case.with_data(data)).failure
        return again is not None and again.what == failure.what

    least = case.with_data(minimized(case.data, fails))
    (CORPUS / name).write_bytes(least.as_json(what=failure.what, origin=origin))
