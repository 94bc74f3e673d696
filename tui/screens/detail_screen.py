"""The main screen in front of another one, for one exchange; q returns."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from dissector.capture_session import Capture, Progress
from tui.location_history import Location
from tui.messages import ApplyFilter
from tui.screens.main_screen import MainScreen


class DetailScreen(MainScreen):
    """The main screen of a capture that is read, opened at a location."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "dismiss", "Back", tooltip="Back to the comparison", id="detail.back"),
    ]

    def __init__(self, capture: Capture, place: Location, filter: str = "") -> None:
        """`filter` selects the exchanges that are shown; empty for all."""
        super().__init__(capture)
        self._begin = place
        self._begin_filter = filter

    def _rows_renumbered(self) -> None:
        """Rows have their final order already."""

    def _loaded(self, progress: Progress, done: bool) -> None:
        super()._loaded(progress, done)
        self.go_to_place(self._begin)
        if self._begin.path:
            self.field_tree.focus()
        if self._begin_filter:  # while rows are matched none is selected
            self.filter.when_matched = lambda: self.go_to_place(self._begin)
            self.post_message(ApplyFilter(self._begin_filter))
