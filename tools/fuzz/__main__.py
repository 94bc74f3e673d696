"""`python -m tools.fuzz [--count N] [--seed S] [--minutes M] [--kind K] [--workers W]`: damaged input on every core.

Case `n` of seed `s` is the same on every machine. A failure is written below `build/fuzz`, and, made small, into the
corpus that `make test` replays. The exit code is 1 if there was one.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Final, NamedTuple

from tools.fuzz import seeds
from tools.fuzz.guard import Failure
from tools.fuzz.kinds import KINDS, case_of
from tools.fuzz.worker import FOUND, Report, Share, keep, work

FOREVER: Final = 10 * 365 * 86_400.0
PROGRESS: Final = 10.0


class Worker(NamedTuple):
    process: multiprocessing.Process
    connection: Connection
    share: Share


class Totals:
    """What all workers did."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.cases: Counter[str] = Counter()
        self.microseconds: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.slowest: dict[str, tuple[float, int]] = {}
        self.largest: dict[str, int] = {}

    def add(self, report: Report) -> None:
        self.cases += report.cases
        self.microseconds += report.microseconds
        self.failures += report.failures
        for kind, found in report.slowest.items():
            self.slowest[kind] = max(self.slowest.get(kind, found), found)
        for kind, megabytes in report.largest.items():
            self.largest[kind] = max(self.largest.get(kind, 0), megabytes)

    def line(self) -> str:
        count, passed = self.cases.total(), time.monotonic() - self.started
        (seconds, number), kind = max(((found, kind) for kind, found in self.slowest.items()), default=((0.0, 0), ""))
        return (
            f"{count:,} cases, {count / passed:,.0f}/s, slowest {1000 * seconds:.0f} ms ({kind} {number}), "
            f"peak {max(self.largest.values(), default=0)} MB, failures {self.failures.total()}"
        )

    def table(self) -> str:
        lines = [f"{'kind':12}{'cases':>11}{'ms each':>9}{'slowest':>9}{'MB':>6}"]
        for kind, (seconds, _) in self.slowest.items():
            each = self.microseconds[kind] / self.cases[kind] / 1000
            lines.append(
                f"{kind:12}{self.cases[kind]:11,}{each:9.2f}{1000 * seconds:9.0f}{self.largest.get(kind, 0):6}"
            )
        return "\n".join([*lines, *(f"{count:,} times: {what}" for what, count in self.failures.most_common())])


def run(count: int, seed: int, minutes: float | None, only: str | None, workers: int) -> Totals:
    """Distribute the cases to so many processes, and gather their results."""
    loaded = seeds.load()
    totals = Totals()
    until = time.monotonic() + (FOREVER if minutes is None else 60 * minutes)
    started = [_started(loaded, Share(seed, first, workers, count, until, only)) for first in range(workers)]
    open_ones: dict[Connection, Worker] = {worker.connection: worker for worker in started}
    reported_at = time.monotonic()
    while open_ones:
        for ready in wait(list(open_ones), timeout=PROGRESS):
            assert isinstance(ready, Connection)
            try:
                report = ready.recv()
            except EOFError:
                report, next_one = None, _after_death(loaded, open_ones[ready], totals)
                open_ones[next_one.connection] = next_one
            if report is not None:
                totals.add(report)
                continue
            open_ones.pop(ready).process.join()
        if time.monotonic() - reported_at > PROGRESS:
            reported_at = time.monotonic()
            print(totals.line(), flush=True)
    return totals


def _started(loaded: seeds.Seeds, share: Share) -> Worker:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=work, args=(loaded, share, theirs))
    process.start()
    theirs.close()
    return Worker(process, ours, share)


def _after_death(loaded: seeds.Seeds, worker: Worker, totals: Totals) -> Worker:
    """A process ended in the midst, killed or crashed: keep its case, and start one that goes on behind it."""
    worker.process.join()
    share = worker.share
    case = case_of(loaded, share.seed, share.at, share.only)
    what = f"{case.kind}: a worker ended with {worker.process.exitcode}"
    totals.failures[what] += 1
    keep(case, Failure(f"more: {what}", ""), f"seed {share.seed}, case {share.at}")
    return _started(loaded, replace(share, first=share.at + share.step))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="cases")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the same seed makes the same cases")
    parser.add_argument("--minutes", type=float, help="end after so long, whatever the count")
    parser.add_argument("--kind", choices=sorted(KINDS), help="cases of this kind alone")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--workers", type=int, default=cores, help="processes; one a core, if not given")
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.count:,} cases", flush=True)
    totals = run(given.count, given.seed, given.minutes, given.kind, given.workers)
    print(totals.line())
    print(totals.table())
    if totals.failures:
        print(f"failing cases are in {os.path.relpath(FOUND)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
