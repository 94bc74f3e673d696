"""Opens the dialog about the connection of a row."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.features.whole_capture import NeedsWholeCapture
from tui.key_groups import FIND
from tui.screens.connection_dialog import ConnectionDialog


class ConnectionFeature(NeedsWholeCapture):
    """W opens the dialog."""

    FEATURE = FIND

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("W", "connection_facts", "Connection", show=False, id="main.connection",
                tooltip="Show this connection's endpoints, RTT, losses and bytes"),
    ]  # fmt: skip

    def action_connection_facts(self) -> None:
        if self.has_rows() and len(self.view):
            connection = self.capture.rows.connection_of(self.number)
            if not self.capture.connections.ends(connection)[0]:
                self.notify("entries of Kafka's own files have no connection", timeout=3)
                return
            self.app.push_screen(ConnectionDialog(self.capture, connection), self._connection_closed)

    def _connection_closed(self, row: int | None) -> None:
        if row is not None and not self.go_to(row):
            self.notify(f"row {row + 1:,} is hidden by the filter", timeout=3)
