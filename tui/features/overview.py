"""Opens the overview."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.features.whole_capture import NeedsWholeCapture
from tui.key_groups import OVERALL
from tui.messages import ApplyFilter
from tui.overview_model import OverviewSnapshot
from tui.screens.overview_screen import OverviewScreen


class OverviewFeature(NeedsWholeCapture):
    """o opens the overview."""

    FEATURE = OVERALL

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "overview", "Overview", tooltip="Show clients, topics, versions, errors and latencies at a glance",
                id="main.overview"),
    ]  # fmt: skip

    _picture: OverviewSnapshot | None = None
    """Of all exchanges, once they are counted."""

    def action_overview(self) -> None:
        if not self.has_rows():
            return
        screen = OverviewScreen(self.capture, self._picture)

        def closed(chosen: str | None) -> None:
            if screen.is_complete and self._done:
                self._picture = screen.picture
            if chosen:
                self.post_message(ApplyFilter(chosen))

        self.app.push_screen(screen, closed)
