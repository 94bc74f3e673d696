"""`python -m tools.fuzz [--count N] [--seed S] [--minutes M] [--kind K]`: damaged input on every core, until it breaks.

Case `n` of seed `s` is the same on every machine. A failure is written below `build/fuzz`, and, made small, into the
corpus that `make test` replays. The exit code is 1 if there was one.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
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
        self.peak = 0
        self.last: dict[int, int] = {}

    def add(self, worker: int, report: Report) -> None:
        self.cases += report.cases
        self.microseconds += report.microseconds
        self.failures += report.failures
        for kind, found in report.slowest.items():
            self.slowest[kind] = max(self.slowest.get(kind, found), found)
        self.peak = max(self.peak, report.peak)
        self.last[worker] = report.last

    def line(self) -> str:
        count, passed = self.cases.total(), time.monotonic() - self.started
        (seconds, number), kind = max(((found, kind) for kind, found in self.slowest.items()), default=((0.0, 0), ""))
        return (
            f"{count:,} cases, {count / passed:,.0f}/s, slowest {1000 * seconds:.0f} ms ({kind} {number}), "
            f"peak {self.peak} MB, failures {self.failures.total()}"
        )

    def table(self) -> str:
        lines = [f"{'kind':10}{'cases':>11}{'ms each':>9}{'slowest':>9}"]
        for kind, (seconds, _) in self.slowest.items():
            each = self.microseconds[kind] / self.cases[kind] / 1000
            lines.append(f"{kind:10}{self.cases[kind]:11,}{each:9.2f}{1000 * seconds:9.0f}")
        return "\n".join([*lines, *(f"{count:,} times: {what}" for what, count in self.failures.most_common())])


def run(count: int, seed: int, minutes: float | None, only: str | None) -> Totals:
    """Distribute the cases to one process a core, and gather their results."""
    loaded = seeds.load()
    totals = Totals()
    until = time.monotonic() + (FOREVER if minutes is None else 60 * minutes)
    cores = len(os.sched_getaffinity(0))
    workers = [_started(loaded, Share(seed, first, cores, count, until, only)) for first in range(cores)]
    open_ones = {worker.connection: n for n, worker in enumerate(workers)}
    reported_at = time.monotonic()
    while open_ones:
        for ready in wait(list(open_ones), timeout=PROGRESS):
            assert isinstance(ready, Connection)
            try:
                report = ready.recv()
            except EOFError:
                report = None
                _died(loaded, workers[open_ones[ready]], totals, open_ones[ready])
            if report is None:
                del open_ones[ready]
            else:
                totals.add(open_ones[ready], report)
        if time.monotonic() - reported_at > PROGRESS:
            reported_at = time.monotonic()
            print(totals.line(), flush=True)
    for worker in workers:
        worker.process.join()
    return totals


def _started(loaded: seeds.Seeds, share: Share) -> Worker:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=work, args=(loaded, share, theirs))
    process.start()
    theirs.close()
    return Worker(process, ours, share)


def _died(loaded: seeds.Seeds, worker: Worker, totals: Totals, number: int) -> None:
    """A process ended in the midst, killed or crashed: its case is one of the few after its last report."""
    last = totals.last.get(number, worker.share.first)
    what = f"a worker died after case {last}, exit code {worker.process.exitcode}"
    totals.failures[what] += 1
    keep(
        case_of(loaded, worker.share.seed, last, worker.share.only),
        Failure(f"more: {what}", ""),
        f"seed {worker.share.seed}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="cases")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the same seed makes the same cases")
    parser.add_argument("--minutes", type=float, help="end after so long, whatever the count")
    parser.add_argument("--kind", choices=sorted(KINDS), help="cases of this kind alone")
    given = parser.parse_args()
    print(f"seed {given.seed}, {given.count:,} cases", flush=True)
    totals = run(given.count, given.seed, given.minutes, given.kind)
    print(totals.line())
    print(totals.table())
    if totals.failures:
        print(f"failing cases are in {os.path.relpath(FOUND)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
