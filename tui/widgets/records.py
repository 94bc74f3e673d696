"""The record view's list, a line a record, read when it is drawn; and all of one record, wrapped, to scroll through."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.record_labels import ROLES, Pieces, columns_for, fitted, record_cells
from tui.records_model import RecordsModel
from tui.widgets.cell_list import CellList
from tui.widgets.scrolling import NumberedLines, PlacedScrollBar

ARROWS = {False: "▲", True: "▼"}


class RecordLines(CellList, NumberedLines):
    """Records."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Exchange", tooltip="Go to the exchange, with the record selected",
                id="records.open"),
    ]  # fmt: skip

    class HeadingClicked(Message):
        """The heading of a column was clicked."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(self, model: RecordsModel, *, id: str) -> None:
        super().__init__(id=id)
        self._model = model

    def head(self, width: int) -> str:
        """Return the heading for `width` cells."""
        words = []
        for column in columns_for(width):
            name = "Topic-partition" if column.name == "Topic" else column.name
            arrow = ARROWS[self._model.descending] if column.name == self._model.sorting else ""
            words.append(fitted(name + arrow, column))
        return " ".join(words)[1:]

    def cells(self, number: int, width: int) -> Sequence[tuple[str, str]]:
        """Return the cells of a line."""
        record = self._model.record(number)
        if record is None:
            return [("  not there any more", "dim")]
        places, at = self._model.places, self._model.at(number)
        above = self._model.at(number - 1) if number else -1
        repeats = above >= 0 and all(column[at] == column[above] for column in (places.topic, places.partition))
        return record_cells(record, columns_for(width), repeats=repeats)

    def grow(self, count: int) -> None:
        """Show more lines; the cursor and those that are drawn stay."""
        self.show(count, self.cursor)

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is None or place.y != 0:
            super().on_click(event)
            return
        end = 2
        for column in columns_for(self.scrollable_content_region.width - 1):
            end += column.width + 1
            if place.x < end:
                self.post_message(self.HeadingClicked(column.name))
                return


class RecordPane(ScrollView, PlacedScrollBar, can_focus=True):
    """Lines of pieces, made for a width."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"record--{role}" for role in ROLES}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_by(1)", "Down", show=False, id="record.down"),
        Binding("up,k", "scroll_by(-1)", "Up", show=False, id="record.up"),
        Binding("pagedown,ctrl+d", "scroll_page(1)", "Page down", show=False, id="record.page_down"),
        Binding("pageup,ctrl+u", "scroll_page(-1)", "Page up", show=False, id="record.page_up"),
        Binding("g,home", "scroll_end_of(-1)", "First line", show=False, id="record.first"),
        Binding("G,end", "scroll_end_of(1)", "Last line", show=False, id="record.last"),
    ]
    DEFAULT_CSS = """
    RecordPane { background: $surface; scrollbar-size: 1 1; overflow-x: hidden; border-top: solid $boost; }
    RecordPane:focus { border-top: solid $primary; }
    RecordPane > .record--head { color: $foreground; text-style: bold; }
    RecordPane > .record--key { color: $secondary; }
    RecordPane > .record--number { color: $primary; }
    RecordPane > .record--dim { color: $secondary; }
    RecordPane > .record--bad { color: $warning; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._build: Callable[[int], Sequence[Pieces]] = lambda _: ()
        self._lines: Sequence[Pieces] = ()

    def show(self, build: Callable[[int], Sequence[Pieces]]) -> None:
        """Show other lines, from the first one on."""
        self._build = build
        self._lay()
        self.scroll_to(y=0, animate=False, force=True)

    def _lay(self) -> None:
        width = self.scrollable_content_region.width - 2
        self._lines = self._build(width) if width > 0 else ()
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def on_resize(self) -> None:
        self._lay()

    def render_line(self, y: int) -> Strip:
        """Return one line of the pane."""
        width, at = self.scrollable_content_region.width, self.scroll_offset.y + y
        plain = self.rich_style
        if at >= len(self._lines):
            return Strip.blank(width, plain)
        segments = [Segment(" ", plain)]
        for text, role in self._lines[at]:
            style = self.get_component_rich_style(f"record--{role}", partial=True) if role else plain
            segments.append(Segment(text, plain + style))
        return Strip(segments).adjust_cell_length(width, plain)

    def action_scroll_by(self, lines: int) -> None:
        self.scroll_relative(y=lines, animate=False)

    def action_scroll_page(self, pages: int) -> None:
        self.scroll_relative(y=pages * max(1, self.size.height - 1), animate=False)

    def action_scroll_end_of(self, step: int) -> None:
        self.scroll_to(y=len(self._lines) if step > 0 else 0, animate=False)
