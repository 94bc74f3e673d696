"""Opens the record view, and goes to the exchange of a record."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from dissector.protocol.tree import Node
from tui.features.filter import FilterFeature
from tui.features.whole_capture import NeedsWholeCapture
from tui.key_groups import OVERALL
from tui.location_history import Location
from tui.screens.records_core_screen import OpenedRecord
from tui.screens.records_screen import RecordsScreen

_RECORD, _MESSAGE = "RECORD", "MESSAGE"
"""Types of nodes: of a record in a batch, and of a message of before 0.11, which may be a wrapper."""


class RecordsFeature(FilterFeature, NeedsWholeCapture):
    """R lists the records of the exchanges that are shown."""

    FEATURE = OVERALL

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "records", "Records", id="main.records",
                tooltip="List the records of all exchanges that are shown"),
    ]  # fmt: skip

    def action_records(self) -> None:
        if self.waits_for_end or self.has_rows():
            text = self._run.filter.text if self._run is not None else ""
            row = self.number if len(self.view) else None
            screen = RecordsScreen(self.capture, waits=self.waits_for_end, filter_text=text, row=row)
            self.app.push_screen(screen, self._records_closed)

    def _records_closed(self, found: OpenedRecord | None) -> None:
        if found is None:
            return
        side = "request" if self.capture.exchange(found.row).api_key == 0 else "response"
        place = Location(found.row, None if self.capture.exchange(found.row).is_stored else side)
        if self.go_to_place(place, lambda: self._choose_record(found.place)):
            self._fields.focus()
        else:
            self.notify(f"exchange {found.row + 1} is not shown", timeout=2)

    def _choose_record(self, place: int) -> None:
        """Select a record of the message that is shown."""
        if self.model.traced is None:
            return
        nodes = record_nodes(self.model.traced.message.tree)
        if place < len(nodes):
            self.choose_field(nodes[place])


def record_nodes(tree: Node) -> list[Node]:
    """Return the nodes of a message's records, in the order of the wire."""
    wrappers = {id(above) for above in tree.walk() if above.type == _MESSAGE and _holds_messages(above)}
    return [
        node for node in tree.walk()
        if node.type == _RECORD or (node.type == _MESSAGE and id(node) not in wrappers)
    ]  # fmt: skip


def _holds_messages(node: Node) -> bool:
    return any(below is not node and below.type == _MESSAGE for below in node.walk())
