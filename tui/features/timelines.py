"""Opens the timelines of groups and transactions."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.features.whole_capture import NeedsWholeCapture
from tui.key_groups import OVERALL
from tui.messages import GoTo
from tui.screens.timelines_screen import TimelinesScreen


class TimelineFeature(NeedsWholeCapture):
    """L opens the timelines."""

    FEATURE = OVERALL

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("L", "timelines", "Timelines", show=False, tooltip="Timelines of groups and transactions",
                id="main.timelines"),
    ]  # fmt: skip

    def action_timelines(self) -> None:
        if self.waits_for_end or self.has_rows():
            self.app.push_screen(TimelinesScreen(self.capture, waits=self.waits_for_end), self._timeline_closed)

    def _timeline_closed(self, number: int | None) -> None:
        if number is not None:
            self.post_message(GoTo(number))
