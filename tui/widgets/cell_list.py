"""A list that is drawn line by line, whatever its length, with a heading, a cursor, and the keys of the exchange list.

Invariant: only lines on the screen are made.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from tui.widgets.scrolling import CursorLines

CURSOR_WIDTH = 1


class CellList(CursorLines):
    """Lines of cells. A subclass defines the heading and the cells of a line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "cells--head", "cells--cursor", "cells--dim", "cells--strong", "cells--different", "cells--order", "cells--a",
        "cells--b",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="cells.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="cells.up"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, id="cells.page_down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, id="cells.page_up"),
        Binding("g,home", "go(0)", "First", show=False, tooltip="First line", id="cells.first"),
        Binding("G,end", "go(-1)", "Last", show=False, tooltip="Last line", id="cells.last"),
        Binding("enter", "open", "Open", show=False, id="cells.open"),
    ]
    DEFAULT_CSS = """
    CellList { background: $surface; scrollbar-size: 1 1; overflow-x: hidden; }
    CellList > .cells--head { background: $panel; color: $secondary; text-style: bold; }
    CellList > .cells--cursor { background: $idle; }
    CellList:focus > .cells--cursor { background: $cursor; }
    CellList > .cells--dim { color: $secondary; }
    CellList > .cells--strong { text-style: bold; }
    CellList > .cells--different { color: $warning; text-style: bold; }
    CellList > .cells--order { color: $accent; text-style: bold; }
    CellList > .cells--a { color: $hue0; }
    CellList > .cells--b { color: $hue1; }
    """

    class _OfLine(Message):
        def __init__(self, lines: "CellList", number: int) -> None:
            super().__init__()
            self.lines = lines
            self.number = number

        @property
        def control(self) -> "CellList":
            return self.lines

    class LineChosen(_OfLine):
        """The cursor moved to another line."""

        @property
        def is_current(self) -> bool:
            """Whether it is still there: there may be other lines since."""
            return self.number == self.lines.cursor

    class LineOpened(_OfLine):
        """A line was opened."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._count = 0

    def head(self, width: int) -> str:
        """Return the heading for `width` cells."""
        raise NotImplementedError

    def cells(self, number: int, width: int) -> Sequence[tuple[str, str]]:
        """Return the cells of a line, `width` wide together: texts, and the names of their styles."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        return self._count

    def show(self, count: int, cursor: int = 0) -> None:
        """Show other lines, `count` of them, with the cursor on one; no message is posted."""
        self._count = count
        self.forget()
        self.virtual_size = Size(self._across, count + 1)
        with self.prevent(self.LineChosen):
            self.cursor = cursor
        self._into_view()
        self.refresh()

    def head_strip(self, y: int) -> Strip:
        style = self.get_component_rich_style("cells--head")
        text = "   " + self.head(self._across - CURSOR_WIDTH)
        return Strip([Segment(text, style)]).adjust_cell_length(self._across, style)

    def line_strip(self, number: int, *, chosen: bool) -> Strip:
        over = self.get_component_rich_style("cells--cursor") if chosen else Style()
        if chosen:
            over = Style(bgcolor=over.bgcolor, bold=True, reverse=self.app.no_color)
        plain = self.rich_style
        segments = [Segment("▸" if chosen else " ", plain + over)]
        for text, tone in self.cells(number, self._across - CURSOR_WIDTH):
            style = self.get_component_rich_style(f"cells--{tone}") if tone else plain
            segments.append(Segment(text, style + over))
        return Strip(segments).adjust_cell_length(self._across, plain + over)

    def cursor_moved(self) -> None:
        self.post_message(self.LineChosen(self, self.cursor))

    def action_open(self) -> None:
        if self._count:
            self.post_message(self.LineOpened(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        number = self.scroll_offset.y + place.y - 1 if place is not None else -1
        if place is not None and place.y > 0 and number < self._count:
            self.cursor = number
            if event.chain > 1:
                self.action_open()
