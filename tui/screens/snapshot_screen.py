"""Screens about all exchanges of a capture. Of a live capture they show a snapshot: the title has its time and how many
rows came since, and a key refreshes it. So nothing moves while it is read.
"""

import time
from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.screen import ScreenResultType
from textual.widgets import Static

from dissector.capture_session import Capture
from tui.labels import with_state
from tui.screens.dialog import ResultScreen

SECONDS_BETWEEN: Final = 1.0
"""Between updates of the number of new rows."""
SECONDS_BETWEEN_LOOKS: Final = 0.1
"""Whether the capture is read by now."""


class SnapshotScreen(ResultScreen[ScreenResultType]):
    """A subclass defines the heading, and computes what is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "R",
            "refresh",
            "Refresh",
            tooltip="Take a new snapshot, with the rows that arrived since",
            id="snapshot.refresh",
        ),
    ]

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._capture = capture
        self._goes_on = not capture.is_read
        self._state = ""
        self._take_snapshot()

    def _take_snapshot(self) -> None:
        self._count, self._at = len(self._capture), time.strftime("%H:%M:%S")

    def heading(self) -> Text:
        """Return the beginning of the title."""
        raise NotImplementedError

    def begin(self) -> None:
        """Compute what is shown, in a thread."""
        raise NotImplementedError

    def begin_when_read(self, *, waits: bool) -> None:
        """Begin now or, if it `waits`, once the capture is read."""
        if not waits:
            self.begin()
        elif self._capture.is_read:
            self._take_snapshot()
            self.begin()
        else:
            self.say("○ waiting until the capture is read")
            self.set_timer(SECONDS_BETWEEN_LOOKS, lambda: self.begin_when_read(waits=True))

    def on_mount(self) -> None:
        if self._goes_on:
            self.set_interval(SECONDS_BETWEEN, self.draw_title)

    def say(self, state: str) -> None:
        """Show the progress, at the right of the title."""
        self._state = state
        if self.is_mounted:
            self.draw_title()

    def draw_title(self) -> None:
        title = self.heading().append(self._snapshot_words())
        self.query_one("#title", Static).update(with_state(title, self._state, self.app.size.width - 2))

    def _snapshot_words(self) -> str:
        if not self._goes_on:
            return ""
        since = len(self._capture) - self._count
        return f" · as of {self._at}" + (f", {since:,} new: R" if since else "")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A capture that is read has no key to refresh."""
        return self._goes_on if action == "refresh" else super().check_action(action, parameters)

    def action_refresh(self) -> None:
        self._take_snapshot()
        self.begin()
