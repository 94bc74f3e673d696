"""Goes from exchange to exchange, from request to response, and back to where the user jumped from."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import numpy as np
from textual.binding import Binding

from dissector.core.arrays import Bool, Int64
from tui.feature import GO, ScreenFeature
from tui.features.findings import FindingsFeature
from tui.features.row_search import Go, RowSearchFeature
from tui.location_history import Location
from tui.screens.core_screen import CoreScreen


class NavigationFeature(ScreenFeature[CoreScreen]):
    """Goes along the list, a connection, errors; back and forward."""

    GROUP = GO

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("r", "flip", "Req↔Resp", tooltip="Show the other message of the exchange", id="main.flip"),
        Binding("b", "source", "Next bytes", show=False, id="main.source",
                tooltip="Next source of bytes: the frame, decompressed records, TLS records"),
        Binding(
            "left_square_bracket", "connection(-1)", "Previous on connection", key_display="[", show=False,
            tooltip="Previous exchange of the connection", id="main.previous_on_connection",
        ),
        Binding(
            "right_square_bracket", "connection(1)", "Next on connection", key_display="]", show=False,
            tooltip="Next exchange of the connection", id="main.next_on_connection",
        ),
        Binding("e", "problem(1)", "Next error", id="main.next_error",
                tooltip="Next exchange with a warning or an error"),
        Binding(
            "E", "problem(-1)", "Previous error", show=False, tooltip="Previous exchange with a warning or an error",
            id="main.previous_error",
        ),
        Binding(
            "f8,ctrl+down", "step(1)", "Next exchange", show=False, tooltip="Next exchange, from any pane",
            id="main.next",
        ),
        Binding(
            "f7,ctrl+up", "step(-1)", "Previous exchange", show=False, tooltip="Previous exchange, from any pane",
            id="main.previous",
        ),
        Binding("ctrl+o,alt+left", "back", "Back", show=False, tooltip="Go back to before the last jump",
                id="main.back"),
        Binding("alt+right", "forward", "Forward", show=False, tooltip="Go forward again",
                id="main.forward"),
    ]  # fmt: skip

    def action_flip(self) -> None:
        """Show the other message of the exchange; a field of the same path stays selected."""
        path = self.screen.model.node.path if self.screen.model.node is not None else ""
        if self.screen.model.flip():
            self.screen.draw_message()
            self.screen.choose_again(path)
        elif self.screen.model.exchange is not None:
            self.notify(f"no {'response' if self.screen.model.side == 'request' else 'request'}", timeout=2)

    def action_source(self) -> None:
        """Show the frame, then each decompressed section, then the TLS records, cyclically."""
        if not self.screen.model.next_source():
            self.notify("no other bytes: no part of this message is compressed or encrypted", timeout=2)
        elif self.screen.model.node is not None:
            self.screen.choose_field(self.screen.model.node)
        else:
            self.screen.bytes_pane.update()
            self.screen.draw_pane_titles()
            self.screen.draw_inspector()

    def action_step(self, rows: int) -> None:
        self.screen.exchange_list.cursor += rows

    def action_connection(self, step: int) -> None:
        """Go to the next exchange of the connection."""
        if self.screen.model.exchange is not None:
            connection = self.screen.model.exchange.row.connection
            self.screen.feature(RowSearchFeature).search(
                step,
                lambda rows: _first(
                    self.screen, rows, self.screen.capture.index.numbers(rows).connection == connection
                ),
                "exchanges on this connection",
            )

    def action_problem(self, step: int) -> None:
        """Go to the next exchange with a warning or an error."""
        self.screen.feature(RowSearchFeature).search(step, self._first_problem, "exchanges with problems")

    def _first_problem(self, rows: Int64) -> Go | None:
        number = self.screen.feature(FindingsFeature).model.first(rows)
        return partial(self.screen.go_to, number) if number is not None else None

    def action_back(self) -> None:
        self._return(self.screen.history.back, "no previous location")

    def action_forward(self) -> None:
        self._return(self.screen.history.forward, "no next location")

    def _return(self, step: Callable[[Location, Callable[[int], bool]], Location | None], otherwise: str) -> None:
        here, view = self.screen.place, self.screen.view
        place = step(here, lambda number: view.position(number) is not None) if here else None
        if place is None:
            self.notify(otherwise, timeout=2)
        else:
            self.screen.show_place(place)


def _first(screen: CoreScreen, rows: Int64, wanted: Bool) -> Go | None:
    """Return how to go to the first row that is wanted."""
    found = np.flatnonzero(wanted)
    return partial(screen.go_to, int(rows[found[0]])) if len(found) else None
