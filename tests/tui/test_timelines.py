"""Timelines on the screen."""

from pathlib import Path

import pytest
from rich.cells import cell_len

from dissector.analysis.timelines.timeline import Phase, Timeline, TimelineEvent
from tests.cases import cases
from tests.conftest import PCAPS
from tests.traffic import capture_of, conversation, exchanges
from tests.tui.driver import SIZES
from tests.tui.main_driver import JAVA, Screen, opened
from tui.screens.main_screen import MainScreen
from tui.screens.timelines_screen import TimelinesScreen, timeline_lines
from tui.widgets.line_list import LineList

TRANSACTIONS = str(PCAPS / "java-transactions.pcapng")


def lines(screen: Screen) -> LineList:
    return screen.pilot.app.screen.query_one(LineList)


@pytest.mark.long
async def test_capital_l_shows_groups_and_transactions_at_every_size() -> None:
    async with opened(TRANSACTIONS, size=SIZES[0]) as screen:
        await screen.press("L")
        for size in SIZES:
            await screen.resize(size)
            drawn = screen.lines()
            for words in ("Timelines", "● 3 timelines", "java-mill", "classic protocol", "generation 1 · range"):
                assert words in drawn, size
            assert "· MEMBER" in drawn, "an error that is a step of the protocol is a note"


@pytest.mark.exhaustive
async def test_tab_goes_from_one_to_the_next() -> None:
    async with opened(TRANSACTIONS, size=(80, 24)) as screen:
        await screen.press("L")
        rows = [lines(screen).target]
        for key in ("tab", "right", "shift+tab", "left", "l", "h"):
            await screen.press(key)
            rows.append(lines(screen).target)
        assert rows == [17, 52, 14, 52, 17, 52, 17]


@pytest.mark.long
async def test_it_closes_and_enter_goes_to_the_exchange() -> None:
    async with opened(TRANSACTIONS) as screen:
        for key in ("escape", "q", "L"):
            await screen.press("L")
            assert isinstance(screen.pilot.app.screen, TimelinesScreen)
            await screen.press(key)
            assert isinstance(screen.pilot.app.screen, MainScreen)
            assert screen.row == 0
        await screen.press("L", "tab", "tab", "j", "enter")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert screen.row == 28


@pytest.mark.exhaustive
async def test_a_capture_without_timelines_is_reported(tmp_path: Path) -> None:
    async with opened(capture_of(tmp_path, conversation(exchanges(2)))) as screen:
        await screen.press("L")
        assert "no groups and no transactions" in screen.lines()
        await screen.press("escape")
        assert isinstance(screen.pilot.app.screen, MainScreen)


@pytest.mark.exhaustive
async def test_while_the_capture_is_read_it_waits() -> None:
    async with opened(JAVA) as screen:
        screen.main.done = False
        await screen.press("o", "D")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert screen.notifications() == ["still reading the capture: this needs the whole capture"] * 2


def test_omitted_events_are_counted_and_words_are_clean() -> None:
    event = TimelineEvent(4, 7, "JoinGroup", "\x1b[2Jme", "a\x07b", "ERR\x9b")
    timeline = Timeline("group\x1b", "classic", [Phase("generation 1 · \x1b", [event], heartbeats=1_234)], left_out=5)
    words = ["".join(text for text, _ in each.pieces) for each in timeline_lines([timeline], 0, 100)]
    assert "1,234 heartbeats without change" in words[1]
    assert "5 more events" in words[3]
    assert not {c for line in words for c in line if ord(c) < 32 or 0x7F <= ord(c) < 0xA0}


@cases(("width", "who", "words"), [
    (120, "billing-servic…4d24-consumer-1", " billing-service-orders-payments[0..11]"),
    (110, "billing-servi…24-consumer-1", " billing-serv…ders-payments[0..11]"),
    (200, "billing-service-0d3a9f5b-7c1e-4d24-consumer-1", " billing-service-orders-payments[0..11]"),
])  # fmt: skip
def test_long_names_lose_their_middles_so_that_numbers_at_their_ends_stay(width: int, who: str, words: str) -> None:
    member = "billing-service-0d3a9f5b-7c1e-4d24-consumer-1"
    event = TimelineEvent(4, 7, "SyncGroup", member, "gets billing-service-orders-payments[0..11]", "")
    timeline = Timeline("billing", "classic", [Phase("generation 1", [event])], _members={"0": member})
    line = "".join(text for text, _ in timeline_lines([timeline], 0, width)[-2].pieces)
    assert f" {who} " in line
    assert line.endswith(words)
    assert len(line) < width


def test_events_begin_in_one_column_whatever_the_members_are_called() -> None:
    members = ["注文テーブル-consumer-1", "me"]
    events = [TimelineEvent(n, 7, "SyncGroup", member, "", "") for n, member in enumerate(members)]
    timeline = Timeline("g", "classic", [Phase("generation 1", events)], _members=dict(enumerate(members)))
    for width in (70, 80, 120):
        lines = ["".join(text for text, _ in each.pieces) for each in timeline_lines([timeline], 0, width)[-3:-1]]
        first, second = (cell_len(line.partition("SyncGroup")[0]) for line in lines)
        assert first == second, width
