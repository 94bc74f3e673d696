"""Timelines of groups and transactions: what happened to each, by generation, epoch or transaction."""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import get_current_worker

from dissector.analysis.timelines.timeline import Timeline, TimelineEvent
from dissector.analysis.timelines.timeline_pass import TimelinePass
from dissector.capture_session import Capture
from dissector.core.text import clean, counted, seconds
from tui.list_columns import elided, with_elided_names
from tui.row_states import ERROR_MARKS
from tui.screens.snapshot_screen import SnapshotScreen
from tui.threads import call_on_ui
from tui.widgets.key_footer import KeyFooter
from tui.widgets.line_list import LineList, StyledLine

_EMPTY: Final = "This capture has no groups and no transactions.\n\nesc goes back to the exchanges"


class TimelinesScreen(SnapshotScreen[int | None]):
    """Returns the row of the event that was opened, from 0; None if none was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,L", "dismiss", "Back", tooltip="Back to the exchanges", id="timelines.back"),
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="Show the keys",
                id="timelines.help"),
        Binding("tab,right,l", "part(1)", "Next", tooltip="Next group or transactional id", id="timelines.next"),
        Binding("shift+tab,left,h", "part(-1)", "Previous", show=False,
                tooltip="Previous group or transactional id", id="timelines.previous"),
    ]  # fmt: skip

    def __init__(self, capture: Capture, *, waits: bool) -> None:
        """If it `waits`, it fills when the capture is read."""
        super().__init__(capture)
        self._goes_on = self._goes_on and not waits
        self._waits = waits

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="empty", markup=False)
        yield LineList(id="lines")
        yield KeyFooter()

    def on_mount(self) -> None:
        self.query_one(LineList).focus()
        self.begin_when_read(waits=self._waits)

    def heading(self) -> Text:
        return Text("Timelines", "bold").append(" · groups and transactions")

    def begin(self) -> None:
        self.say("○ reading")
        self._read()

    @work(thread=True, exclusive=True, group="read")
    def _read(self) -> None:
        worker = get_current_worker()
        reading = TimelinePass(self._capture)
        reported = -1
        for step in reading.steps():
            if worker.is_cancelled:
                return
            share = 100 * step.done // step.total
            if share >= reported + 10:
                reported = share
                call_on_ui(self, self.say, f"○ {share} %")
        call_on_ui(self, self._show, [*reading.groups, *reading.transactions])

    def _show(self, timelines: list[Timeline]) -> None:
        if not self.is_mounted:
            return
        self.say(f"● {counted(len(timelines), 'timeline')}")
        start_ns = self._capture.start_ns
        self.query_one(LineList).show(lambda width: timeline_lines(timelines, start_ns, width))
        empty = self.query_one("#empty", Static)
        empty.update(Text(_EMPTY, justify="center"))
        empty.set_class(not timelines, "shown")
        self.query_one(LineList).set_class(not timelines, "hidden")

    def action_part(self, step: int) -> None:
        self.query_one(LineList).action_section(step)

    def on_line_list_target_opened(self, event: LineList.TargetOpened) -> None:
        assert isinstance(event.target, int)
        self.dismiss(event.target)


_KINDS: Final = {
    "classic": "group, classic protocol", "consumer": "group, consumer protocol (KIP-848)",
    "share": "share group", "streams": "streams group", "transaction": "transactional id",
}  # fmt: skip
_SLIM, _NARROW = 76, 90
"""Widths below which members have less room, and times none."""
_LEFT_OUT: Final = "more events are not shown"


def timeline_lines(timelines: Sequence[Timeline], start_ns: int, width: int) -> list[StyledLine]:
    """Yield all timelines one after the other; an event's target is its row, from 0."""
    return [line for timeline in timelines for line in _timeline(timeline, start_ns, width)]


def _timeline(timeline: Timeline, start_ns: int, width: int) -> Iterator[StyledLine]:
    members = timeline.members
    who = f" · {len(members)} {'clients' if timeline.kind == 'transaction' else 'members'}" if len(members) > 1 else ""
    yield StyledLine(((clean(timeline.name), "head"), (f"  {_KINDS[timeline.kind]}{who}", "dim")), is_head=True)
    for line in wrap(clean(timeline.verdict), max(20, width - 4), break_on_hyphens=False):
        yield StyledLine(((f"  {line}", ""),))
    for phase in timeline.phases:
        beats = f" · {counted(phase.heartbeats, 'heartbeat')} without change" if phase.heartbeats else ""
        cause = f" · {clean(phase.cause)}" if phase.cause else ""
        fits = cell_len(clean(phase.title) + cause + beats) + 2 <= width
        yield StyledLine(((f"  {clean(phase.title)}", "bar"), (cause if fits else "", ""), (beats, "dim")))
        for line in [] if fits else wrap(clean(phase.cause), max(20, width - 8), break_on_hyphens=False):
            yield StyledLine(((f"      {line}", ""),))
        for event in phase.events:
            yield _event(event, start_ns, members, width)
    if timeline.left_out:
        yield StyledLine(((f"  {timeline.left_out:,} {_LEFT_OUT}", "dim"),))
    yield StyledLine()


def _event(event: TimelineEvent, start_ns: int, members: Sequence[str], width: int) -> StyledLine:
    """Return an event's line: number, time, member, event, details; an error comes before the details."""
    longest = max((cell_len(clean(each)) for each in members), default=14)
    room = 12 if width < _SLIM else 14 if width < _NARROW else min(width // 4, longest)
    who = clean(event.member)
    when = "" if width < _SLIM else f" {seconds(event.time_ns - start_ns):>11}"
    pieces = [
        (f"{event.number + 1:>8}{when}  ", "dim"),
        (f"{set_cell_size(elided(who, room), room)}  ", "name"),
        (f"{event.what:<{18 if width >= _NARROW else 15}}  ", ""),
    ]
    if event.error:
        mark, role = ERROR_MARKS[event.severity]
        pieces.append((f"{mark} {clean(event.error)}  ", role))
    left = width - 1 - sum(cell_len(words) for words, _ in pieces)
    return StyledLine((*pieces, (with_elided_names(clean(event.words), left), "")), event.number)
