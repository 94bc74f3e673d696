"""What reading costs grows with the capture, however much was lost of it: counted in calls, as no clock is steady."""

import random
import sys
from pathlib import Path

from dissector.capture_file import Capture
from tests.traffic import capture_of, conversation, exchanges, lossy


def calls(folder: Path, count: int) -> int:
    """Calls of functions while a lossy capture of so many exchanges is read."""
    packets = conversation(exchanges(count, pipelined=8, size=200), segment=100)
    path = capture_of(folder, lossy(packets, random.Random(1)))
    seen = 0

    def profile(_frame: object, event: str, _arg: object) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    with Capture([path]) as capture:
        sys.setprofile(profile)
        try:
            for _ in capture.read():
                pass
        finally:
            sys.setprofile(None)
    return seen


def test_what_losses_cost_grows_with_the_capture(tmp_path: Path) -> None:
    few, many = calls(tmp_path, 250), calls(tmp_path, 1000)
    assert many < 5 * few
