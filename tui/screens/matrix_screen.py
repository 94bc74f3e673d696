"""The behavior of several clients side by side: a cell opens the exchanges that show it."""

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Static
from textual.worker import get_current_worker

from dissector.analysis.diff import BehaviorMatrix, DiffSide, build_matrix
from dissector.analysis.diff.behavior import VERSION, VERSION_FIELD, BehaviorPlace, place_of
from dissector.capture import CaptureError
from dissector.core.text import clean
from tui.labels import with_state
from tui.location_history import Location
from tui.messages import CaptureFailed, OpenDetail
from tui.result_lines import with_indices
from tui.screens.diff_screen import DiffScreen
from tui.threads import call_on_ui, load
from tui.widgets.key_footer import KeyFooter

LEAST_COLUMN: Final = 14
"""Cells of a side's column."""


class MatrixScreen(Screen[None]):
    """A line for each behavior, a column for each side."""

    CSS = """
    #matrix { height: 1fr; background: $surface; scrollbar-size: 1 1; }
    #matrix > .datatable--fixed { background: $surface; }
    MatrixScreen #inspector { height: 3; text-wrap: wrap; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys", id="matrix.help"),
        Binding("q,escape", "leave", "Quit", tooltip="Close the comparison", id="matrix.leave"),
        Binding("d", "compare", "Diff", tooltip="Compare this side with the first one, field by field",
                id="matrix.diff"),
        Binding("h", "move('left')", "Left", show=False, id="matrix.left"),
        Binding("j", "move('down')", "Down", show=False, id="matrix.down"),
        Binding("k", "move('up')", "Up", show=False, id="matrix.up"),
        Binding("l", "move('right')", "Right", show=False, id="matrix.right"),
    ]  # fmt: skip

    def __init__(self, sides: Sequence[DiffSide]) -> None:
        super().__init__()
        self.sides = tuple(sides)
        self.matrix: BehaviorMatrix | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        table: DataTable[Text] = DataTable(id="matrix", cursor_type="cell")
        table.fixed_columns = 1
        yield table
        yield Static(id="inspector", markup=False)
        yield KeyFooter()

    @property
    def _table(self) -> "DataTable[Text]":
        return self.query_one("#matrix", DataTable)

    def on_mount(self) -> None:
        self._table.focus()
        self._draw_title("○ reading")
        self._read()

    def _draw_title(self, state: str) -> None:
        title = Text().append(f"Behavior of {len(self.sides)} sides", "bold")
        self.query_one("#title", Static).update(with_state(title, state, self.app.size.width - 2))

    @work(thread=True, exclusive=True, group="matrix")
    def _read(self) -> None:
        worker = get_current_worker()
        try:
            for side in self.sides:
                call_on_ui(self, self._draw_title, f"○ {clean(side.label)}")
                load(side.capture, lambda *_: None, lambda: worker.is_cancelled)
                if worker.is_cancelled:
                    return
            matrix = build_matrix(self.sides)
        except CaptureError as error:
            self.app.call_from_thread(self.post_message, CaptureFailed(error))
            return
        call_on_ui(self, self._show, matrix)

    def _show(self, matrix: BehaviorMatrix) -> None:
        self.matrix = matrix
        self._draw()

    def on_resize(self) -> None:
        if self.matrix is not None:
            self._draw()

    def _draw(self) -> None:
        """Fill the table for the width that there is; the cursor stays."""
        matrix, table = self.matrix, self._table
        if matrix is None:
            return
        at = table.cursor_coordinate
        table.clear(columns=True)
        first = max(len(name) for name, _ in matrix.rows) + 2
        width = max(LEAST_COLUMN, (self.app.size.width - first - 4) // len(self.sides) - 2)
        table.add_column("", width=first)
        for label in matrix.labels:
            heading = Text(clean(label))
            heading.truncate(width, overflow="ellipsis")
            table.add_column(heading, width=width)
        for name, texts in matrix.rows:
            differs = len(set(texts)) > 1
            mark = Text(f"{'≠' if differs else '='} ", "bold" if differs else "dim").append(clean(name))
            table.add_row(mark, *(Text(clean(text), no_wrap=True, overflow="ellipsis") for text in texts))
        table.cursor_coordinate = at if at.column else at.right()
        differing = sum(len(set(texts)) > 1 for _, texts in matrix.rows)
        partly = " · partly captured" if matrix.not_compared else ""
        self._draw_title(f"● {differing:,} of {len(matrix.rows):,} differ{partly}")

    def on_data_table_cell_highlighted(self, event: "DataTable.CellHighlighted") -> None:
        """Show the whole text of the cell."""
        found = self._cell()
        if found is None:
            return
        name, number, text = found
        words = Text(f"{clean(name)} · {clean(self.sides[number].label)}  ", "bold").append(clean(text), "not bold")
        words.append("  · enter: go to its exchanges", "dim not bold")
        self.query_one("#inspector", Static).update(words)

    def _cell(self) -> tuple[str, int, str] | None:
        """Return the behavior, the side and the text under the cursor; the first side on the behavior itself."""
        at = self._table.cursor_coordinate
        if self.matrix is None or at.row >= len(self.matrix.rows):
            return None
        name, texts = self.matrix.rows[at.row]
        number = max(0, at.column - 1)
        return name, number, texts[number]

    def on_data_table_cell_selected(self, event: "DataTable.CellSelected") -> None:
        found = self._cell()
        place = place_of(found[0]) if found is not None else None
        if found is not None and place is not None:
            path = VERSION_FIELD if found[0].endswith(VERSION) else f"body.{place.path}" if place.path else ""
            self._open(self.sides[found[1]], place, path)

    @work(thread=True, exclusive=True, group="open")
    def _open(self, side: DiffSide, place: BehaviorPlace, path: str) -> None:
        """Open the exchanges that show a behavior, at the first one; in a thread, as a filter may read all."""
        from dissector.filter import parse

        worker, capture = get_current_worker(), side.capture
        found = (some.rows for some in capture.select(parse(place.filter))) if place.filter else iter([range(1)])
        row = next((int(rows[0]) for rows in found if len(rows)), None)
        if worker.is_cancelled:
            return
        if row is None:
            call_on_ui(self, self.notify, "no exchange of it", timeout=2)
            return
        at = with_indices(capture.exchange(row), Location(row, "request", path))
        call_on_ui(self, self.post_message, OpenDetail(capture, *at, filter=place.filter))

    def action_move(self, way: str) -> None:
        getattr(self._table, f"action_cursor_{way}")()

    def action_compare(self) -> None:
        found = self._cell()
        if found is not None:
            other = found[1] or 1
            self.app.push_screen(DiffScreen(self.sides[0], self.sides[other]))

    def action_leave(self) -> None:
        self.app.exit()
