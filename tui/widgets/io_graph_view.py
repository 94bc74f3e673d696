"""Draws four graphs with one time axis: exchanges, bytes, latencies, errors; a cursor on a slot, and a span to brush.

A slot is a column of cells. Bars have eight levels a cell; latencies are drawn to the logarithm, p50 before p99.
"""

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from dissector.analysis.io_graph import GraphRows, IoGraph, bounds
from dissector.core.arrays import Int64
from dissector.core.text import duration, size

LEVELS: Final = " ▁▂▃▄▅▆▇█"
MARGIN: Final = 9
"""Cells at the left, for the largest value."""
AXIS: Final = 1
"""Lines of the axis."""


class _Chart(NamedTuple):
    """A graph: its name, values by slot, and how a value is written."""

    name: str
    role: str
    values: Int64
    words: Callable[[int], str]
    behind: Int64 | None = None
    """Larger values that are drawn behind."""
    is_logarithmic: bool = False

    def heights(self, values: Int64, lines: int) -> Int64:
        """Eighths of a line, of so many lines, by slot; a value above nothing is visible."""
        known = self.values if self.behind is None else np.maximum(self.values, self.behind)
        most, present = int(known.max(initial=0)), values > 0
        if not most:
            return np.zeros(len(values), np.int64)
        share = values / most
        if self.is_logarithmic:
            least = int(self.values[self.values > 0].min(initial=most))
            spread = max(math.log(most / least), 1e-9)
            share = 0.15 + 0.85 * np.log(np.maximum(values, least) / least) / spread
        return np.where(present, np.clip(np.round(share * lines * 8), 1, lines * 8), 0).astype(np.int64)

    def most(self) -> str:
        """The largest value in words."""
        known = self.values if self.behind is None else self.behind
        return self.words(int(known.max(initial=0))) if (known > 0).any() else self.words(0)


