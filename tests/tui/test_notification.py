"""Notifications, whenever they expire."""

import time
from itertools import count

import pytest
from textual.widgets import Static
from textual.widgets._toast import Toast

from dissector.capture_session import Capture
from tests.tui.main_driver import JAVA, Screen
from tui.app import KDissectApp
from tui.screens.dialog import Choice, Menu
from tui.screens.main_screen import MainScreen

LOOKS = 8
"""Times that Textual asks a notification for the time, at most."""


@pytest.mark.parametrize("early", range(LOOKS))
async def test_one_that_expires_while_it_is_shown_does_not_stop_the_screen(
    early: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock jumps behind its end, after so many looks at the time. A timer with a negative interval never ends."""
    app = KDissectApp()
    async with app.run_test(notifications=True) as pilot:
        looks = count()
        monkeypatch.setattr("textual.notifications.time", lambda: time.time() + 60 * (next(looks) >= early))
        app.notify("written", timeout=5)
        for _ in range(3):
            await pilot.pause()
        assert all(toast._timeout > 0 for toast in app.screen.query(Toast))
        assert next(looks)


@pytest.mark.long
@pytest.mark.parametrize("size", [(60, 20), (120, 40)])
async def test_the_lines_about_the_field_and_the_keys_stay_free(size: tuple[int, int]) -> None:
    with Capture([JAVA]) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test(size=size, notifications=True) as pilot:
            await Screen(pilot).settle()
            app.notify("copied the path", timeout=60)
            await Screen(pilot).until(lambda: app.screen.query(Toast))
            await Screen(pilot).until(lambda: app.screen.query_one(Toast).region.height)
            assert app.screen.query_one(Toast).region.bottom <= app.screen.query_one("#inspector", Static).region.y


async def test_a_menu_is_not_covered_and_what_was_said_is_there_again_after_it() -> None:
    with Capture([JAVA]) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            screen = Screen(pilot)
            await screen.settle()

            def said() -> bool:
                return any(toast.region.height for toast in app.screen.query(Toast))

            app.notify("copied the path", timeout=60)
            await screen.until(said)
            app.push_screen(Menu("Sort by", [Choice(f"column {n}") for n in range(30)]))
            await screen.until(lambda: any(menu.region.height for menu in app.screen.query("Menu #menu")))
            await pilot.pause()
            assert not said()
            await pilot.press("escape")
            await screen.until(said)
