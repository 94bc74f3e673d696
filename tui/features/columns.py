"""The columns of the list: chosen from a menu, or made from a field."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from dissector.core.text import clean
from tui.key_groups import LIST
from tui.list_columns import INFO, ListColumn, column_of
from tui.messages import AddColumn, SavePreference
from tui.screens.column_menu import ColumnMenu
from tui.screens.core_screen import CoreScreen
from tui.settings import COLUMNS


class ColumnsFeature(CoreScreen):
    """The menu of columns; columns of fields."""

    FEATURE = LIST

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("C", "columns", "Columns", show=False, tooltip="Choose the columns of the list", id="main.columns"),
    ]

    def action_columns(self) -> None:
        self.app.push_screen(ColumnMenu(self._columns_shown(), self._choose_columns))

    def toggle_column(self, name: str) -> None:
        """Show or hide a column."""
        shown = self._columns_shown()
        others = [column for column in shown if column.name != name]
        self._choose_columns(others if len(others) < len(shown) else [*shown, column_of(name)])

    def _columns_shown(self) -> list[ListColumn]:
        return [column for column in self._list.columns() if column.name != INFO]

    def _choose_columns(self, shown: list[ListColumn] | None) -> list[ListColumn]:
        """Show these, or the default ones with None; return those that are shown then."""
        if shown is None:
            self.appearance.columns.chosen = None
        else:
            self.appearance.columns.choose(shown)
        self._columns_changed()
        return self._columns_shown()

    def _columns_changed(self) -> None:
        self._list.update_rows()
        self.post_message(SavePreference(COLUMNS, self.appearance.columns.words()))

    def on_add_column(self, event: AddColumn) -> None:
        if self.appearance.columns.add(event.path, self._columns_shown()):
            self._columns_changed()
            self.notify(f"column {clean(event.path)} added; C changes columns", markup=False, timeout=2)
        else:
            self.notify(f"{clean(event.path)} is already a column", markup=False, timeout=2)
