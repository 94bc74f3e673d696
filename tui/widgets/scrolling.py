"""Widgets that scroll: lines with a cursor below a heading, and a vertical scroll bar that appears where its widget is
scrolled to.

Textual tells a scroll bar the position when that changes while the bar is shown. A widget that scrolls before its bar
is shown (rows and scrolling come in one step, the bar with the next layout) would have the bar's thumb at the top.
"""

from typing import ClassVar

from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.widget import Widget


class PlacedScrollBar(Widget):
    """A widget whose scroll bar shows its position from the beginning."""

    def watch_show_vertical_scrollbar(self, is_shown: bool) -> None:
        if is_shown:
            self.vertical_scrollbar.position = self.scroll_y


class CursorLines(ScrollView, PlacedScrollBar, can_focus=True):
    """Lines, one of them under a cursor, below a heading that stays. A subclass knows how many there are."""

    HEADS: ClassVar[int] = 1
    """Lines of the heading."""
    cursor: reactive[int] = reactive(0, repaint=False)

    @property
    def count(self) -> int:
        """How many lines there are below the heading."""
        raise NotImplementedError

    @property
    def _across(self) -> int:
        """Cells of a line, without the scroll bar's."""
        return self.scrollable_content_region.width

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, self.count - 1))

    def _into_view(self) -> None:
        """Scroll the line under the cursor into view."""
        rows = self.size.height - self.HEADS
        if self.cursor < self.scroll_offset.y:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif rows > 0 and self.cursor >= self.scroll_offset.y + rows:
            self.scroll_to(y=self.cursor - rows + 1, animate=False, force=True)

    def action_move(self, lines: int) -> None:
        self.cursor += lines

    def action_page(self, pages: float) -> None:
        self.cursor += int(pages * max(1, self.size.height - self.HEADS - 1))

    def action_go(self, number: int) -> None:
        """Go to a line; to the last one if it is negative."""
        self.cursor = number if number >= 0 else self.count - 1
