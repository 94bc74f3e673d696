"""Goes back and forward between locations: after a search, an error, a filter, a distant click."""

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType

from dissector.capture_session import Capture
from tui.key_groups import GO
from tui.location_history import Location, LocationHistory
from tui.messages import ApplyFilter
from tui.screens.core_screen import CoreScreen
from tui.widgets.exchange_list import ExchangeList


class HistoryFeature(CoreScreen):
    """Remembers the locations that are jumped from, each with its side and field."""

    FEATURE = GO

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+o,alt+left", "back", "Back", show=False, tooltip="Go back to before the last jump",
                id="main.back"),
        Binding("alt+right", "forward", "Forward", show=False, tooltip="Go forward again",
                id="main.forward"),
    ]  # fmt: skip

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self._history = LocationHistory()

    def go_to_place(self, place: Location, then: Callable[[], object] | None = None) -> bool:
        here = self.place
        there = super().go_to_place(place, then)
        if there and here is not None and here != self.place:
            self._history.push(here)
        return there

    def on_exchange_list_row_chosen(self, event: ExchangeList.RowChosen) -> None:
        """The list's cursor moved, and the model is still at the previous row: a screenful or more is a jump."""
        here = self.place
        if here is not None and here.number != event.number and event.numbering == self._list.numbering:
            before, now = self.view.position(here.number), self.view.position(event.number)
            if before is None or now is None or abs(now - before) > self._list.size.height:
                self._history.push(here)

    def on_apply_filter(self, event: ApplyFilter) -> None:
        """Another row may be selected after it."""
        if self.place is not None and not event.prepare:
            self._history.push(self.place)

    def action_back(self) -> None:
        self._return(self._history.back, "no previous location")

    def action_forward(self) -> None:
        self._return(self._history.forward, "no next location")

    def _return(self, step: Callable[[Location, Callable[[int], bool]], Location | None], otherwise: str) -> None:
        place = step(self.place, lambda number: self.view.position(number) is not None) if self.place else None
        if place is None:
            self.notify(otherwise, timeout=2)
        else:
            super().go_to_place(place)
