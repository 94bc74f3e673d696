"""Statistics of a live capture."""

from collections import deque

from dissector.capture_session import Capture
from tests.tui.diff_driver import JAVA
from tui.live_stats import ErrorTimes, live_stats

MILLISECOND = 1_000_000


def test_the_wait_of_a_long_poll_is_no_latency() -> None:
    with Capture([JAVA]) as capture:
        deque(capture.read(), maxlen=0)
        rows = [capture.exchange(number).row for number in range(len(capture))]
        waits = [row.latency_ns or 0 for row in rows if row.api == "Fetch"]
        assert max(waits) > 400 * MILLISECOND
        stats = live_stats(capture, max(row.time_ns for row in rows), ErrorTimes())
        assert stats.p99_ns is not None
        assert stats.p99_ns < 400 * MILLISECOND
