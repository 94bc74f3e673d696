"""Reads the capture in a thread that reports a few times a second, so that the screen is never blocked."""

import sys
import time
from collections.abc import Callable

from dissector.capture_session import Capture, Progress

SECONDS_BETWEEN = 0.15
SWITCH_SECONDS = 0.001
"""Measured: with Python's 5 ms a key takes five times as long to show while a thread reads."""


def load(
    capture: Capture, report: Callable[[Progress, bool], None], stopped: Callable[[], bool], *, sort: bool = True
) -> None:
    """Read the capture to its end, unless that is done; `report` gets the progress, and whether it is done. Runs in a
    thread."""
    sys.setswitchinterval(SWITCH_SECONDS)
    reported = 0.0
    progress = Progress(capture.pipeline.done, capture.pipeline.total, capture.packets, len(capture))
    for progress in () if capture.is_read else capture.read(sort=sort):
        if stopped():
            return
        if time.monotonic() - reported > SECONDS_BETWEEN:
            reported = time.monotonic()
            report(progress, False)
    report(progress, True)
