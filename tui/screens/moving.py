"""From exchange to exchange, and from one side of it to the other."""

from collections.abc import Callable
from copy import copy
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType
from textual.worker import get_current_worker

from tui.screens.core import CoreScreen


class Moving(CoreScreen):
    """Goes along the list, a connection, errors."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "flip", "Req↔Resp", tooltip="The other side of the exchange", id="main.flip"),
        Binding(
            "left_square_bracket", "along(-1)", "Connection", key_display="[",
            tooltip="The previous exchange of the same connection", id="main.previous_on_connection",
        ),
        Binding(
            "right_square_bracket", "along(1)", "Next on connection", key_display="]", show=False,
            tooltip="The next exchange of the same connection", id="main.next_on_connection",
        ),
        Binding("e", "trouble(1)", "Error", tooltip="The next exchange with something wrong", id="main.next_trouble"),
        Binding(
            "E", "trouble(-1)", "Previous error", show=False, tooltip="The previous exchange with something wrong",
            id="main.previous_trouble",
        ),
        Binding(
            "f8,ctrl+down", "step(1)", "Next exchange", show=False, tooltip="The next exchange, from any pane",
            id="main.next",
        ),
        Binding(
            "f7,ctrl+up", "step(-1)", "Previous exchange", show=False, tooltip="The previous exchange, from any pane",
            id="main.previous",
        ),
    ]  # fmt: skip

    def action_flip(self) -> None:
        """The other message of the exchange; a field of the same path stays chosen."""
        if self.model.flip():
            self._draw_message()
        elif self.model.exchange is not None:
            self.notify(f"there is no {'response' if self.model.side == 'request' else 'request'}", timeout=2)

    def action_step(self, rows: int) -> None:
        self._list.cursor += rows

    def action_along(self, step: int) -> None:
        """The next exchange of the same connection."""
        if self.model.exchange is not None:
            connection = self.model.exchange.row.connection
            self._seek(step, lambda number: self.capture.connection_of(number) == connection, "on this connection")

    def action_trouble(self, step: int) -> None:
        """The next exchange with a warning or an error."""
        self._seek(step, self.capture.is_trouble, "with something wrong")

    @work(thread=True, exclusive=True, group="seek")
    def _seek(self, step: int, wanted: Callable[[int], bool], words: str) -> None:
        """Look for a row beside the screen: on a large capture it may take a while, and the user may go on."""
        worker = get_current_worker()
        view = copy(self.view)  # as it is now, whatever becomes of the list
        position = self._list.cursor + step
        while 0 <= position < len(view) and not worker.is_cancelled:
            number = view.number(position)
            if wanted(number):
                self.app.call_from_thread(self.go_to, number)
                return
            position += step
        if not worker.is_cancelled:
            self.app.call_from_thread(
                self.notify, f"no {'more' if step > 0 else 'earlier'} exchange {words}", timeout=2
            )
