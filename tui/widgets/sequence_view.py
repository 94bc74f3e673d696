"""The sequence diagram, drawn line by line: an event a line, whatever their number; lanes as columns, time downwards.

Invariants:
  * only events on the screen are decoded; requests in flight are counted for a block of lines at a time;
  * the lane of the selected event's client is visible.
"""

from functools import lru_cache
from typing import ClassVar, Final

import numpy as np
from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from dissector.analysis.sequence_diagram import SequenceDiagram
from dissector.core.text import duration, seconds
from tui.sequence_layout import (
    LaneLayout,
    event_line,
    first_lane_to_show,
    hidden_lanes,
    lane_heads,
    lane_layout,
)
from tui.widgets.scrolling import CursorLines

BLOCK: Final = 64
LATENCY_BELOW: Final = 110
"""Width from which on there is a column of latencies at the right."""
LATENCY: Final = 22
ROLES: Final = ("bar", "bad", "warning", "good", "dim")


class SequenceView(CursorLines):
    """The events of a sequence diagram."""

    HEADS = 2
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "sequence--head",
        "sequence--cursor",
        *(f"sequence--{role}" for role in ROLES),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, tooltip="Next message", id="sequence.down"),
        Binding("up,k", "move(-1)", "Up", show=False, tooltip="Previous message", id="sequence.up"),
        Binding("right,l", "lane(1)", "Lanes right", show=False, tooltip="Scroll clients right", id="sequence.right"),
        Binding("left,h", "lane(-1)", "Lanes left", show=False, tooltip="Scroll clients left", id="sequence.left"),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False, tooltip="Next page", id="sequence.page_down"),
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False, tooltip="Previous page", id="sequence.page_up"),
        Binding("g,home", "go(0)", "First", show=False, tooltip="First message", id="sequence.first"),
        Binding("G,end", "go(-1)", "Last", show=False, tooltip="Last message", id="sequence.last"),
        Binding("r", "partner", "Req↔Resp", tooltip="Show the other message of the exchange", id="sequence.partner"),
        Binding("enter", "open", "Exchange", tooltip="Go to the exchange", id="sequence.open"),
    ]  # fmt: skip

    class MessageOpened(Message):
        """A message was opened."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.diagram: SequenceDiagram | None = None
        self._first = 0
        """The first client that is shown."""
        self._in_flight = lru_cache(maxsize=16)(self._count_in_flight)

    def show(self, diagram: SequenceDiagram, number: int, *, is_request: bool = True) -> None:
        """Show a diagram, with the cursor on an event of a row, its request if it has one and `is_request`; or on the
        first event of a later row."""
        self.diagram = diagram
        self._in_flight.cache_clear()
        self._lay()
        at = np.flatnonzero(diagram.rows >= number)
        self.cursor = int(at[np.argmin(diagram.rows[at])]) if len(at) else 0
        if not is_request:
            self.action_partner()
        self._into_view()

    @property
    def count(self) -> int:
        return len(self.diagram) if self.diagram is not None else 0

    @property
    def shown(self) -> range:
        """The events on the screen."""
        count = self.count
        return range(min(self.scroll_offset.y, count), min(self.scroll_offset.y + self.size.height - self.HEADS, count))

    @property
    def _left(self) -> int:
        """Cells for number and time."""
        return 19 if self._across >= 76 else 8

    @property
    def has_latencies(self) -> bool:
        """Whether there is room for the column of latencies."""
        return self._across >= LATENCY_BELOW

    @property
    def _right(self) -> int:
        return LATENCY if self.has_latencies else 0

    def _layout(self, diagram: SequenceDiagram) -> LaneLayout:
        return lane_layout(diagram.lanes, self._first, max(20, self._across - self._left - self._right))

    def _lay(self) -> None:
        self.virtual_size = Size(self._across, self.count + self.HEADS)
        self.redraw()

    def head_strip(self, y: int) -> Strip:
        """Return a line of the names of the lanes."""
        diagram, style = self.diagram, self.get_component_rich_style("sequence--head")
        if diagram is None or not len(diagram):
            return self.blank_strip(y)
        layout = self._layout(diagram)
        hidden = hidden_lanes(diagram.lanes, layout)[y]
        more = (f" ◂ {hidden} more" if y == 0 else f" ▸ {hidden} more") if hidden else ""
        words = set_cell_size(more, self._left) + lane_heads(diagram.lanes, layout)[y]
        return Strip([Segment(words, style)]).adjust_cell_length(self._across, style)

    def line_strip(self, number: int, *, chosen: bool) -> Strip:
        diagram, at = self.diagram, number
        assert diagram is not None
        event = diagram.event(at)
        style = self.rich_style
        if chosen:
            style += self.get_component_rich_style("sequence--cursor") + Style(bold=True, reverse=self.app.no_color)
        mark = "▸" if chosen else " "
        when = seconds(event.time_ns - diagram.capture.start_ns) if self._left > 8 else ""
        segments = [Segment(f"{mark}{event.number + 1:>6}{when:>11} "[: self._left].ljust(self._left), style)]
        in_flight = self._in_flight(at // BLOCK)[at % BLOCK]
        for text, role in event_line(event, diagram.lanes, self._layout(diagram), in_flight):
            own = self.get_component_rich_style(f"sequence--{role}", partial=True) if role else Style.null()
            segments.append(Segment(text, style + own))
        if self._right:
            quiet = style + self.get_component_rich_style("sequence--dim", partial=True)
            segments.append(Segment(_latency(event.latency_ns if not event.is_request else None), quiet))
        return Strip(segments).adjust_cell_length(self._across, style)

    def _count_in_flight(self, block: int) -> list[dict[int, int]]:
        """Return the requests in flight by the broker's lane, after each event of a block of lines."""
        assert self.diagram is not None
        diagram, start = self.diagram, block * BLOCK
        before = np.flatnonzero((diagram.partner[:start] >= start) & diagram.is_request[:start])
        lanes, counts = np.unique(diagram.target[before], return_counts=True)
        now = dict(zip(lanes.tolist(), counts.tolist(), strict=True))
        found = []
        for at in range(start, min(start + BLOCK, len(diagram))):
            if diagram.partner[at] >= 0:
                asks = bool(diagram.is_request[at])
                lane = int(diagram.target[at] if asks else diagram.source[at])
                now[lane] = max(0, now.get(lane, 0) + (1 if asks else -1))
            found.append(dict(now))
        return found

    def _into_view(self) -> None:
        if self.diagram is None or not len(self.diagram):
            return
        super()._into_view()
        diagram, width = self.diagram, self._layout(self.diagram).width
        ends = int(diagram.source[self.cursor]), int(diagram.target[self.cursor])
        self._show_lanes(first_lane_to_show(diagram.lanes, self._first, width, min(ends)))

    def _show_lanes(self, first: int) -> None:
        if first != self._first:
            self._first = first
            self.redraw()

    def action_lane(self, step: int) -> None:
        if self.diagram is not None:
            clients = sum(lane.is_client for lane in self.diagram.lanes)
            self._show_lanes(max(0, min(self._first + step, clients - 1)))

    def action_partner(self) -> None:
        if self.diagram is not None and len(self.diagram) and self.diagram.partner[self.cursor] >= 0:
            self.cursor = int(self.diagram.partner[self.cursor])

    def action_open(self) -> None:
        if self.diagram is not None and len(self.diagram):
            self.post_message(self.MessageOpened(int(self.diagram.rows[self.cursor])))

    def on_click(self, event: events.Click) -> None:
        at = self.scroll_offset.y + event.y - self.HEADS
        if event.y >= self.HEADS and self.diagram is not None and at < len(self.diagram):
            self.cursor = at
            if event.chain > 1:
                self.action_open()


def _latency(ns: int | None) -> str:
    """Return a bar, twice as long for sixteen times the latency, and the number."""
    if ns is None:
        return " " * LATENCY
    cells = max(1, min(LATENCY - 11, (max(1, ns) // 1_000).bit_length() // 2))
    return f" {'▇' * cells} {duration(ns)}".ljust(LATENCY)
