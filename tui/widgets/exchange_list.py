"""The list of exchanges: a window over the index, drawn line by line, whatever its length.

Invariant: only rows on the screen are decoded.
"""

from collections.abc import Hashable, Mapping
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from dissector.capture_session import Capture
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.protocol.schema.loader import api_name
from tui.appearance import Appearance
from tui.labels import fitting_info, path_cell, row_cells
from tui.list_columns import INFO, MARKS_WIDTH, ListColumn, fitted, fitting
from tui.row_colors import HUES, rule_hue
from tui.row_states import COMMENTED, RowState, RowWords, alarm_size, row_state
from tui.row_view import RowView
from tui.time_format import TimeFormat, time_text
from tui.widgets.scrolling import NumberedLines

_LEAST_NUMBER, _LEAST_TIME, _LEAST_API = 3, 8, len("SASL token")
_EMPTY_LINE = 3
"""Where a list without rows says so."""
Mark = tuple[str, Style]
_LATENCY = ROW_FIELDS["latency"].heading
_REPEATING: Final = frozenset(
    ROW_FIELDS[name].heading
    for name in ("connection", "api", "api_version", "client_id", "request.size", "response.size")
)
"""Columns whose cells are faint where they say the same as the row above."""
_POINTED = Style(underline=True, bold=True)


