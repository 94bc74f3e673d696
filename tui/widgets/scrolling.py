"""Widgets that scroll: lines with a cursor below a heading, and a vertical scroll bar that appears where its widget is
scrolled to.

Textual tells a scroll bar the position when that changes while the bar is shown. A widget that scrolls before its bar
is shown (rows and scrolling come in one step, the bar with the next layout) would have the bar's thumb at the top.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import ClassVar, Final

from textual import events
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

KEPT_STRIPS: Final = 512


class PlacedScrollBar(Widget):
    """A widget whose scroll bar shows its position from the beginning."""

    def watch_show_vertical_scrollbar(self, is_shown: bool) -> None:
        if is_shown:
            self.vertical_scrollbar.position = self.scroll_y


class CursorLines(ScrollView, PlacedScrollBar, can_focus=True):
    """Lines, one of them under a cursor, below a heading that stays. A subclass knows how many there are, and makes
    those that are on the screen.

    Invariants: the strips of lines are kept, a bounded number of them; moving the cursor repaints two lines."""

    HEADS: ClassVar[int] = 1
    """Lines of the heading."""
    cursor: reactive[int] = reactive(0, repaint=False)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._strips: OrderedDict[tuple[Hashable, int, bool], Strip] = OrderedDict()
        """By what a line is, the width, whether the cursor is on it."""

    @property
    def count(self) -> int:
        """How many lines there are below the heading."""
        raise NotImplementedError

    def head_strip(self, y: int) -> Strip:
        """Return a line of the heading."""
        raise NotImplementedError

    def line_strip(self, number: int, *, chosen: bool) -> Strip:
        """Return a line; `chosen` if the cursor is on it."""
        raise NotImplementedError

    def line_key(self, number: int) -> Hashable:
        """Return what a line is: one that is equal in it looks the same until `forget`."""
        return number

    def blank_strip(self, y: int) -> Strip:
        """Return a line of the pane below the last one."""
        return Strip.blank(self._across, self.rich_style)

    def render_line(self, y: int) -> Strip:
        """Return one line of the pane; the heading stays on top."""
        if y < self.HEADS:
            return self.head_strip(y)
        number = self.scroll_offset.y + y - self.HEADS
        if number >= self.count:
            return self.blank_strip(y)
        key = self.line_key(number), self._across, number == self.cursor
        if key not in self._strips:
            self._strips[key] = self.line_strip(number, chosen=number == self.cursor)
            if len(self._strips) > KEPT_STRIPS:
                self._strips.popitem(last=False)
        return self._strips[key]

    def forget(self) -> None:
        """Make all lines again when they are shown."""
        self._strips.clear()

    def redraw(self) -> None:
        """Draw the same lines again."""
        self.forget()
        self.refresh()

    def notify_style_update(self) -> None:
        self.forget()
        super().notify_style_update()

    def on_focus(self) -> None:
        self.redraw()

    def on_blur(self) -> None:
        self.redraw()

    def on_resize(self) -> None:
        self.forget()
        self.virtual_size = Size(self._across, self.count + self.HEADS)
        self._into_view()

    def watch_cursor(self, before: int, now: int) -> None:
        if before != now:
            self._into_view()
            for number in (before, now):
                self.refresh(Region(0, number - self.scroll_offset.y + self.HEADS, self._across, 1))
            self.cursor_moved()

    def cursor_moved(self) -> None:
        """The cursor is on another line."""

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


class TypedNumber(Widget):
    """A widget in which a number that was typed right before a key counts, as in vi: `5j` moves five lines."""

    _typed = ""
    _before_key = ""

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character.isdecimal() and event.character.isascii():
            self._typed, self._before_key = (self._typed + event.character)[-9:], ""
        else:
            self._typed, self._before_key = "", self._typed

    def take_number(self) -> int | None:
        """Return the number that was typed before this key, once; None if there was none."""
        typed, self._before_key = self._before_key, ""
        return int(typed) if typed else None


class NumberedLines(CursorLines, TypedNumber):
    """Lines with numbers: `42G` and `42g` go to line 42, `5j` moves five lines."""

    def action_move(self, lines: int) -> None:
        super().action_move(lines * (self.take_number() or 1))

    def action_go(self, number: int) -> None:
        """Go to the first line, the last, or the one whose number was typed before."""
        typed = self.take_number()
        super().action_go(number if typed is None else typed - 1)
