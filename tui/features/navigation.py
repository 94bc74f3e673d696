"""Goes from exchange to exchange, and from request to response."""

from functools import partial
from typing import ClassVar

import numpy as np
from textual.binding import Binding, BindingType

from dissector.core.arrays import Bool, Int64
from tui.features.findings_analysis import FindingsAnalysis
from tui.features.row_search import Go, RowSearch
from tui.key_groups import GO


class NavigationFeature(RowSearch, FindingsAnalysis):
    """Goes along the list, a connection, errors."""

    FEATURE = GO

    BINDINGS: ClassVar[list[BindingType]] = [
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
    ]  # fmt: skip

    def action_flip(self) -> None:
        """Show the other message of the exchange; a field of the same path stays selected."""
        path = self.model.node.path if self.model.node is not None else ""
        if self.model.flip():
            self._draw_message()
            self._choose_again(path)
        elif self.model.exchange is not None:
            self.notify(f"no {'response' if self.model.side == 'request' else 'request'}", timeout=2)

    def action_source(self) -> None:
        """Show the frame, then each decompressed section, then the TLS records, cyclically."""
        if not self.model.next_source():
            self.notify("no other bytes: nothing of this message is compressed or encrypted", timeout=2)
        elif self.model.node is not None:
            self.choose_field(self.model.node)
        else:
            self._bytes.update()
            self._draw_titles()
            self._draw_inspector()

    def action_step(self, rows: int) -> None:
        self._list.cursor += rows

    def action_connection(self, step: int) -> None:
        """Go to the next exchange of the connection."""
        if self.model.exchange is not None:
            connection = self.model.exchange.row.connection
            self.search_rows(
                step,
                lambda rows: self._first(rows, self.capture.index.numbers(rows).connection == connection),
                "exchanges on this connection",
            )

    def action_problem(self, step: int) -> None:
        """Go to the next exchange with a warning or an error."""
        self.search_rows(step, self._first_problem, "exchanges with problems")

    def _first_problem(self, rows: Int64) -> Go | None:
        number = self.findings.first(rows)
        return partial(self.go_to, number) if number is not None else None

    def _first(self, rows: Int64, wanted: Bool) -> Go | None:
        """Return how to go to the first row that is wanted."""
        found = np.flatnonzero(wanted)
        return partial(self.go_to, int(rows[found[0]])) if len(found) else None
