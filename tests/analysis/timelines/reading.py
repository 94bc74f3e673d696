"""Reads timelines in one go, as the program's screen does in steps."""

from dissector.analysis.timelines.timeline_pass import TimelinePass
from dissector.capture_session import Capture


def timelines_of(capture: Capture) -> TimelinePass:
    """Return the timelines of a capture that has been read."""
    timelines = TimelinePass(capture)
    for _ in timelines.steps():
        pass
    return timelines
