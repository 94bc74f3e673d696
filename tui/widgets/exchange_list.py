"""The list of exchanges: a window over the index, drawn line by line, whatever its length.

Invariants:
  * only rows on the screen are decoded; their strips are kept in a bounded cache;
  * moving the cursor repaints two lines.
"""

from collections import OrderedDict
from typing import ClassVar, NamedTuple

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dissector.capture_file import Capture
from dissector.session.exchange import Row
from tui.view import View
from tui.words import MARKS, row_cells

KEPT_STRIPS = 512


class Column(NamedTuple):
    """A column; `least` is the list's width from which on it is shown."""

    name: str
    width: int
    least: int = 0
    right: bool = False


COLUMNS = (
    Column("No.", 7, 0, right=True),
    Column("Time", 11, 60, right=True),
    Column("Conn", 5, 70, right=True),
    Column("API", 24),
    Column("v", 3, right=True),
    Column("Corr", 8, 110, right=True),
    Column("Out", 6, 90, right=True),
    Column("In", 6, 90, right=True),
    Column("Latency", 9, right=True),
    Column("Client", 24, 140),
)
NARROW = {"No.": 5, "Time": 9, "API": 18}
"""Widths below `NARROW_BELOW` cells."""
NARROW_BELOW = 110


class ExchangeList(ScrollView, can_focus=True):
    """The exchanges of a capture."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"list--head", "list--cursor", "list--odd", "list--error", "list--warning"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="list.page_down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="list.page_up"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="list.half_down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="list.half_up"),
        Binding("g,home", "go(0)", "First", show=False, id="list.first"),
        Binding("G,end", "go(-1)", "Last", show=False, id="list.last"),
    ]
    cursor: reactive[int] = reactive(0, repaint=False)

    class Chosen(Message):
        """The cursor is on another row."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    class Opened(Message):
        """A row was clicked twice: its fields are wanted."""

    def __init__(self, capture: Capture, view: View, *, id: str | None = None) -> None:  # noqa: A002  # Textual's own
        super().__init__(id=id)
        self._capture = capture
        self._view = view
        self._strips: OrderedDict[tuple[int, int, bool], Strip] = OrderedDict()
        self._typed = ""
        self.place = 0
        """The row that the user went to. Where it is hidden the cursor stands near it, until it is shown again."""
        self._said: int | None = None
        """The row that was last told as chosen."""

    @property
    def number(self) -> int:
        """The row under the cursor, from 0; the one that the user went to where none is shown."""
        return self._view.number(self.cursor) if len(self._view) else self.place

    def show(self, count: int, *, anew: bool = False, along: bool = False) -> None:
        """The capture has `count` rows now; `anew` if those shown before may have changed; `along` if the cursor goes
        with the last row where it stands on that."""
        on_last = along and self.cursor >= len(self._view) - 1
        self._view.grow(count)
        self.rearranged(anew=anew)
        if on_last:
            self.cursor = len(self._view) - 1

    def rearranged(self, *, anew: bool = True) -> None:
        """The view shows other rows: the cursor stays with its own, or goes to the nearest. `anew` if rows that were
        drawn may look different."""
        if anew:
            self._strips.clear()
        self.virtual_size = Size(self._across, len(self._view) + 1)
        position = self._view.nearest(self.place)
        if position is not None:
            place = self.place
            if self.cursor != position:
                self.cursor = position
            self.place = place
            self._into_view()
            self._tell()
        self.refresh()

    def follow(self, number: int) -> None:
        """Go with a row that has another number now."""
        self.place = self._said = number

    def columns(self) -> list[Column]:
        """The columns that fit, Info last with what is left."""
        width = self._across
        shown = [
            column._replace(width=NARROW.get(column.name, column.width)) if width < NARROW_BELOW else column
            for column in COLUMNS
            if width >= column.least
        ]
        left = width - 3 - sum(column.width + 1 for column in shown)
        return [*shown, Column("Info", max(left, 4))]

    @property
    def _across(self) -> int:
        """Cells of a line, the scroll bar's not among them."""
        return self.scrollable_content_region.width

    def render_line(self, y: int) -> Strip:
        """One line of the pane; the head stays on top."""
        if y == 0:
            style = self.get_component_rich_style("list--head")
            cells = {column.name: column.name for column in self.columns()}
            return self._strip("  ", cells, style)
        position = self.scroll_offset.y + y - 1
        if position >= len(self._view):
            return Strip.blank(self._across, self.rich_style)
        number, chosen = self._view.number(position), position == self.cursor
        key = (number, self._across, chosen)
        if key not in self._strips:
            self._strips[key] = self._row_strip(self._capture.row(number), chosen)
            if len(self._strips) > KEPT_STRIPS:
                self._strips.popitem(last=False)
        return self._strips[key]

    def _row_strip(self, row: Row, chosen: bool) -> Strip:
        mark = MARKS.get(row.severity.value, " ") if row.severity is not None else " "
        style = self.get_component_rich_style("list--odd") if row.number % 2 else self.rich_style
        if row.severity is not None and row.severity.value in ("error", "warning"):
            style += self.get_component_rich_style(f"list--{row.severity.value}", partial=True)
        if chosen:
            style += self.get_component_rich_style("list--cursor")
            style += Style(bold=True, reverse=self.app.no_color)
        return self._strip(("▸" if chosen else " ") + mark, row_cells(row, self._capture.start_ns), style)

    def _strip(self, mark: str, cells: dict[str, str], style: Style) -> Strip:
        words = [mark]
        for column in self.columns():
            text = cells[column.name]
            text = text.rjust(column.width) if column.right else text
            if len(text) > column.width:
                text = text[: column.width - 1] + "…"
            words.append(set_cell_size(text, column.width))
        return Strip([Segment(" ".join(words), style)]).adjust_cell_length(self._across, style)

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def on_focus(self) -> None:
        self._strips.clear()
        self.refresh()

    def on_blur(self) -> None:
        self._strips.clear()
        self.refresh()

    def on_resize(self) -> None:
        self._strips.clear()
        self.virtual_size = Size(self._across, len(self._view) + 1)
        self._into_view()

    def validate_cursor(self, cursor: int) -> int:
        return max(0, min(cursor, len(self._view) - 1))

    def watch_cursor(self, before: int, now: int) -> None:
        if before != now:
            self._into_view()
            for number in (before, now):
                self.refresh(Region(0, number - self.scroll_offset.y + 1, self._across, 1))
            self.place = self.number
            self._tell()

    def _tell(self) -> None:
        """Say which row is chosen, once."""
        if len(self._view) and self._said != self.number:
            self._said = self.number
            self.post_message(self.Chosen(self.number))

    def _into_view(self) -> None:
        rows = self.size.height - 1
        if self.cursor < self.scroll_offset.y:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif rows > 0 and self.cursor >= self.scroll_offset.y + rows:
            self.scroll_to(y=self.cursor - rows + 1, animate=False, force=True)

    def action_move(self, rows: int) -> None:
        self.cursor += rows

    def action_page(self, pages: float) -> None:
        self.cursor += int(pages * max(1, self.size.height - 2))

    def action_go(self, number: int) -> None:
        """To the first row, the last, or the one whose number was typed before."""
        typed, self._typed = self._typed, ""
        self.cursor = int(typed) - 1 if typed else number if number >= 0 else len(self._view) - 1

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character.isdecimal() and event.character.isascii():
            self._typed = (self._typed + event.character)[-9:]
        elif event.key not in ("g", "G"):
            self._typed = ""

    def on_click(self, event: events.Click) -> None:
        if event.y > 0 and self.scroll_offset.y + event.y - 1 < len(self._view):
            self.cursor = self.scroll_offset.y + event.y - 1
            if event.chain > 1:
                self.post_message(self.Opened())
