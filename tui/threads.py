"""Work in threads, so that the screen is never blocked: reading the capture, with reports a few times a second; calls
to the screen; pauses of Python's cyclic garbage collector. It visits all objects and blocks every thread meanwhile:
0.7 s, measured, with the tree of a message with 20,000 records among them. Trees have no cycles, so they are kept out.

Invariant: cycles of other code are collected late, but collected.
"""

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

from textual.widget import Widget
from textual.worker import get_current_worker

from dissector.capture_session import Capture, Progress

Arguments = ParamSpec("Arguments")


def call_on_ui(
    screen: Widget, function: Callable[Arguments, object], /, *what: Arguments.args, **named: Arguments.kwargs
) -> None:
    """Call a function on the thread of the screen, and wait for it. Nothing is called for a worker that was cancelled
    meanwhile, nor for a screen that was closed: that has lost its widgets while it is still attached."""
    worker = get_current_worker()

    def call() -> None:
        shown = screen.app.is_running and screen.is_attached and screen.screen in screen.app.screen_stack
        if shown and not worker.is_cancelled:
            function(*what, **named)

    screen.app.call_from_thread(call)


class Stopped(Exception):  # noqa: N818  # nothing is wrong
    """What a thread makes is not wanted any more: its screen was closed, or its worker cancelled."""


class Pace:
    """When a thread reports its progress: at once, and then not before so many seconds have passed."""

    def __init__(self, seconds: float, *, at_once: bool = True) -> None:
        self._seconds = seconds
        self._due = 0.0
        if not at_once:
            self.restart()

    def is_due(self) -> bool:
        """Whether to report now; if so, the next report is due later."""
        if time.monotonic() <= self._due:
            return False
        self.restart()
        return True

    def restart(self) -> None:
        """Count from now on: where a report took long itself."""
        self._due = time.monotonic() + self._seconds


SECONDS_BETWEEN = 0.15
SWITCH_SECONDS = 0.001
"""Measured: with Python's 5 ms a key takes five times as long to show while a thread reads."""


def load(
    capture: Capture, report: Callable[[Progress, bool], None], stopped: Callable[[], bool], *, sort: bool = True
) -> None:
    """Read the capture to its end, unless that is done; `report` gets the progress, and whether it is done. Runs in a
    thread."""
    sys.setswitchinterval(SWITCH_SECONDS)
    pace = Pace(SECONDS_BETWEEN)
    progress = Progress(capture.pipeline.done, capture.pipeline.total, capture.packets, len(capture))
    for progress in () if capture.is_read else capture.read(sort=sort):
        if stopped():
            return
        if pace.is_due():
            report(progress, False)
    report(progress, True)


_LOCK = threading.Lock()
_holders = 0


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector while a thread makes many objects."""
    _hold(1)
    try:
        yield
    finally:
        _hold(-1)


def _hold(step: int) -> None:
    global _holders  # there is one collector for all threads
    with _LOCK:
        _holders += step
        (gc.disable if _holders else gc.enable)()


def freeze_objects() -> None:
    """Exclude all current objects from collections, until `unfreeze_objects`."""
    gc.freeze()


def unfreeze_objects() -> None:
    """Include the excluded objects that still exist again: for when they are few again."""
    gc.unfreeze()
