"""The fields of a pair of exchanges, side by side."""

from collections.abc import Sequence

from tui.diff_labels import Cell, line_cells, line_head
from tui.diff_model import DiffModel, FieldLine
from tui.widgets.cell_list import CellList


class DifferenceList(CellList):
    """The differences of the selected pair, or all its fields.

    Invariant: it draws the lines that it was given last, whatever the screen's model has by then."""

    _model: DiffModel | None = None
    _lines: Sequence[FieldLine] = ()

    def show_lines(self, model: DiffModel) -> None:
        """Show the lines of a model's pair, with the cursor on the selected one."""
        self._model, self._lines = model, model.lines
        self.show(len(model.lines), model.line)

    def head(self, width: int) -> str:
        return line_head(width)

    def cells(self, number: int, width: int) -> list[Cell]:
        assert self._model is not None
        return line_cells(self._model, self._lines[number], width)