class IoGraphView(Widget, can_focus=True):
    """The graphs of some rows."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"graph--{role}" for role in ("bar", "behind", "bytes", "bad", "head", "brush", "cursor")
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", "Left", show=False, tooltip="Previous time slot", id="graph.left"),
        Binding("right,l", "move(1)", "Right", show=False, tooltip="Next time slot", id="graph.right"),
        Binding("ctrl+left", "move(-10)", "Left by 10", show=False, tooltip="Ten slots back", id="graph.left_far"),
        Binding("ctrl+right", "move(10)", "Right by 10", show=False, tooltip="Ten slots forward", id="graph.right_far"),
        Binding("shift+left,H", "brush(-1)", "Select", show=False, tooltip="Select a span, to the left",
                id="graph.brush_left"),
        Binding("shift+right,L", "brush(1)", "Select", key_display="⇧←→", tooltip="Select a span, to the right",
                id="graph.brush_right"),
        Binding("g,home", "end(-1)", "First", show=False, tooltip="First slot", id="graph.first"),
        Binding("G,end", "end(1)", "Last", show=False, tooltip="Last slot", id="graph.last"),
    ]  # fmt: skip

    class SpanChanged(Message):
        """The cursor moved, or another span is selected."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._found: GraphRows | None = None
        self._range: tuple[int, int] | None = None
        """The times that are shown; None for all."""
        self.graph: IoGraph | None = None
        self._charts: Sequence[_Chart] = ()
        self._cursor = 0
        self._anchor: int | None = None
        """The other end of the selected span."""
        self._drags = False

    @property
    def slots(self) -> range:
        """The selected slots, or the one under the cursor."""
        other = self._cursor if self._anchor is None else self._anchor
        return range(min(other, self._cursor), max(other, self._cursor) + 1)

    @property
    def has_span(self) -> bool:
        """Whether a span is selected."""
        return self._anchor is not None

    @property
    def is_zoomed(self) -> bool:
        """Whether a part of the time is shown."""
        return self._range is not None

    def show(self, found: GraphRows, *, restart: bool = False) -> None:
        """Show these rows; with `restart` all of their time."""
        self._found = found
        if restart:
            self._range = None
        self._lay(restart=restart)

    def zoom(self, span: tuple[int, int] | None) -> None:
        """Show a part of the time, nanoseconds since 1970, or all of it."""
        self._range = None if span is None else (span[0], max(span[0], span[1] - 1))
        self._lay(restart=True)

    def clear_span(self) -> None:
        """Select no span."""
        self._anchor = None
        self._changed()

    def _lay(self, *, restart: bool = False) -> None:
        """Compute the slots that there is room for."""
        whole = None if self._found is None else bounds(self._found)
        count = self.size.width - MARGIN
        self.graph, self._charts = None, ()
        if self._found is not None and whole is not None and count > 0:
            begin, end = self._range or whole
            span = None if restart or self.graph is None else self.graph.span(self.slots)
            self.graph = IoGraph.of(self._found, begin, end, count)
            self._charts = _charts(self.graph)
            if restart or span is None:
                self._anchor = None
            self._cursor = min(self._cursor, count - 1)
            if self._anchor is not None:
                self._anchor = min(self._anchor, count - 1)
        self._changed()

    def _changed(self) -> None:
        self.refresh()
        self.post_message(self.SpanChanged())

    def on_resize(self) -> None:
        self._lay()

    def render_line(self, y: int) -> Strip:
        """Return one line: of a graph's heading, of its bars, or the axis."""
        graph, across, style = self.graph, self.size.width, self.rich_style
        if graph is None:
            return Strip.blank(across, style)
        tall = max(2, (self.size.height - AXIS) // len(self._charts))
        number, line = divmod(y, tall)
        if number >= len(self._charts):
            return self._axis(graph) if y == tall * len(self._charts) else Strip.blank(across, style)
        chart = self._charts[number]
        if line == 0:
            head = style + self.get_component_rich_style("graph--head", partial=True)
            return Strip([Segment(f" {chart.name}"[:across], head)]).adjust_cell_length(across, style)
        lines = tall - 1
        label = chart.most() if line == 1 else ""
        return self._bars(chart, lines, lines - line, label)

    def _bars(self, chart: _Chart, lines: int, level: int, label: str) -> Strip:
        """Return a line of bars, `level` lines above the bottom."""
        style = self.rich_style
        front = np.clip(chart.heights(chart.values, lines) - 8 * level, 0, 8).tolist()
        behind = front if chart.behind is None else np.clip(
            chart.heights(chart.behind, lines) - 8 * level, 0, 8
        ).tolist()  # fmt: skip
        bar = self.get_component_rich_style(f"graph--{chart.role}", partial=True)
        back = self.get_component_rich_style("graph--behind", partial=True)
        segments = [Segment(f"{label:>{MARGIN - 1}} "[-MARGIN:], style + Style(dim=True))]
        chosen = self.slots
        for slot, (low, high) in enumerate(zip(front, behind, strict=True)):
            ground = style
            if slot in chosen:
                role = "brush" if self.has_span and slot != self._cursor else "cursor"
                ground = self.get_component_rich_style(f"graph--{role}")
            if high <= low or (low and high < 8):
                segments.append(Segment(LEVELS[low], ground + bar))
            elif low:  # the bar before a higher one: the rest of the cell has the color behind
                segments.append(Segment(LEVELS[low], ground + bar + Style(bgcolor=back.color)))
            else:
                segments.append(Segment(LEVELS[high], ground + back))
        return Strip(Segment.simplify(segments)).adjust_cell_length(self.size.width, style)

    def _axis(self, graph: IoGraph) -> Strip:
        """Return a line as long as the time that is shown, with how long that is."""
        span = f" {duration(graph.slot_ns * len(graph))} "
        words = f"{'':>{MARGIN}}├{span:─^{max(0, self.size.width - MARGIN - 2)}}┤"
        return Strip([Segment(words, self.rich_style + Style(dim=True))]).adjust_cell_length(
            self.size.width, self.rich_style
        )

    def _go(self, slot: int, *, brushes: bool) -> None:
        if self.graph is None:
            return
        if brushes and self._anchor is None:
            self._anchor = self._cursor
        elif not brushes:
            self._anchor = None
        self._cursor = max(0, min(slot, len(self.graph) - 1))
        self._changed()

    def action_move(self, step: int) -> None:
        self._go(self._cursor + step, brushes=False)

    def action_brush(self, step: int) -> None:
        self._go(self._cursor + step, brushes=True)

    def action_end(self, step: int) -> None:
        self._go(0 if step < 0 else 1 << 30, brushes=False)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to brush; with shift the span goes on from its other end."""
        self._go(event.x - MARGIN, brushes=event.shift)
        self._drags = True
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._drags and event.x - MARGIN != self._cursor:
            self._go(event.x - MARGIN, brushes=True)

    def on_mouse_up(self, _event: events.MouseUp) -> None:
        self._drags = False
        self.release_mouse()


def _charts(graph: IoGraph) -> Sequence[_Chart]:
    p50, p99 = graph.percentile(50), graph.percentile(99)
    each = f"in each {duration(graph.slot_ns)}" if graph.slot_ns >= 1000 else f"in each {graph.slot_ns} ns"
    return (
        _Chart(f"exchanges {each}", "bar", graph.exchanges, lambda value: f"{value:,}"),
        _Chart(f"bytes {each}", "bytes", graph.bytes, size),
        _Chart("latency: p50, p99 behind it", "bar", p50, duration, p99, is_logarithmic=True),
        _Chart(f"errors {each}", "bad", graph.errors, lambda value: f"{value:,}"),
    )
