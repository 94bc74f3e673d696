"""The mouse on what is drawn and no longer there."""

from textual import events
from textual.widgets import Static

from tests.tui.main_driver import JAVA, opened


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
