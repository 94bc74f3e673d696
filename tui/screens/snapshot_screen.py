"""Screens about all exchanges there are. Of a capture that goes on they show a moment: they say which one, and how much
came since, and a key takes that in. So nothing moves that is being read.
"""

import time
from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.screen import ScreenResultType
from textual.widgets import Static

from dissector.capture_session import Capture
from tui.screens.dialog import ResultScreen

SECONDS_BETWEEN: Final = 1.0
"""Looks at how much came."""


class SnapshotScreen(ResultScreen[ScreenResultType]):
    """Who makes one says what stands in the title, and works out what is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "refresh", "Refresh", tooltip="Take in what came since this was worked out", id="moment.refresh"),
    ]

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._capture = capture
        self._goes_on = not capture.is_read
        self._state = ""
        self._take_moment()

    def _take_moment(self) -> None:
        self._count, self._at = len(self._capture), time.strftime("%H:%M:%S")

    def heading(self) -> Text:
        """What the title begins with."""
        raise NotImplementedError

    def begin(self) -> None:
        """Work out what is shown, of what there is now, beside the screen."""
        raise NotImplementedError

    def on_mount(self) -> None:
        if self._goes_on:
            self.set_interval(SECONDS_BETWEEN, self.draw_title)

    def say(self, state: str) -> None:
        """How far it is, at the right of the title."""
        self._state = state
        if self.is_mounted:
            self.draw_title()

    def draw_title(self) -> None:
        title = self.heading().append(self._moment_words())
        room = self.app.size.width - 2 - title.cell_len - len(self._state)
        self.query_one("#title", Static).update(title.append(" " * max(1, room)).append(self._state, "dim"))

    def _moment_words(self) -> str:
        if not self._goes_on:
            return ""
        since = len(self._capture) - self._count
        return f" · as of {self._at}" + (f", {since:,} new: R" if since else "")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What does not go on needs no key to take more in."""
        return self._goes_on if action == "refresh" else super().check_action(action, parameters)

    def action_refresh(self) -> None:
        self._take_moment()
        self.begin()
