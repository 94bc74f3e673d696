"""Lists of options on any terminal. Textual's fail at a page where two or three rows leave no line for an option, and
at a click on an option that was removed and is drawn still."""

from textual import events
from textual._widget_navigation import Direction
from textual.widgets import OptionList


def has_room(options: OptionList) -> bool:
    """Return whether a list has a line for an option."""
    return options.scrollable_content_region.height > 0


class Options(OptionList):
    """A list of options in which a page is nothing where there is no room, and a click nothing where there is no
    option."""

    def _move_page(self, direction: Direction) -> None:
        if has_room(self):
            super()._move_page(direction)

    async def _on_click(self, event: events.Click) -> None:
        if event.style.meta.get("option", -1) >= self.option_count:
            event.prevent_default()
