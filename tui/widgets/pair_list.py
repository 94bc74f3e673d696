"""Pairs of exchanges: each of one side with its counterpart on the other."""

from dissector.analysis.diff import ExchangePair
from tui.diff_labels import Cell, pair_cells, pair_head
from tui.diff_model import DiffModel
from tui.widgets.cell_list import CellList


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