class ExchangeList(NumberedLines):
    """The exchanges of a capture."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "list--head", "list--cursor", "list--error", "list--warning", "list--mark", "list--repeated",
        *(f"list--hue{n}" for n in range(HUES)),
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="list.down"),
        Binding("up,k", "move(-1)", "Up", show=False, id="list.up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="list.page_down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="list.page_up"),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False, id="list.half_down"),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False, id="list.half_up"),
        Binding("g,home", "go(0)", "First", show=False, tooltip="First row", id="list.first"),
        Binding("G,end", "go(-1)", "Last", show=False, tooltip="Last row", id="list.last"),
        Binding(
            "right,l",
            "column(1)",
            "Next cell",
            show=False,
            tooltip="Select a cell, for a and A",
            id="list.column",
        ),
        Binding(
            "left,h",
            "column(-1)",
            "Previous cell",
            show=False,
            tooltip="Select a cell, for a and A",
            id="list.previous_column",
        ),
    ]

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
        self._words = RowWords(capture, view, appearance)
        self._appearance = appearance
        self._plain: Style | None = None
        """The style of a row, as long as strips are kept: to find it takes a tenth of the time that a row takes."""
        self._last_cells: tuple[int, dict[str, str]] = -1, {}
        """The row that was drawn last, and its cells: mostly the one above the next."""
        self.selected = 0
        """The row that the user selected. While it is hidden the cursor stays near it."""
        self.column: str | None = None
        """The column of the selected cell; None before one is selected."""
        self._widths = {"No.": _LEAST_NUMBER, "Time": _LEAST_TIME, "API": _LEAST_API}
        """The widths that columns need for the rows so far."""
        self._measured = 0
        """Rows whose APIs have their place in it."""
        self.empty_words = ""
        """What is said in place of rows, if none is shown."""
        self.numbering = 0
        """How often rows were renumbered."""
        self._posted_number: int | None = None
        """The row of the last `RowChosen`."""

    @property
    def count(self) -> int:
        return len(self._view)

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

    def update_rows(self, *, redraw: bool = True, scrolled: bool = True, awaits: bool = False) -> None:
        """Show the view's rows: the cursor stays on its row, or goes to the nearest. `redraw` if drawn rows may look
        different; `scrolled` if the cursor is scrolled into view; `awaits` if the selected row may still come: no other
        one is selected then."""
        if redraw:
            self.forget()
        self._measure()
        self.virtual_size = Size(self._across, len(self._view) + 1)
        position = self._view.nearest(self.selected)
        if position is not None:
            selected = self.selected
            if awaits:
                self.set_reactive(ExchangeList.cursor, position)
            elif self.cursor != position:
                self.cursor = position
            self.selected = selected
            if scrolled:
                self._into_view()
            if not awaits:
                self._post_chosen()
        self.refresh()

    def follow(self, number: int) -> None:
        """Follow a row that was renumbered."""
        self.selected = self._posted_number = number
        self.numbering += 1

    def columns(self) -> list[ListColumn]:
        """Return the columns that fit, Info last with the remaining width."""
        return self._appearance.columns.fitting(self._across, self._widths)

    def _measure(self) -> None:
        """Find how wide row numbers, times and names of APIs are; draw all again if that changed."""
        last, form = len(self._capture) - 1, self._appearance.time
        time = form.width
        if form is TimeFormat.START and last >= 0:
            time_ns = self._capture.exchange(last).fields.time_ns
            time = max(_LEAST_TIME, len(time_text(time_ns, form, self._capture.start_ns)))
        apis = self._capture.index.apis(self._measured, last + 1) if last + 1 > self._measured else ()
        self._measured = last + 1
        api = max([self._widths["API"], *(len(api_name(key)) for key in apis)])
        widths = {"No.": max(_LEAST_NUMBER, len(str(last + 1))), "Time": time, "API": api}
        if widths != self._widths:
            self._widths = widths
            self.forget()

    def forget(self) -> None:
        super().forget()
        self._plain = None
        self._last_cells = -1, {}

    def blank_strip(self, y: int) -> Strip:
        words = self.empty_words if not len(self._view) and y == _EMPTY_LINE else ""
        style = self.rich_style + self.color("repeated")
        return Strip([Segment(words.center(self._across), style)]).adjust_cell_length(self._across, style)

    def line_key(self, number: int) -> Hashable:
        """The row and the row above it."""
        row = self._view.number(number)
        return row, self._view.number(number - 1) if number else row

    def head_strip(self, y: int) -> Strip:
        sorting = self._appearance.sorting
        columns = self.columns()
        cells = {column.name: column.head for column in columns}
        if sorting is not None and sorting.column in cells:
            cells[sorting.column] += sorting.arrow
        style = self.get_component_rich_style("list--head")
        return self._strip([(" " * (MARKS_WIDTH - 1), style)], columns, cells, style, points=True)

    def line_strip(self, number: int, *, chosen: bool) -> Strip:
        position, number = number, self._view.number(number)
        above = self._view.number(position - 1) if position else number
        exchange = self._capture.exchange(number)
        row, state = exchange.row, row_state(exchange, is_read=self._capture.is_read)
        state = RowState.HELD if number in self._appearance.held and exchange.response is None else state
        hue = rule_hue(self._appearance.saved.color_rules, exchange, self._capture.start_ns)
        hue = self._appearance.color_by.hue(row, exchange.api_key) if hue is None else hue
        self._plain = self._plain or self.rich_style
        style = self._plain if hue is None else self._plain + self.hue_style(hue)
        if chosen:
            cursor = self.get_component_rich_style("list--cursor")
            style += Style(bgcolor=cursor.bgcolor, bold=True, reverse=self.app.no_color)
        alarm = style + self.color(state.color)
        comment = self._words.comment(number)
        marks = [
            ("▸" if chosen else " ", style), (self._words.mark(number, comment), style + self.color("mark")),
            (state.mark, alarm),
        ]  # fmt: skip
        columns = self.columns()
        cells = row_cells(row, self._words.time(position, number, row.time_ns))
        cells |= {column.name: path_cell(exchange, column.field) for column in columns if column.name not in cells}
        styles = {}
        if not chosen and hue is None and above != number:
            kept, before = self._last_cells
            before = before if kept == above else row_cells(self._capture.exchange(above).fields, "")
            faint = style + self.color("repeated")
            styles = {name: faint for name in _REPEATING if cells[name] == before[name]}
        self._last_cells = number, cells
        if state.latency and not cells[_LATENCY]:
            cells[_LATENCY], styles[_LATENCY] = state.latency, alarm
        said = f"{COMMENTED} {comment}{' · ' if cells[INFO] else ''}" if comment else ""
        words = fitting_info(exchange, columns[-1].width - cell_len(said))
        info = Text(words, style)
        info.stylize(alarm, 0, alarm_size(exchange, state))
        if said:
            info = Text(said, style).append_text(info)
        return self._strip(marks, columns, cells, style, styles=styles, info=info, points=chosen)

    def color(self, name: str) -> Style:
        """Return one of the list's colors; nothing for an empty name."""
        return self.get_component_rich_style(f"list--{name}", partial=True) if name else Style.null()

    def _strip(
        self, marks: list[Mark], columns: list[ListColumn], cells: dict[str, str], style: Style, *,
        styles: Mapping[str, Style] | None = None, info: Text | None = None, points: bool,
    ) -> Strip:  # fmt: skip
        """Return a line; if it `points`, the selected cell is highlighted. `styles` are those of cells that have others
        than the line; `info` is the text of the last column, with its colors."""
        segments = [Segment(*mark) for mark in marks]
        for column in columns:
            segments.append(Segment(" ", style))
            own = (styles or {}).get(column.name, style)
            own = own + _POINTED if points and column.name == self.column else own
            if column.name == INFO and info is not None:
                segments += fitted(info, column.width, own)
            else:
                segments.append(Segment(fitting(cells[column.name], column), own))
        return Strip(Segment.simplify(segments)).adjust_cell_length(self._across, style)

    def hue_style(self, hue: int) -> Style:
        """Return the style of a hue."""
        return self.get_component_rich_style(f"list--hue{hue}", partial=True)

    def cursor_moved(self) -> None:
        self.selected = self.number
        self._post_chosen()

    def _post_chosen(self) -> None:
        """Post which row is selected, once."""
        if len(self._view) and self._posted_number != self.number:
            self._posted_number = self.number
            self.post_message(self.RowChosen(self.number, self.numbering))

    def forget_chosen(self) -> None:
        """Post the next row that is shown, even if it is the one that was posted last."""
        self._posted_number = None

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
            self.forget()
            self.refresh()

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
