"""Times that can be typed: what they mean, what is none, what is wrong."""

from datetime import UTC, datetime

import pytest

from tui.command_line import CommandError
from tui.time_places import time_place

START = datetime(2026, 11, 26, 23, 59, 58, 500_000, UTC)
START_NS = round(START.timestamp() * 1_000) * 1_000_000
HERE_NS = START_NS + 10_000_000_000


@pytest.mark.parametrize(
    ("text", "since_start_ns"),
    [("7.3", 7_300_000_000), ("7s", 7_000_000_000), ("250ms", 250_000_000), ("0.000000001", 1), ("+2s", 12_000_000_000),
     ("-100ms", 9_900_000_000), ("23:59:59", 500_000_000), ("23:59:58.5", 0), ("00:00:01.25", 2_750_000_000),
     ("23:59:58.499999999", 86_400_000_000_000 - 1), ("0:01", 61_500_000_000),
     ("2026-11-26 23:59:00", -58_500_000_000), ("2026-11-27T00:00:00Z", 1_500_000_000)],
)  # fmt: skip
def test_a_time_is_since_the_start_from_here_or_by_the_clock(text: str, since_start_ns: int) -> None:
    found = time_place(text, START_NS, HERE_NS, utc=True)
    assert found is not None
    assert found - START_NS == since_start_ns


@pytest.mark.parametrize("text", ["7", "+2", "-2", "filter", "w a.pcap", "12", "", ":", "1.2.3", "7.", "s"])
def test_what_is_no_time_is_left_to_others(text: str) -> None:
    assert time_place(text, START_NS, HERE_NS, utc=True) is None


@pytest.mark.parametrize("text", ["7parsecs", "25:00:00", "12:75", "2026-13-01 10:00", "12:00:61"])
def test_a_wrong_time_is_one_plain_line(text: str) -> None:
    with pytest.raises(CommandError, match=r"^[^\n]+$"):
        time_place(text, START_NS, HERE_NS, utc=True)
