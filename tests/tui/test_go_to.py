"""Going to a time, a packet, the next row of a kind, by what is typed and by keys."""

import pytest

from tests.tui.main_driver import JAVA
from tests.tui.shared_screens import SharedScreens
from tests.tui.test_commands import typed
from tui.screens.command_dialog import CommandDialog


@pytest.mark.long
async def test_a_time_goes_to_the_first_row_at_or_after_it(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        rows = [exchange.row for exchange in screen.main.capture.exchanges()]
        start = screen.main.capture.start_ns
        middle = rows[20].time_ns - start
        await typed(screen, f"{middle / 1e9:.9f}")
        assert screen.row == 20
        await typed(screen, f"{(middle + 1) / 1e9:.9f}")
        assert screen.row == 21
        await typed(screen, "1")
        await typed(screen, f"+{rows[20].time_ns - rows[0].time_ns}ns")
        assert screen.row == 20
        await typed(screen, "99999.0")
        assert screen.row == len(rows) - 1
        assert "no row is that late; this is the last one" in screen.notifications()
        await typed(screen, "-2")
        assert screen.row == len(rows) - 3


@pytest.mark.long
async def test_a_packet_goes_to_the_row_that_begins_or_is_answered_in_it(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        row = screen.main.capture.exchange(41).row
        await typed(screen, f"packet {row.packet}")
        assert screen.row == 41
        await typed(screen, "1")
        await typed(screen, f"packet {row.response_packet}")
        assert screen.row == 41
        await typed(screen, "packet 1")
        assert any("packet" in words for words in screen.notifications())


@pytest.mark.long
async def test_next_of_a_kind_is_one_with_the_finding_or_the_api(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("right_parenthesis")
        capture = screen.main.capture
        assert screen.row == next(e.row.number - 1 for e in capture.exchanges("api == ApiVersions") if e.row.number > 1)
        await screen.press("left_parenthesis")
        assert screen.row == 0
        await typed(screen, "finding")
        with_findings = [e.row.number - 1 for e in capture.exchanges("finding")]
        assert screen.row == next(row for row in with_findings if row)
        code = capture.exchange(screen.row).findings[0].code
        later = [e.row.number - 1 for e in capture.exchanges(f'finding == "{code}"') if e.row.number - 1 > screen.row]
        await screen.press("right_parenthesis")
        assert screen.row == later[0]
        await typed(screen, "1")
        await typed(screen, "next api == Fetch")
        assert capture.exchange(screen.row).row.api == "Fetch"
        await typed(screen, "next ap == ")
        assert isinstance(screen.pilot.app.screen, CommandDialog)  # to be corrected
