"""Opens the timelines of groups and transactions."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from dissector.tui.features.whole_capture import NeedsWholeCapture
from dissector.tui.key_groups import OVERALL
from dissector.tui.messages import GoTo
from dissector.tui.screens.timelines_screen import TimelinesScreen


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
