"""From exchange to exchange, and from one side of it to the other."""

from functools import partial
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from dissector.core.arrays import Bool, Int64
from tui.features.findings_analysis import FindingsAnalysis
from tui.features.row_search import Go, RowSearch


class NavigationFeature(RowSearch, FindingsAnalysis):
    """Goes along the list, a connection, errors."""

    FEATURE = "Going about"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "flip", "Req↔Resp", tooltip="The other side of the exchange", id="main.flip"),
        Binding("b", "source", "Bytes of", show=False, id="main.source",
                tooltip="The next source of bytes: the frame, what was decompressed from it"),
        Binding(
            "left_square_bracket", "along(-1)", "Connection", key_display="[", show=False,
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

    def action_source(self) -> None:
        """The frame, then each section that was decompressed, and round again."""
        node = self.model.next_source()
        if node is None:
            self.notify("all bytes of this message are in its frame", timeout=2)
        else:
            self.choose_field(node)

    def action_step(self, rows: int) -> None:
        self._list.cursor += rows

    def action_along(self, step: int) -> None:
        """The next exchange of the same connection."""
        if self.model.exchange is not None:
            connection = self.model.exchange.row.connection
            self.seek(
                step,
                lambda rows: self._first(rows, self.capture.index_columns(rows).connection == connection),
                "exchange on this connection",
            )

    def action_trouble(self, step: int) -> None:
        """The next exchange with a warning or an error."""
        self.seek(step, self._first_trouble, "exchange with something wrong")

    def _first_trouble(self, rows: Int64) -> Go | None:
        number = self.troubles.first(rows)
        return partial(self.go_to, number) if number is not None else None

    def _first(self, rows: Int64, wanted: Bool) -> Go | None:
        """The first row that is wanted."""
        found = np.flatnonzero(wanted)
        return partial(self.go_to, int(rows[found[0]])) if len(found) else None
