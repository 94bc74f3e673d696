"""Reads the histories of groups in one go."""

from dissector.analysis.group_pass import GroupPass
from dissector.capture_session import Capture
from dissector.groups.history import GroupHistory


def histories(path: str) -> dict[str, GroupHistory]:
    """Return the histories of a capture, by group."""
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        reading = GroupPass(capture)
        for _ in reading.steps():
            pass
        return reading.histories
