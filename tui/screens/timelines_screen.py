"""Timelines of groups and transactions: what happened to each, by generation, epoch or transaction."""

from typing import ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static
from textual.worker import Worker, get_current_worker

from dissector.analysis.timelines import Timeline, TimelinePass
from dissector.capture_session import Capture
from dissector.core.text import counted
from tui.screens.snapshot_screen import SnapshotScreen
from tui.timeline_lines import timeline_lines
from tui.ui_thread import call_on_ui
from tui.widgets.key_footer import KeyFooter
from tui.widgets.line_list import LineList

_EMPTY: Final = "This capture has no groups and no transactions.\n\nesc goes back to the exchanges"
SECONDS_BETWEEN_LOOKS: Final = 0.1
"""Whether the capture is read by now."""


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
        if self._waits:
            self._timer = self.set_interval(SECONDS_BETWEEN_LOOKS, self._look)
        else:
            self.begin()

    def _look(self) -> None:
        """Begin once the capture is read."""
        if self._capture.is_read:
            self._timer.stop()
            self.begin()
        else:
            self.say("○ waiting until the capture is read")

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
        if not worker.is_cancelled:
            call_on_ui(self, self._show, worker, [*reading.groups, *reading.transactions])

    def _show(self, worker: Worker[None], timelines: list[Timeline]) -> None:
        if not self.is_mounted or worker.is_cancelled:
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
