"""Sorts the list by a column of the index: durations and sizes with the largest first, and the cursor on the first row.
New rows follow the sorted ones, until there are many."""

from collections.abc import Iterator
from typing import ClassVar, Final

from textual.binding import Binding
from textual.worker import get_current_worker

from dissector.core.arrays import Int64
from dissector.core.text import clean
from dissector.exchange.row_field import FieldType
from dissector.exchange.row_fields import ROW_FIELDS
from tui.appearance import SortOrder, reversed_order, sorted_rows
from tui.command_line import CommandError, LineCommand, of_names
from tui.feature import LIST, ScreenFeature, work
from tui.list_columns import ListColumn, all_columns, column_of
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu
from tui.threads import call_on_ui
from tui.widgets.exchange_list import ExchangeList

_MORE: Final = 1.25
"""How much longer the list must be to be sorted again, while rows come."""


def _sortable() -> list[ListColumn]:
    """The columns that the index has; first those that lists are mostly sorted by."""
    names = [ROW_FIELDS[name].heading for name in ("latency", "response.size", "request.size", "time")]
    columns = [column for column in all_columns() if column.is_indexed]
    return sorted(columns, key=lambda column: names.index(column.name) if column.name in names else len(names))


class SortFeature(ScreenFeature[CoreScreen]):
    """By a column, ascending or descending."""

    GROUP = LIST

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("z", "sort", "Sort", show=False, tooltip="Sort the list by a column", id="main.sort"),
        Binding("Z", "reverse", "Reverse order", show=False, tooltip="Reverse the sort order", id="main.reverse"),
    ]

    _ascending: tuple[Int64, int] | None = None
    """The rows by the column that was chosen last, and how many of them have a value."""

    def commands(self) -> Iterator[LineCommand]:
        names = of_names(lambda: [(each.name, each.words) for each in all_columns() if each.is_indexed])
        yield LineCommand("sort", "sort the list by a column", self._sort_command, "COLUMN", names)

    def _sort_command(self, name: str) -> None:
        if not name:
            self.action_sort()
            return
        known = {each.name.casefold(): each.name for each in all_columns() if each.is_indexed}
        if name.casefold() not in known:
            raise CommandError(clean(f"can't sort by {name!r}"))
        self.sort_by(_begun(known[name.casefold()]))

    def action_sort(self) -> None:
        """Choose the column to sort by."""
        choices = [Choice("Unsorted", "in the order of row numbers"), *(Choice(c.name, c.words) for c in _sortable())]
        sorting = self.screen.appearance.sorting
        at = 0 if sorting is None else 1 + [column.name for column in _sortable()].index(sorting.column)
        self.app.push_screen(Menu("Sort by", choices, at), self._sort_chosen)

    def _sort_chosen(self, chosen: int | None) -> None:
        if chosen is not None:
            self.sort_by(None if chosen == 0 else _begun(_sortable()[chosen - 1].name))

    def action_reverse(self) -> None:
        """Reverse the order; unsorted rows are sorted by number, descending."""
        sorting = self.screen.appearance.sorting or SortOrder("No.")
        self.sort_by(sorting._replace(descending=not sorting.descending))

    def on_exchange_list_head_clicked(self, event: ExchangeList.HeadClicked) -> None:
        """The first click sorts as `z` does, the second reverses, the third restores the order of row numbers."""
        sorting = self.screen.appearance.sorting
        if not column_of(event.column).is_indexed:
            words = f"can't sort by {event.column}: that would decode every message"
            self.notify(words, timeout=3)
        elif sorting is None or sorting.column != event.column:
            self.sort_by(_begun(event.column))
        else:
            is_reversed = sorting != _begun(event.column)
            self.sort_by(None if is_reversed else sorting._replace(descending=not sorting.descending))

    def sort_by(self, sorting: SortOrder | None) -> None:
        """Sort the list; with None in the order of row numbers."""
        before, self.screen.appearance.sorting = self.screen.appearance.sorting, sorting
        self.notify(_sorted_words(sorting), timeout=3)
        if sorting is None:
            self.stop_work("sort")
            self._ascending = None
            self.screen.view.sort(None)
            self.screen.exchange_list.update_rows()
        elif before is not None and before.column == sorting.column and self._ascending is not None:
            self._show_sorted(*self._ascending, to_top=True)
        else:
            self.screen.exchange_list.refresh()  # draws the arrow
            self._order(sorting.column, to_top=True)

    @work(group="sort", thread=True, exclusive=True)
    def _order(self, column: str, *, to_top: bool) -> None:
        worker, capture = get_current_worker(), self.screen.capture
        found = sorted_rows(capture, column_of(column).field, len(capture), lambda: worker.is_cancelled)
        if found is not None:
            call_on_ui(self.screen, self._show_sorted, *found, to_top=to_top)

    def _show_sorted(self, order: Int64, present: int, *, to_top: bool) -> None:
        sorting = self.screen.appearance.sorting
        if sorting is not None:
            self._ascending = order, present
            self.screen.view.sort(reversed_order(order, present) if sorting.descending else order)
            self.screen.exchange_list.update_rows()
            if to_top:
                self.screen.exchange_list.cursor = 0

    def rows_added(self, *, done: bool) -> None:
        sorting, found = self.screen.appearance.sorting, self._ascending
        if sorting is not None and found is not None and (done or len(self.screen.capture) > _MORE * len(found[0])):
            self._order(sorting.column, to_top=False)


def _begun(name: str) -> SortOrder:
    """The order in which a column is sorted first."""
    return SortOrder(name, descending=ROW_FIELDS[column_of(name).field].type in (FieldType.DURATION, FieldType.SIZE))


def _sorted_words(sorting: SortOrder | None) -> str:
    """Say how the list is sorted, and what changes that."""
    if sorting is None:
        return "in the order of row numbers"
    order = "descending" if sorting.descending else "ascending"
    return f"sorted by {sorting.column}, {order}; Z reverses, z chooses"
