"""Notifications, whenever they expire."""

import time
from itertools import count

import pytest
from textual.widgets._toast import Toast

from tui.app import KDissectApp

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
