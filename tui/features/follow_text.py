"""Shows both sides of the connection of a row as text."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.features.filter import FilterFeature
from tui.features.whole_capture import NeedsWholeCapture
from tui.key_groups import FIND
from tui.location_history import Location
from tui.screens.follow_screen import FollowScreen


class FollowTextFeature(FilterFeature, NeedsWholeCapture):
    """V opens the text, f says so."""

    FEATURE = FIND

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("V", "follow_text", "Text", show=False, id="main.follow_text",
                tooltip="Show both sides of this connection as decoded text"),
    ]  # fmt: skip

    def action_connection_only(self) -> None:
        super().action_connection_only()
        if self._run is not None and self._run.filter.text == self._connection_filter:
            key = self.app.get_key_display(self.active_bindings["V"].binding) if "V" in self.active_bindings else "V"
            self.notify(f"{key} shows both sides as text; f again shows all", timeout=3)

    def action_follow_text(self) -> None:
        if self.has_rows() and len(self.view):
            connection = self.capture.rows.connection_of(self.number)
            if not self.capture.connections.ends(connection)[0]:
                self.notify("entries of Kafka's own files have no connection", timeout=3)
                return
            self.app.push_screen(FollowScreen(self.capture, connection, self.number), self._text_closed)

    def _text_closed(self, place: Location | None) -> None:
        if place is not None and not self.go_to_place(place):
            self.notify(f"row {place.number + 1:,} is hidden by the filter", timeout=3)
