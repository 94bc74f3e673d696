"""A screen that tests share is as it was opened; what nobody looks at is drawn all the same when a test ends."""

from typing import NoReturn

import pytest

from tests.tui.main_driver import JAVA, opened
from tests.tui.shared_screens import SharedScreens
from tui.widgets.exchange_list import ExchangeList


@pytest.mark.long
async def test_what_a_test_leaves_is_put_back(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        before = screen
        drawn = screen.lines()
        await screen.press("8", "G", "m", "r", "t", "Z", "enter", "j", "j", "y", "n", "c")
        screen.main.filter.apply("api == Fetch")
        await screen.settle()
        await screen.press("escape", "question_mark")
        assert screen.lines() != drawn
    async with shared.opened(JAVA) as screen:
        assert screen is before
        assert screen.lines() == drawn
        assert (screen.row, screen.main.model.side, screen.path) == (0, "request", "")
        assert screen.main.appearance.marks.marked == set()
        assert (screen.notifications(), screen.pilot.app.clipboard) == ([], "")
        await screen.press("u")
        assert screen.notifications() == ["no filter was removed; / adds one"]


@pytest.mark.long
async def test_a_screen_that_cannot_be_put_back_is_closed(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        before, size = screen, screen.pilot.app.size
        await screen.resize((80, 24))
    async with shared.opened(JAVA) as screen:
        assert screen is not before
        assert screen.pilot.app.size == size
        assert not before.pilot.app.is_running


async def _failing(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("j")
        raise AssertionError("it failed")


@pytest.mark.long
async def test_a_screen_on_which_a_test_failed_is_closed(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        before = screen
    with pytest.raises(AssertionError, match="it failed"):
        await _failing(shared)
    assert not before.pilot.app.is_running
    async with shared.opened(JAVA) as screen:
        assert screen is not before
        assert screen.row == 0


def _broken(_: ExchangeList, y: int) -> NoReturn:
    raise AssertionError(f"line {y}")


async def _drawn_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(JAVA) as screen:
        monkeypatch.setattr(ExchangeList, "render_line", _broken)
        await screen.press("j")


async def test_an_error_in_drawing_fails_a_test_that_does_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="line"):
        await _drawn_wrong(monkeypatch)
