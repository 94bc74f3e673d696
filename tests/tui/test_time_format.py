"""The time formats, against the standard library's; the keys that change them."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.tui.main_driver import JAVA
from tests.tui.shared_screens import SharedScreens
from tests.tui.test_sort import cells_of
from tui.time_format import REFERENCE, TimeFormat, date_text, time_text

NS = st.integers(-(10**18), 4 * 10**18)


@given(NS)
def test_a_time_of_day_is_that_of_datetime(time_ns: int) -> None:
    time = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    assert time_text(time_ns, TimeFormat.UTC, 0).startswith(f"{time:%H:%M:%S}.")
    assert time_text(time_ns, TimeFormat.LOCAL, 0).startswith(f"{time.astimezone():%H:%M:%S}.")
    assert date_text(time_ns, TimeFormat.UTC).endswith(" UTC")


@cases("time_ns", [2**63 - 1, -(2**63), 2**70])
@cases("form", list(TimeFormat))
def test_a_time_beyond_any_calendar_is_shown_in_seconds(time_ns: int, form: TimeFormat) -> None:
    assert time_text(time_ns, form, 0)
    date_text(time_ns, form)


def test_formats_go_round_through_all() -> None:
    seen, form = [], TimeFormat.START
    for _ in TimeFormat:
        seen.append(form)
        form = form.next
    assert set(seen) == set(TimeFormat)
    assert form is TimeFormat.START


@pytest.mark.long
async def test_t_changes_the_format(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        rows = [screen.main.capture.exchange(n).row for n in range(8)]
        start = screen.main.capture.start_ns
        assert cells_of(screen, "Time")[1] == f"{(rows[1].time_ns - start) // 1000 / 1e6:.6f}"
        await screen.press("t")
        steps = [(b.time_ns - a.time_ns) // 1_000 for a, b in pairwise(rows)]
        assert cells_of(screen, "Time")[:8] == ["0.000000", *(f"{step / 1e6:.6f}" for step in steps)]
        await screen.press("t")  # no reference: local time
        assert screen.main.appearance.time is TimeFormat.LOCAL
        await screen.press("t")
        time = datetime.fromtimestamp(rows[0].time_ns // 10**9, UTC)
        assert cells_of(screen, "Time")[0].startswith(f"{time:%H:%M:%S}")
        await screen.press("t")
        assert cells_of(screen, "Time")[0].startswith(f"{rows[0].time_ns // 10**9}.")
        await screen.press("t")
        assert screen.main.appearance.time is TimeFormat.START


@pytest.mark.long
async def test_shift_t_counts_from_a_row_and_back(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        rows = [screen.main.capture.exchange(n).row for n in range(5)]
        await screen.press("j", "j", "T")
        shown = cells_of(screen, "Time")
        assert shown[2] == REFERENCE
        assert shown[0].startswith("-")
        assert shown[4] == f"{(rows[4].time_ns - rows[2].time_ns) // 1000 / 1e6:.6f}"
        await screen.press("T")
        assert screen.main.appearance.reference is None
        assert REFERENCE not in cells_of(screen, "Time")
