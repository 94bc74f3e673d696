"""The IO graph: exchanges, bytes, latencies and errors over time, of the rows in the list.

Columns are read in a thread; errors, which are in responses, are added as they are found. A span that the user selects
becomes a filter.
"""

from collections.abc import Callable, Iterator
from typing import ClassVar, Final, NamedTuple

import numpy as np
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import get_current_worker

from dissector.analysis.io_graph import GraphRows, graph_rows, mark_errors, most_frequent
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.text import byte_size, clean, counted, duration
from tui.screens.dialog import Choice, Menu
from tui.screens.snapshot_screen import SnapshotScreen
from tui.threads import Pace, call_on_ui
from tui.widgets.io_graph_view import IoGraphView
from tui.widgets.key_footer import KeyFooter

SECONDS_BETWEEN: Final = 0.4
"""Between two drawings while errors are found."""
MOST_OFFERED: Final = 30
"""Values of a field that are offered."""


class DrawnPart(NamedTuple):
    """A part of the rows: by a filter, empty for all of them."""

    filter: str
    words: str


ALL: Final = DrawnPart("", "all exchanges")


class IoGraphScreen(SnapshotScreen[str | None]):
    """Returns the filter for a span of time; None if none was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,I", "back", "Back", tooltip="Clear the selected span; then back to the exchanges",
                id="graph.back"),
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys", id="graph.help"),
        Binding("enter", "apply", "Filter", tooltip="Show the exchanges of the selected span", id="graph.apply"),
        Binding("a", "part", "API, client, topic", tooltip="Draw one API, client, topic, or all", id="graph.part"),
        Binding("z", "zoom", "Zoom", tooltip="Zoom into the selected span; without one, zoom out", id="graph.zoom"),
    ]  # fmt: skip

    def __init__(self, capture: Capture, rows: Callable[[], Int64]) -> None:
        """`rows` returns the rows to show, ascending."""
        super().__init__(capture)
        self._rows_now = rows
        self._rows = rows()
        self._part = ALL
        self._view = IoGraphView(id="graph")  # a key may come before it is on the screen, or behind it

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield self._view
        yield Static(id="inspector", markup=False)
        yield KeyFooter()

    def on_mount(self) -> None:
        self._view.focus()
        self.draw_title()
        self._make(restart=True)

    def heading(self) -> Text:
        words = f" · {counted(len(self._rows), 'row')} of the list"
        return Text("IO graph", "bold").append(clean(f" · {self._part.words}{words}"))

    def begin(self) -> None:
        self._rows = self._rows_now()
        self._make(restart=True)

    @work(thread=True, exclusive=True, group="make")
    def _make(self, *, restart: bool) -> None:
        worker = get_current_worker()
        call_on_ui(self, self.say, "○ reading")
        rows = self._rows
        if self._part.filter:
            found = [rows[:0]]
            for some in self._matching(self._part.filter):
                if worker.is_cancelled:
                    return
                found.append(some)
            rows = np.intersect1d(rows, np.concatenate(found), assume_unique=True)
        drawn = graph_rows(self._capture, rows)
        call_on_ui(self, self._show, drawn, "○ errors 0 %", restart)
        pace = Pace(SECONDS_BETWEEN, at_once=False)
        for upto in mark_errors(self._capture, drawn):
            if worker.is_cancelled:
                return
            if pace.is_due():
                share = 100 * upto // max(1, int(drawn.rows[-1]) + 1)
                call_on_ui(self, self._show, drawn, f"○ errors {share} %", False)
                pace.restart()
        call_on_ui(self, self._show, drawn, "● counted", False)

    def _matching(self, text: str) -> Iterator[Int64]:
        from dissector.filter import parse

        return (np.asarray(step.rows, np.int64) for step in self._capture.select(parse(text), 0, self._count))

    def _show(self, drawn: GraphRows, state: str, restart: bool) -> None:
        if self.is_mounted:
            self._view.show(drawn, restart=restart)
            self.say(state)

    def on_io_graph_view_span_changed(self) -> None:
        """Say what is in the selected slots."""
        graph, slots = self._view.graph, self._view.slots
        inspector = self.query_one("#inspector", Static)
        if graph is None:
            inspector.update("no exchanges" if not len(self._rows) else "")
            return
        begin, end = graph.span(slots)
        parts = [
            f"{_since(begin - self._capture.start_ns)} to {_since(end - self._capture.start_ns)} s",
            counted(int(graph.exchanges[slots.start : slots.stop].sum()), "exchange"),
            byte_size(int(graph.bytes[slots.start : slots.stop].sum())),
        ]
        for percent in (50, 99):
            found = graph.percentile_of(slots, percent)
            parts += [f"p{percent} {duration(found)}"] if found is not None else []
        parts.append(counted(int(graph.errors[slots.start : slots.stop].sum()), "error"))
        inspector.update(Text(" · ".join(parts)))

    def action_back(self) -> None:
        if self._view.has_span:
            self._view.clear_span()
        else:
            self.dismiss(None)

    def action_apply(self) -> None:
        graph = self._view.graph
        if graph is None:
            return
        begin, end = graph.span(self._view.slots)
        start = self._capture.start_ns
        span = f"time >= {_seconds(begin - start)} && time < {_seconds(end - start)}"
        self.dismiss(f"{self._part.filter} && {span}" if self._part.filter else span)

    def action_zoom(self) -> None:
        graph = self._view.graph
        if self._view.has_span and graph is not None:
            self._view.zoom(graph.span(self._view.slots))
        elif self._view.is_zoomed:
            self._view.zoom(None)
        else:
            self.notify("select a span first: shift+left and shift+right, or the mouse", timeout=3)

    @work(group="part", exclusive=True)
    async def action_part(self) -> None:
        """Ask for a part of the rows: a field, then one of its values."""
        fields = ("api", "client_id", "client", "topic")
        choices = [Choice("All", "all exchanges"), Choice("API"), Choice("Client", "by client id"),
                   Choice("Client", "by address"), Choice("Topic")]  # fmt: skip
        at = await self.app.push_screen_wait(Menu("Draw", choices))
        if at is None:
            return
        if at == 0:
            self._choose(ALL)
            return
        name = fields[at - 1]
        values: list[tuple[str, int]] = await self._values(name).wait()
        if not values:
            self.notify(f"no {name.replace('_', ' ')} in these exchanges", timeout=3)
            return
        offered = [Choice(clean(value), counted(count, "exchange")) for value, count in values]
        chosen = await self.app.push_screen_wait(Menu(choices[at].name, offered))
        if chosen is not None:
            from dissector.filter import cell_expression

            value = values[chosen][0]
            self._choose(DrawnPart(cell_expression(name, value), value))

    @work(thread=True, exclusive=True, group="values")
    def _values(self, name: str) -> list[tuple[str, int]]:
        """The most frequent values of a field among the rows."""
        return most_frequent(self._capture, name, self._rows, MOST_OFFERED)

    def _choose(self, part: DrawnPart) -> None:
        self._part = part
        self._make(restart=True)
        self.draw_title()


def _seconds(nanoseconds: int) -> str:
    """A time since the start of the capture, exactly."""
    whole, rest = divmod(abs(nanoseconds), 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if nanoseconds < 0 else ''}{whole}{fraction}s"


def _since(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e9:.6f}"
