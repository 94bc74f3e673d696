"""The lists of the diff screen: the causes of the differences, grouped by API; the pairs of exchanges; the fields of a
pair, side by side."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from dissector.analysis.diff import DiffEntry, ExchangePair
from tui.diff_labels import Cell, cause_cells, cause_head, line_cells, line_head, pair_cells, pair_head
from tui.diff_model import DiffModel, FieldLine
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


class PairList(CellList):
    """The pairs of a comparison that are shown. Differences are counted for those on the screen."""

    model: DiffModel | None = None
    matched: frozenset[tuple[int, int]] = frozenset()
    """Rows that the user matched."""
    marked: tuple[int, int] | None = None
    """A side and its row that waits for one of the other side."""

    @property
    def pair(self) -> ExchangePair | None:
        """The pair under the cursor."""
        return self.pair_at(self.cursor) if self.count else None

    def pair_at(self, number: int) -> ExchangePair:
        assert self.model is not None
        return self.model.comparison.pairs[self.model.shown[number]]

    def head(self, width: int) -> str:
        return pair_head(width)

    def cells(self, number: int, width: int) -> list[Cell]:
        assert self.model is not None
        pair = self.pair_at(number)
        side, row = self.marked if self.marked is not None else (0, None)
        waits = row is not None and row == (pair.b if side else pair.a)
        return pair_cells(
            self.model, pair, width, matched=(pair.a, pair.b) in self.matched, marked=side if waits else None
        )


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
