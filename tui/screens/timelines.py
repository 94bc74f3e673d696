"""Timelines of groups and transactions: what happened to each, by generation, epoch or transaction."""

from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Static
from textual.worker import Worker, get_current_worker

from dissector.analysis.timelines import Timeline, TimelinePass
from tui.messages import GoTo
from tui.screens.moment import OfMoment
from tui.screens.whole import Whole
from tui.telling import tell
from tui.timelines import lines_of
from tui.widgets.line_list import LineList


class TimelinesScreen(OfMoment[int | None]):
    """Gives the row of the event that was opened, from 0; None where none was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,L", "dismiss", "Back", tooltip="Back to the exchanges", id="timelines.back"),
        Binding("question_mark", "app.help", "Help", key_display="?", tooltip="The keys that work",
                id="timelines.help"),
        Binding("tab,right,l", "part(1)", "Next", tooltip="The next group or transactional id", id="timelines.next"),
        Binding("shift+tab,left,h", "part(-1)", "Previous", show=False,
                tooltip="The group or transactional id before", id="timelines.previous"),
    ]  # fmt: skip

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        yield Static(id="empty", markup=False)
        yield LineList(id="lines")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one(LineList).focus()
        self.begin()

    def heading(self) -> Text:
        return Text("Timelines", "bold").append(" · groups and transactions")

    def begin(self) -> None:
        self.say("○ reading")
        self._read()

    @work(thread=True, exclusive=True, group="read")
    def _read(self) -> None:
        worker = get_current_worker()
        reading = TimelinePass(self._capture)
        told = -1
        for step in reading.steps():
            if worker.is_cancelled:
                return
            share = 100 * step.done // step.total
            if share >= told + 10:
                told = share
                tell(self, self.say, f"○ {share} %")
        if not worker.is_cancelled:
            tell(self, self._show, worker, [*reading.groups, *reading.transactions])

    def _show(self, worker: Worker[None], timelines: list[Timeline]) -> None:
        if not self.is_mounted or worker.is_cancelled:
            return
        self.say(f"● {len(timelines):,}")
        start_ns = self._capture.start_ns
        self.query_one(LineList).show(lambda width: lines_of(timelines, start_ns, width))
        empty = self.query_one("#empty", Static)
        empty.update(Text("No exchange of this capture is about a group or a transaction.", justify="center"))
        empty.set_class(not timelines, "shown")
        self.query_one(LineList).set_class(not timelines, "hidden")

    def action_part(self, step: int) -> None:
        self.query_one(LineList).action_section(step)

    def on_line_list_opened(self, event: LineList.Opened) -> None:
        assert isinstance(event.target, int)
        self.dismiss(event.target)


class Timelining(Whole):
    """Opens the timelines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("L", "timelines", "Timelines", show=False, tooltip="What happened to each group and transaction",
                id="main.timelines"),
    ]  # fmt: skip

    def action_timelines(self) -> None:
        if self.has_rows():
            self.app.push_screen(TimelinesScreen(self.capture), self._timeline_closed)

    def _timeline_closed(self, number: int | None) -> None:
        if number is not None:
            self.post_message(GoTo(number))
