"""Reads and compares two sides beside the screen, which hears of it a few times a second and can stop it."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dissector.analysis.diff import DiffResult, DiffSide, ManualMatches, diff
from dissector.capture_session import Progress
from dissector.core.arrays import Int64
from dissector.core.text import clean
from tui.loader import SECONDS_BETWEEN, SWITCH_SECONDS, load


class Stopped(Exception):  # noqa: N818  # nothing is wrong
    """Nobody wants the comparison any more."""


@dataclass(frozen=True, slots=True)
class _WatchedSide(DiffSide):
    """A side that says how far it is looked through."""

    tell: Callable[[int], None] = field(kw_only=True)

    def rows(self) -> Iterator[Int64]:
        for some in DiffSide.rows(self):
            self.tell(int(some[0]) if len(some) else 0)
            yield some


def compare(
    a: DiffSide,
    b: DiffSide,
    connections: ManualMatches,
    rows: ManualMatches,
    tell: Callable[[str], None],
    stopped: Callable[[], bool],
) -> DiffResult:
    """Read both sides' captures where nobody has, and compare them; `connections` and `rows` are what the user matched.
    `tell` gets what is being done, in words. Runs in a thread of its own.

    Raises `Stopped` soon after that is wanted, `capture.CaptureError` where a pipe turns out to be no capture."""
    sys.setswitchinterval(SWITCH_SECONDS)
    for side in (a, b):
        load(side.capture, _reading(side, tell), stopped)
        if stopped():
            raise Stopped
    watched = [
        _WatchedSide(side.capture, side.label, side.filter, tell=_looking(side, tell, stopped)) for side in (a, b)
    ]
    return diff(watched[0], watched[1], connections, rows)


def _reading(side: DiffSide, tell: Callable[[str], None]) -> Callable[[Progress, bool], None]:
    def told(progress: Progress, done: bool) -> None:
        if not done:
            tell(f"reading {clean(side.label)}{_share(progress.done, progress.total)}")

    return told


def _looking(side: DiffSide, tell: Callable[[str], None], stopped: Callable[[], bool]) -> Callable[[int], None]:
    last = 0.0

    def told(row: int) -> None:
        nonlocal last
        if stopped():
            raise Stopped
        if time.monotonic() - last > SECONDS_BETWEEN:
            last = time.monotonic()
            tell(f"comparing {clean(side.label)}{_share(row, len(side.capture))}")

    return told


def _share(done: int, total: int) -> str:
    return f" {min(100, 100 * done // total)}%" if total else ""
