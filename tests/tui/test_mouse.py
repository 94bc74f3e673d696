"""The mouse on what is drawn and no longer there."""

import pytest
from rich.style import Style
from textual import events
from textual.command import CommandList
from textual.widgets import Static

from tests.cases import cases
from tests.tui.main_driver import JAVA, opened
from tui.palette import Commands


async def test_the_mouse_on_what_was_removed_does_nothing() -> None:
    async with opened(JAVA) as screen:
        app = screen.pilot.app
        words = Static("saved", id="words")
        await app.screen.mount(words)
        await screen.settle()
        x, y = words.region.offset
        words._detach()  # what a removal does first; it is drawn until the next frame
        assert app.get_widget_at(x, y)[0] is words
        try:
            for kind in (events.MouseDown, events.MouseMove, events.MouseUp):
                await app.on_event(kind(None, x, y, 0, 0, 1, False, False, False, x, y))
            assert app.screen._select_state is None
        finally:
            words._attach(app.screen)


@pytest.mark.long
@cases(("behind", "is_chosen"), [(0, False), (-1, True)])
async def test_a_click_on_a_command_that_is_gone_does_nothing(behind: int, is_chosen: bool) -> None:
    async with opened(JAVA) as screen:
        app = screen.pilot.app
        await screen.press("ctrl+p", *"copy")
        commands = app.screen.query_one(CommandList)
        await screen.until(lambda: commands.option_count > 1)
        await screen.settle()
        drawn = Style(meta={"option": commands.option_count + behind})
        x, y = commands.content_region.offset
        commands.post_message(events.Click(commands, 1, 1, 0, 0, 1, False, False, False, x, y, drawn))
        await screen.settle()
        assert app.is_running
        assert isinstance(app.screen, Commands) != is_chosen
