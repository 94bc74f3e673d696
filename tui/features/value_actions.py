"""Makes a filter or a column from the value under the cursor: a cell of the list, or a field."""

from typing import ClassVar

from textual.binding import Binding

from dissector.core.text import clean
from dissector.exchange.field_paths import plain_path
from tui.feature import FIND, ScreenFeature
from tui.messages import AddColumn, ApplyFilter
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu
from tui.value_parts import JSON_VALUE


class ValueActionsFeature(ScreenFeature[CoreScreen]):
    """a applies a filter, A edits it, c adds a column. In the list they take the row's cell, below it the field."""

    GROUP = FIND

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("a", "as_filter", "As filter", show=False, id="main.apply_as_filter",
                tooltip="Filter by the field under the cursor, or by the cell in the list"),
        Binding("A", "to_filter", "Edit filter", show=False, id="main.prepare_as_filter",
                tooltip="Edit a filter by the field, or by a cell of the row"),
        Binding("c", "as_column", "As column", show=False, tooltip="Add the field as a column",
                id="main.as_column"),
    ]  # fmt: skip

    def action_as_filter(self) -> None:
        """Apply it."""
        from tui.value_filters import column_filter

        if self.screen.focused is self.screen.exchange_list:
            column = self.screen.exchange_list.column or "API"
            text = column_filter(self.screen.model.exchange, column) if self.screen.model.exchange is not None else None
            if text is not None:
                self.screen.post_message(ApplyFilter(text))
            else:
                self.notify(f"no filter for {clean(column)} of this row", timeout=3)
        else:
            self._filter_field(prepare=False)

    def action_to_filter(self) -> None:
        """Edit it."""
        from tui.value_filters import cell_filters

        if self.screen.focused is not self.screen.exchange_list:
            self._filter_field(prepare=True)
            return
        cells = cell_filters(self.screen.model.exchange) if self.screen.model.exchange is not None else []

        def prepare(chosen: int | None) -> None:
            if chosen is not None:
                self.screen.post_message(ApplyFilter(cells[chosen][1], prepare=True))

        self.app.push_screen(Menu("Filter on", [Choice(name, clean(text)) for name, text in cells]), prepare)

    def _filter_field(self, *, prepare: bool) -> None:
        from dissector.filter import FilterError
        from tui.value_filters import field_filter

        try:
            text = field_filter(self.screen.model)
        except FilterError:
            self.notify("this part of the frame is not a field, so no filter can match it", timeout=3)
            return
        if text is None:
            self.notify("select a field first: this part of the frame is not one", timeout=2)
        else:
            self.screen.post_message(ApplyFilter(text, prepare=prepare))

    def action_as_column(self) -> None:
        node = self.screen.model.node
        if node is None or node.name.startswith("(") or node.type == JSON_VALUE:
            self.notify("select a field first: this part of the frame is not one", timeout=2)
        else:
            self.screen.post_message(AddColumn(plain_path(self.screen.model.path)))
