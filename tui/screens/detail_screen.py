"""The main screen over another one, for a look at one exchange: q goes back."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from dissector.capture_session import Capture, Progress
from tui.location_history import Location
from tui.screens.main_screen import MainScreen


class DetailScreen(MainScreen):
    """Everything of a capture that is read, beginning at a place."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "dismiss", "Back", tooltip="Back to the comparison", id="aside.back"),
    ]

    def __init__(self, capture: Capture, place: Location) -> None:
        super().__init__(capture)
        self._begin = place

    def _rows_renumbered(self) -> None:
        """Rows have their order since before."""

    def _loaded(self, progress: Progress, done: bool) -> None:
        super()._loaded(progress, done)
        self.go_to_place(self._begin)
        if self._begin.path:
            self._fields.focus()
