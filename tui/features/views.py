"""Other screens about the capture, and what is done with what the user chose there: the overview, diagrams, timelines,
records, the IO graph, a connection as text and in figures.
"""

from typing import ClassVar

import numpy as np
from textual.binding import Binding

from dissector.core.arrays import Int64
from dissector.protocol.tree import Node
from tui.feature import FIND, OVERALL, ScreenFeature
from tui.features.filter import FilterFeature
from tui.location_history import Location
from tui.messages import ApplyFilter, GoTo
from tui.overview_model import OverviewSnapshot
from tui.screens.connection_dialog import ConnectionDialog
from tui.screens.core_screen import CoreScreen
from tui.screens.follow_screen import FollowScreen
from tui.screens.io_graph_screen import IoGraphScreen
from tui.screens.overview_screen import OverviewScreen
from tui.screens.records_core_screen import OpenedRecord
from tui.screens.records_screen import RecordsScreen
from tui.screens.sequence_screen import SequenceScreen
from tui.screens.timelines_screen import TimelinesScreen

_RECORD, _MESSAGE = "RECORD", "MESSAGE"
"""Types of nodes: of a record in a batch, and of a message of before 0.11, which may be a wrapper."""


class DiagramsFeature(ScreenFeature[CoreScreen]):
    """L opens the timelines of groups and transactions, D the sequence diagram, o the overview."""

    GROUP = OVERALL

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("L", "timelines", "Timelines", show=False, tooltip="Timelines of groups and transactions",
                id="main.timelines"),
        Binding("D", "sequence", "Sequence", show=False, tooltip="Sequence diagram: messages as arrows between lanes",
                id="main.sequence"),
        Binding("o", "overview", "Overview", tooltip="Show clients, topics, versions, errors and latencies at a glance",
                id="main.overview"),
    ]  # fmt: skip

    _picture: OverviewSnapshot | None = None
    """Of all exchanges, once they are counted."""

    def action_timelines(self) -> None:
        waits = self.screen.waits_for_end
        if waits or self.screen.has_rows():
            self.app.push_screen(TimelinesScreen(self.screen.capture, waits=waits), self._go_to)

    def action_sequence(self) -> None:
        if self.screen.has_rows() and len(self.screen.view):
            screen = SequenceScreen(self.screen.capture, lambda: shown_rows(self.screen), self.screen.number)
            self.app.push_screen(screen, self._go_to)

    def _go_to(self, number: int | None) -> None:
        if number is not None:
            self.screen.post_message(GoTo(number))

    def action_overview(self) -> None:
        if not self.screen.has_rows():
            return
        screen = OverviewScreen(self.screen.capture, self._picture)

        def closed(chosen: str | int | None) -> None:
            if screen.is_complete and self.screen.done:
                self._picture = screen.picture
            if isinstance(chosen, int):
                self._go_to(chosen)
            elif chosen:
                self.screen.post_message(ApplyFilter(chosen))

        self.app.push_screen(screen, closed)


class RecordsFeature(ScreenFeature[CoreScreen]):
    """R lists the records of the exchanges that are shown."""

    GROUP = OVERALL

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("R", "records", "Records", id="main.records",
                tooltip="List the records of all shown exchanges"),
    ]  # fmt: skip

    def action_records(self) -> None:
        waits = self.screen.waits_for_end
        if waits or self.screen.has_rows():
            text = self.screen.feature(FilterFeature).text
            row = self.screen.number if len(self.screen.view) else None
            screen = RecordsScreen(self.screen.capture, waits=waits, filter_text=text, row=row)
            self.app.push_screen(screen, self._records_closed)

    def _records_closed(self, found: OpenedRecord | None) -> None:
        if found is None:
            return
        exchange = self.screen.capture.exchange(found.row)
        side = "request" if exchange.api_key == 0 else "response"
        place = Location(found.row, None if exchange.is_stored else side)
        if self.screen.go_to_place(place, lambda: self._choose_record(found.place)):
            self.screen.field_tree.focus()
        else:
            self.notify(f"exchange {found.row + 1} is not shown", timeout=2)

    def _choose_record(self, place: int) -> None:
        """Select a record of the message that is shown."""
        if self.screen.model.traced is None:
            return
        nodes = record_nodes(self.screen.model.traced.message.tree)
        if place < len(nodes):
            self.screen.choose_field(nodes[place])


class ConnectionFeature(ScreenFeature[CoreScreen]):
    """V opens both sides of a connection as text, W its figures."""

    GROUP = FIND

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("V", "follow_text", "Text", show=False, id="main.follow_text",
                tooltip="Show both sides of this connection as decoded text"),
        Binding("W", "connection_facts", "Connection", show=False, id="main.connection",
                tooltip="Show this connection's endpoints, RTT, losses and bytes"),
    ]  # fmt: skip

    def action_follow_text(self) -> None:
        connection = self._connection()
        if connection is not None:
            screen = FollowScreen(self.screen.capture, connection, self.screen.number)
            self.app.push_screen(screen, self._go_to)

    def action_connection_facts(self) -> None:
        connection = self._connection()
        if connection is not None:
            dialog = ConnectionDialog(self.screen.capture, connection)
            self.app.push_screen(dialog, lambda row: self._go_to(None if row is None else Location(row)))

    def _connection(self) -> int | None:
        """Return the connection of the row; None if there is none, and the user is told."""
        if not self.screen.has_rows() or not len(self.screen.view):
            return None
        connection = self.screen.capture.rows.connection_of(self.screen.number)
        if not self.screen.capture.connections.ends(connection)[0]:
            self.notify("entries of Kafka's own files have no connection", timeout=3)
            return None
        return connection

    def _go_to(self, place: Location | None) -> None:
        if place is not None and not self.screen.go_to_place(place):
            self.notify(f"row {place.number + 1:,} is hidden by the filter", timeout=3)


class IoGraphFeature(ScreenFeature[CoreScreen]):
    """I opens the IO graph of the rows in the list."""

    GROUP = OVERALL

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("I", "io_graph", "IO graph", show=False, id="main.io_graph",
                tooltip="IO graph: exchanges, bytes, latencies and errors over time; a span becomes a filter"),
    ]  # fmt: skip

    def action_io_graph(self) -> None:
        if self.screen.has_rows() and len(self.screen.view):
            screen = IoGraphScreen(self.screen.capture, lambda: shown_rows(self.screen))
            self.app.push_screen(screen, self._graph_closed)

    def _graph_closed(self, span: str | None) -> None:
        """Show the rows of a span, of those that the list shows."""
        if span:
            filter = self.screen.feature(FilterFeature)
            filter.apply(f"({filter.text}) && {span}" if filter.text else span)


def shown_rows(screen: CoreScreen) -> Int64:
    """Return the rows that the list shows, in the order of their numbers."""
    return np.sort(screen.view.rows) if screen.view.is_filtered else np.arange(len(screen.capture))


def record_nodes(tree: Node) -> list[Node]:
    """Return the nodes of a message's records, in the order of the wire."""
    wrappers = {id(above) for above in tree.walk() if above.type == _MESSAGE and _holds_messages(above)}
    return [
        node for node in tree.walk()
        if node.type == _RECORD or (node.type == _MESSAGE and id(node) not in wrappers)
    ]  # fmt: skip


def _holds_messages(node: Node) -> bool:
    return any(below is not node and below.type == _MESSAGE for below in node.walk())
