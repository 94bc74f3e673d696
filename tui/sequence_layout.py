"""The layout of a line of the sequence diagram, without a screen: lanes, the arrow, requests in flight.

Brokers stay on the right; as many clients as fit scroll on their left. A line is made cell by cell, so an arrow may
cross lanes, and a lane's requests in flight show all the way down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size

from dissector.analysis.sequence_diagram import Lane, SequenceEvent
from dissector.analysis.sequence_diagram.pictures import lane_label, message_label
from tui.list_columns import ending
from tui.row_states import ERROR_MARKS

WIDE: Final = 34
"""Least cells between lanes."""
NARROW: Final = 22
THICKNESS: Final = "│▏▎▍▌▋▊▉█"
"""A broker's lane by its number of requests in flight: none to eight or more."""


class StyledText(NamedTuple):
    """A part of a line: `role` as in `widgets.line_list`."""

    text: str
    role: str


@dataclass(frozen=True, slots=True)
class LaneLayout:
    """The shown lanes: their numbers from left to right, and the cell of each."""

    lanes: tuple[int, ...]
    cells: tuple[int, ...]
    width: int

    @property
    def gap(self) -> int:
        """Cells from lane to lane."""
        return self.cells[1] - self.cells[0] if len(self.cells) > 1 else self.width

    def cell(self, lane: int) -> int | None:
        """Return the cell of a lane; None if it is not shown."""
        return self.cells[self.lanes.index(lane)] if lane in self.lanes else None


class _LaneOrder(NamedTuple):
    """Lanes that scroll sideways, those pinned at the right, and how many of the first fit."""

    passing: tuple[int, ...]
    pinned: tuple[int, ...]
    room: int


def _order(lanes: Sequence[Lane], width: int) -> _LaneOrder:
    """Pin all brokers if that leaves room for a client; else the first one."""
    clients = tuple(number for number, lane in enumerate(lanes) if lane.is_client)
    brokers = tuple(number for number, lane in enumerate(lanes) if not lane.is_client)
    fit = max(2, width // (WIDE if width >= 2 * WIDE + 10 else NARROW) + 1)
    stay = len(brokers) if len(brokers) < fit else 1
    return _LaneOrder(clients + brokers[stay:], brokers[:stay], fit - stay)


def lane_layout(lanes: Sequence[Lane], first: int, width: int) -> LaneLayout:
    """Return the layout of the scrolling lanes from `first` on, as many as fit, and of the pinned ones."""
    order = _order(lanes, width)
    first = max(0, min(first, len(order.passing) - order.room))
    shown = order.passing[first : first + order.room] + order.pinned
    margin = min(8, width // 8)
    gap = (width - 2 * margin) // max(1, len(shown) - 1)
    return LaneLayout(shown, tuple(margin + gap * at for at in range(len(shown))), width)


def first_lane_to_show(lanes: Sequence[Lane], first: int, width: int, lane: int) -> int:
    """Return the first lane to show so that `lane` is visible; `first` if it is already."""
    order = _order(lanes, width)
    if lane in order.pinned:
        return first
    at = order.passing.index(lane)
    return at if at < first else max(first, at - order.room + 1)


def lane_heads(lanes: Sequence[Lane], shown: LaneLayout) -> list[str]:
    """Return two lines with the names of the lanes: name, then address."""
    rows = ["", ""]
    for number, cell in zip(shown.lanes, shown.cells, strict=True):
        name, _, address = lane_label(lanes[number]).rpartition(" · ")
        room = min(shown.gap, min(cell, shown.width - cell) + shown.gap // 2)  # half of the way to the next lane
        for at, words in enumerate((name, address)):
            text = words if cell_len(words) < room else "…" + ending(words, room - 2)
            start = max(0, min(shown.width - cell_len(text), cell - cell_len(text) // 2))
            rows[at] = set_cell_size(rows[at], start) + text
    return [set_cell_size(row, shown.width) for row in rows]


def hidden_lanes(lanes: Sequence[Lane], shown: LaneLayout) -> tuple[int, int]:
    """Return how many lanes are beyond the left and the right edge of those that scroll."""
    passing = _order(lanes, shown.width).passing
    places = [passing.index(lane) for lane in shown.lanes if lane in passing]
    return (places[0], len(passing) - 1 - places[-1]) if places else (0, len(passing))


def event_line(
    event: SequenceEvent, lanes: Sequence[Lane], shown: LaneLayout, in_flight: dict[int, int]
) -> list[StyledText]:
    """Return an event's line: lanes, their requests in flight, the arrow with its label."""
    marks = {
        cell: "│" if lanes[number].is_client else THICKNESS[min(8, in_flight.get(number, 0))]
        for number, cell in zip(shown.lanes, shown.cells, strict=True)
    }
    source, target = shown.cell(event.source), shown.cell(event.target)
    if source is None and target is None:
        return _spread(marks, shown.width, f"  {message_label(event)} (lanes not shown)")
    right = source < target if source is not None and target is not None else event.source < event.target
    left_end, right_end = (source, target) if right else (target, source)
    return _arrow(event, marks, -1 if left_end is None else left_end, shown.width if right_end is None else right_end,
                  shown.width, right=right)  # fmt: skip


def _arrow(
    event: SequenceEvent, marks: dict[int, str], low: int, high: int, width: int, *, right: bool
) -> list[StyledText]:
    """Return the arrow between two cells; the cell of a lane that is not shown is beyond the line's edge."""
    room = high - low - 1
    dash = "─" if event.is_request else "╌"
    words = f" {message_label(event)} "
    words = words if cell_len(words) <= room - 4 else set_cell_size(words, max(0, room - 6)) + "… "
    left = max(0, (room - cell_len(words)) // 2)
    alarm = ERROR_MARKS[event.severity][1] if event.error else ""
    tip = "✕" if alarm else "▶" if right else "◀"
    shaft = dash * left + words + dash * (room - left - cell_len(words))
    shaft = f"{shaft[:-1]}{tip}" if right else f"{tip}{shaft[1:]}"
    role = alarm or ("bar" if event.is_request else "good")
    before, after = _lanes(marks, 0, low + 1), _lanes(marks, high, width)
    return [StyledText(before, "dim"), StyledText(set_cell_size(shaft, room), role), StyledText(after, "dim")]


def _spread(marks: dict[int, str], width: int, words: str) -> list[StyledText]:
    room = min(cell_len(words), width)
    return [StyledText(set_cell_size(words, room), ""), StyledText(_lanes(marks, room, width), "dim")]


def _lanes(marks: dict[int, str], start: int, stop: int) -> str:
    return "".join(marks.get(cell, " ") for cell in range(start, stop))
