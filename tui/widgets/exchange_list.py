"""The list of exchanges: a window over the index, drawn line by line, whatever its length.

Invariants:
  * only rows on the screen are decoded; their strips are kept in a bounded cache;
  * moving the cursor repaints two lines.
"""

from collections import OrderedDict
from typing import ClassVar

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

from dissector.capture_session import Capture
from dissector.core.text import clean
from dissector.export.packets import EXPORT_COMMENT
from tui.appearance import Appearance
from tui.labels import MARKS, path_cell, row_cells
from tui.list_columns import INFO, MARKS_WIDTH, ListColumn
from tui.row_colors import HUES
from tui.row_view import RowView
from tui.time_format import REFERENCE, TimeFormat, time_text
from tui.widgets.scroll_bar import PlacedScrollBar

KEPT_STRIPS = 512
MARKED, COMMENTED, BOTH = "◆", "✎", "◈"
Mark = tuple[str, Style]
_POINTED = Style(underline=True, bold=True)


class ExchangeList(ScrollView, PlacedScrollBar, can_focus=True):
    """The exchanges of a capture."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "list--head", "list--cursor", "list--odd", "list--error", "list--warning", "list--mark",
        *(f"list--hue{n}" for n in range(HUES)),
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="list.page_down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="list.page_up"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="list.half_down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="list.half_up"),
        Binding("g,home", "go(0)", "First", show=False, id="list.first"),
        Binding("G,end", "go(-1)", "Last", show=False, id="list.last"),
        Binding(
            "right",
            "column(1)",
            "Next cell",
            show=False,
            tooltip="Select the next cell, for a and A",
            id="list.column",
        ),
        Binding(
            "left",
            "column(-1)",
            "Previous cell",
            show=False,
            tooltip="Select the previous cell, for a and A",
            id="list.previous_column",
        ),
    ]
    cursor: reactive[int] = reactive(0, repaint=False)

    class RowChosen(Message):
        """The cursor moved to another row. `numbering` counts how often rows were renumbered before."""

        def __init__(self, number: int, numbering: int) -> None:
            super().__init__()
            self.number = number
            self.numbering = numbering

    class RowOpened(Message):
        """A row was double-clicked: show its fields."""

    class HeadClicked(Message):
        """The heading of a column was clicked."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(self, capture: Capture, view: RowView, appearance: Appearance, *, id: str) -> None:
        super().__init__(id=id)
        self._capture = capture
        self._view = view
        self._appearance = appearance
        self._strips: OrderedDict[tuple[int, int, bool], Strip] = OrderedDict()
        self._typed = ""
        self.selected = 0
        """The row that the user selected. While it is hidden the cursor stays near it."""
        self.column: str | None = None
        """The column of the selected cell; None before one is selected."""
        self.numbering = 0
        """How often rows were renumbered."""
        self._posted_number: int | None = None
        """The row of the last `RowChosen`."""

    @property
    def number(self) -> int:
        """The row under the cursor, from 0; the selected one if none is shown."""
        return self._view.number(self.cursor) if len(self._view) else self.selected

    def show(self, count: int, *, redraw: bool = False, follow: bool = False) -> None:
        """Show `count` rows; `redraw` if drawn rows may have changed; `follow` if the cursor stays on the last row."""
        on_last = follow and self.cursor >= len(self._view) - 1
        self._view.grow(count)
        self.update_rows(redraw=redraw, scrolled=False)
        if on_last:
            self.cursor = len(self._view) - 1

    def update_rows(self, *, redraw: bool = True, scrolled: bool = True) -> None:
        """Show the view's rows: the cursor stays on its row, or goes to the nearest. `redraw` if drawn rows may look
        different; `scrolled` if the cursor is scrolled into view."""
        if redraw:
            self._strips.clear()
        self.virtual_size = Size(self._across, len(self._view) + 1)
        position = self._view.nearest(self.selected)
        if position is not None:
            selected = self.selected
            if self.cursor != position:
                self.cursor = position
            self.selected = selected
            if scrolled:
                self._into_view()
            self._post_chosen()
        self.refresh()

    def follow(self, number: int) -> None:
        """Follow a row that was renumbered."""
        self.selected = self._posted_number = number
        self.numbering += 1

    def columns(self) -> list[ListColumn]:
        """Return the columns that fit, Info last with the remaining width."""
        form = self._appearance.time
        # the default format may be narrow; the others can't
        return self._appearance.columns.fitting(self._across, 0 if form is TimeFormat.START else form.width)

    @property
    def _across(self) -> int:
        """Cells of a line, without the scroll bar's."""
        return self.scrollable_content_region.width

    def render_line(self, y: int) -> Strip:
        """Return one line of the pane; the heading stays on top."""
        if y == 0:
            return self._head_strip()
        position = self.scroll_offset.y + y - 1
        if position >= len(self._view):
            return Strip.blank(self._across, self.rich_style)
        number, chosen = self._view.number(position), position == self.cursor
        key = (number, self._across, chosen)
        if key not in self._strips:
            self._strips[key] = self._row_strip(position, number, chosen)
            if len(self._strips) > KEPT_STRIPS:
                self._strips.popitem(last=False)
        return self._strips[key]

    def _head_strip(self) -> Strip:
        sorting = self._appearance.sorting
        columns = self.columns()
        cells = {column.name: column.head for column in columns}
        if sorting is not None and sorting.column in cells:
            cells[sorting.column] += sorting.arrow
        style = self.get_component_rich_style("list--head")
        return self._strip([(" " * (MARKS_WIDTH - 1), style)], columns, cells, style, points=True)

    def _row_strip(self, position: int, number: int, chosen: bool) -> Strip:
        exchange = self._capture.exchange(number)
        row = exchange.row
        mark = MARKS.get(row.severity.value, " ") if row.severity is not None else " "
        style = self.get_component_rich_style("list--odd") if row.number % 2 else self.rich_style
        hue = self._appearance.color_by.hue(row, exchange.api_key)
        if row.severity is not None and row.severity.value in ("error", "warning"):
            style += self.get_component_rich_style(f"list--{row.severity.value}", partial=True)
            style += Style(bold=row.severity.value == "error")
        elif hue is not None:
            style += self.hue_style(hue)
        marked = style + self.get_component_rich_style("list--mark", partial=True)
        if chosen:
            cursor = self.get_component_rich_style("list--cursor") + Style(bold=True, reverse=self.app.no_color)
            style, marked = style + cursor, marked + cursor
        comment = self._comment(number)
        marks = [("▸" if chosen else " ", style), (self._mark(number, comment), marked), (mark, style)]
        columns = self.columns()
        cells = row_cells(row, self._time(position, number, row.time_ns))
        if comment:
            cells[INFO] = f"{COMMENTED} {comment} · {cells[INFO]}".removesuffix(" · ")
        cells |= {column.name: path_cell(exchange, column.field) for column in columns if column.name not in cells}
        return self._strip(marks, columns, cells, style, points=chosen)

    def _mark(self, number: int, comment: str) -> str:
        marked = number in self._appearance.marks.marked
        return BOTH if marked and comment else MARKED if marked else COMMENTED if comment else " "

    def _comment(self, number: int) -> str:
        """Return the comments on a row, of the user and of its packets in the capture."""
        written = [self._appearance.marks.comments.get(number, "")]
        if self._capture.comments:
            packets = dict.fromkeys(span.packet for span in self._capture.index.spans(number))
            lines = "\n".join(self._capture.comments.get(packet, "") for packet in packets).splitlines()
            written += [line for line in lines if not EXPORT_COMMENT.match(line)]
        return clean(" · ".join(line for line in written if line))

    def _time(self, position: int, number: int, time_ns: int) -> str:
        form, reference = self._appearance.time, self._appearance.reference
        if number == reference:
            return REFERENCE
        since = self._capture.start_ns
        if form is TimeFormat.PREVIOUS:
            since = self._time_of(self._view.number(position - 1)) if position else time_ns
        elif form is TimeFormat.SINCE_REFERENCE and reference is not None:
            since = self._time_of(reference)
        return time_text(time_ns, form, since)

    def _time_of(self, number: int) -> int:
        [[time_ns]] = self._capture.columns(["time_ns"], range(number, number + 1))
        return time_ns if isinstance(time_ns, int) else self._capture.start_ns

    def _strip(
        self, marks: list[Mark], columns: list[ListColumn], cells: dict[str, str], style: Style, *, points: bool
    ) -> Strip:
        """Return a line; if it `points`, the selected cell is highlighted."""
        segments = [Segment(*mark) for mark in marks]
        for column in columns:
            text = cells[column.name]
            text = text.rjust(column.width) if column.right else text
            if len(text) > column.width:
                text = text[: column.width - 1] + "…"
            pointed = points and column.name == self.column
            segments.append(Segment(" ", style))
            segments.append(Segment(set_cell_size(text, column.width), style + _POINTED if pointed else style))
        return Strip(Segment.simplify(segments)).adjust_cell_length(self._across, style)

    def hue_style(self, hue: int) -> Style:
        """Return the style of a hue."""
        return self.get_component_rich_style(f"list--hue{hue}", partial=True)

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
            self.selected = self.number
            self._post_chosen()

    def _post_chosen(self) -> None:
        """Post which row is selected, once."""
        if len(self._view) and self._posted_number != self.number:
            self._posted_number = self.number
            self.post_message(self.RowChosen(self.number, self.numbering))

    def _into_view(self) -> None:
        rows = self.size.height - 1
        if self.cursor < self.scroll_offset.y:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif rows > 0 and self.cursor >= self.scroll_offset.y + rows:
            self.scroll_to(y=self.cursor - rows + 1, animate=False, force=True)

    def action_move(self, rows: int) -> None:
        self.cursor += rows

    def action_column(self, step: int) -> None:
        """Select the cell beside the selected one; first the API."""
        names = [column.name for column in self.columns()]
        if self.column in names:
            self._point_at(names[max(0, min(names.index(self.column) + step, len(names) - 1))])
        else:
            self._point_at("API" if "API" in names else names[0])

    def _point_at(self, column: str) -> None:
        if column != self.column:
            self.column = column
            self._strips.clear()
            self.refresh()

    def action_page(self, pages: float) -> None:
        self.cursor += int(pages * max(1, self.size.height - 2))

    def action_go(self, number: int) -> None:
        """Go to the first row, the last, or the one whose number was typed before."""
        typed, self._typed = self._typed, ""
        self.cursor = int(typed) - 1 if typed else number if number >= 0 else len(self._view) - 1

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character.isdecimal() and event.character.isascii():
            self._typed = (self._typed + event.character)[-9:]
        elif event.key not in ("g", "G"):
            self._typed = ""

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            column = self._column_at(event.x)
            if column is not None:
                self.post_message(self.HeadClicked(column.name))
        elif self.scroll_offset.y + event.y - 1 < len(self._view):
            self.cursor = self.scroll_offset.y + event.y - 1
            column = self._column_at(event.x)
            if column is not None:
                self._point_at(column.name)
            if event.chain > 1:
                self.post_message(self.RowOpened())

    def _column_at(self, x: int) -> ListColumn | None:
        """Return the column that is drawn at a place of a line."""
        end = MARKS_WIDTH
        for column in self.columns():
            end += column.width + 1
            if MARKS_WIDTH <= x < end:
                return column
        return None
