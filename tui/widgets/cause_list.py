"""The causes of the differences between two sides: one line each, grouped by API."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from dissector.analysis.diff import DiffEntry
from tui.diff_labels import Cell, cause_cells, cause_head
from tui.widgets.cell_list import CellList


class CauseList(CellList):
    """The entries of a comparison."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Pairs", tooltip="Show the pairs with this cause", id="causes.open")
    ]
    entries: Sequence[DiffEntry] = ()

    def head(self, width: int) -> str:
        return cause_head(width)

    def cells(self, number: int, width: int) -> list[Cell]:
        entry = self.entries[number]
        first = number == 0 or self.entries[number - 1].api != entry.api
        return cause_cells(entry, width, first=first)
