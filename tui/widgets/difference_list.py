"""The fields of a pair of exchanges, side by side."""

from tui.diff_labels import Cell, line_cells, line_head
from tui.diff_model import DiffModel
from tui.widgets.cell_list import CellList


class DifferenceList(CellList):
    """The differences of the selected pair, or all its fields."""

    model: DiffModel | None = None

    def head(self, width: int) -> str:
        return line_head(width)

    def cells(self, number: int, width: int) -> list[Cell]:
        assert self.model is not None
        return line_cells(self.model, self.model.lines[number], width)
