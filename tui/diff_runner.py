"""Reads and compares two sides in a thread. It reports progress a few times a second, and can be stopped."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dissector.analysis.diff import DiffResult, DiffSide, ManualMatches, diff
from dissector.capture_session import Progress
from dissector.core.arrays import Int64
from dissector.core.text import clean
from tui.threads import SECONDS_BETWEEN, SWITCH_SECONDS, Pace, Stopped, load


@dataclass(frozen=True, slots=True)
class _WatchedSide(DiffSide):
    """A side that reports how far the comparison has read it."""

    watched: DiffSide = field(kw_only=True)
    report: Callable[[int], None] = field(kw_only=True)

    def rows(self) -> Iterator[Int64]:
        reached = 0
        for some in self.watched.rows():
            reached = int(some[0]) if len(some) else reached
            self.report(reached)
            yield some


def compare(
    a: DiffSide,
    b: DiffSide,
    connections: ManualMatches,
    rows: ManualMatches,
    report: Callable[[str], None],
    stopped: Callable[[], bool],
) -> DiffResult:
    """Read the captures of both sides to their ends, unless a side says where it stops, and compare them. `connections`
    and `rows` are what the user matched; `report` gets the current step in words. Runs in a thread.

    Raises `Stopped` soon after `stopped` says so, `capture.CaptureError` if a pipe turns out to be no capture."""
    sys.setswitchinterval(SWITCH_SECONDS)
    for side in (each for each in (a, b) if each.stop is None):
        load(side.capture, _report_reading(side, report), stopped)
        if stopped():
            raise Stopped
    watched = [
        _WatchedSide(
            side.capture,
            side.label,
            side.filter,
            side.client,
            side.stop,
            watched=side,
            report=_report_comparing(side, report, stopped),
        )
        for side in (a, b)
    ]
    return diff(watched[0], watched[1], connections, rows)


def _report_reading(side: DiffSide, report: Callable[[str], None]) -> Callable[[Progress, bool], None]:
    def report_progress(progress: Progress, done: bool) -> None:
        if not done:
            report(f"reading {clean(side.label)}{_share(progress.done, progress.total)}")

    return report_progress


def _report_comparing(
    side: DiffSide, report: Callable[[str], None], stopped: Callable[[], bool]
) -> Callable[[int], None]:
    pace, rows = Pace(SECONDS_BETWEEN), side.stop or len(side.capture)

    def report_progress(row: int) -> None:
        if stopped():
            raise Stopped
        if pace.is_due():
            report(f"comparing {clean(side.label)}{_share(row, rows)}")

    return report_progress


def _share(done: int, total: int) -> str:
    return f" {min(100, 100 * done // total)}%" if total else ""
