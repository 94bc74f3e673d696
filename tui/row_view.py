"""Which rows the list shows, and in which order: positions in the list to rows of the capture and back.

Rows are all of them from one on, those that a filter kept, or the marked ones among either; in the order of their
numbers, or in one that sorting gave. Rows that came after sorting stand behind those that were sorted.

Invariants:
  * no row stands at two positions;
  * unless something was chosen or sorted, nothing is kept for a row;
  * a position is found in constant time, a row in that or in logarithmic time once the list stands still.
"""

from collections.abc import Callable

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column

_NOWHERE = -1


class RowView:
    """What the list shows of a capture's rows."""

    def __init__(self) -> None:
        self._count = 0
        self._first = 0
        """Rows before this one are not shown."""
        self._kept: Column | None = None
        """What the filter kept, ascending; None without a filter."""
        self._marked: Int64 | None = None
        """The rows to show of these, ascending; None for all."""
        self._order: Int64 | None = None
        """The rows that were sorted, in their order."""
        self._shown: Int64 | None = None
        """Rows by position; None where that is their number."""
        self._positions: Int64 | None = None
        """Positions by row, made when first asked for; where rows ascend they are not needed."""

    def __len__(self) -> int:
        return self._count - self._first if self._shown is None else len(self._shown)

    @property
    def count(self) -> int:
        """Rows of the capture."""
        return self._count

    @property
    def first(self) -> int:
        """The row that the view begins with: those before it are not shown, whatever they fit."""
        return self._first

    @property
    def rows(self) -> Int64:
        """The rows that are shown, ascending."""
        return np.arange(self._first, self._count) if self._shown is None else np.sort(self._shown)

    @property
    def is_filtered(self) -> bool:
        """Whether rows may be hidden."""
        return self._kept is not None or self._marked is not None or self._first > 0

    @property
    def is_sorted(self) -> bool:
        """Whether rows stand in another order than that of their numbers."""
        return self._order is not None

    def grow(self, count: int) -> None:
        """The capture has so many rows now."""
        if count != self._count:
            self._count = count
            if self._order is not None and self._kept is None:
                self._arrange()

    def begin(self, first: int) -> None:
        """Show no row before this one; 0 for all."""
        self._first = first
        self._arrange()

    def keep(self, rows: Int64 | None) -> None:
        """Show these rows alone, ascending; None for all."""
        self._kept = None
        if rows is not None:
            self._kept = Column(np.int64)
            self._kept.extend(rows)
        self._arrange()

    def add(self, rows: Int64) -> None:
        """The filter keeps more rows, ascending."""
        kept = self._kept
        if kept is None or not len(rows):
            return
        if len(kept) and rows[0] <= kept.values[-1]:  # a row that was looked at again
            self.keep(np.union1d(kept.values, rows))
            return
        kept.extend(rows)
        self._arrange()

    def correct(self, looked: Int64, fitting: Int64) -> None:
        """Of rows that the filter looked at again, ascending, it keeps these now, and none of the others."""
        if self._kept is not None and len(looked):
            others = np.setdiff1d(self._kept.values, looked, assume_unique=True)
            self.keep(np.union1d(others, fitting))

    def renumber(self, moved: Callable[[Int64], Int64]) -> None:
        """Rows got other numbers: `moved` gives them."""
        self._order = None if self._order is None else moved(self._order)
        self._marked = None if self._marked is None else np.sort(moved(self._marked))
        self.keep(None if self._kept is None else np.sort(moved(self._kept.values)))

    def mark(self, rows: Int64 | None) -> None:
        """Show of all these rows alone, ascending; None for no such choice."""
        self._marked = rows
        self._arrange()

    def sort(self, order: Int64 | None) -> None:
        """Show rows in this order, all rows there were when it was made; None for that of their numbers."""
        self._order = order
        self._arrange()

    def number(self, position: int) -> int:
        """The row at a position of the list, both from 0."""
        return position + self._first if self._shown is None else int(self._shown[position])

    def position(self, number: int) -> int | None:
        """Where the list shows a row; None where it does not."""
        if self._shown is None:
            return number - self._first if self._first <= number < self._count else None
        if self._order is None:
            at = int(np.searchsorted(self._shown, number))
            return at if at < len(self._shown) and self._shown[at] == number else None
        if self._positions is None:
            self._positions = np.full(self._count, _NOWHERE, np.int64)
            self._positions[self._shown] = np.arange(len(self._shown))
        at = int(self._positions[number]) if 0 <= number < len(self._positions) else _NOWHERE
        return at if at != _NOWHERE else None

    def nearest(self, number: int) -> int | None:
        """Where the list shows a row, or the one whose number is nearest to it; None where it shows none."""
        if not len(self):
            return None
        at = self.position(number)
        if at is not None:
            return at
        shown = self._shown
        if shown is None:
            return max(self._first, min(number, self._count - 1)) - self._first
        if self._order is not None:
            return int(np.abs(shown - number).argmin())
        at = int(np.searchsorted(shown, number))
        around = [near for near in (at - 1, at) if 0 <= near < len(shown)]
        return min(around, key=lambda near: abs(int(shown[near]) - number))

    def _arrange(self) -> None:
        """Work out again what is shown."""
        rows = None if self._kept is None else self._kept.values
        if self._marked is not None:
            rows = self._marked if rows is None else self._marked[np.isin(self._marked, rows, assume_unique=True)]
        if rows is not None:
            rows = rows[np.searchsorted(rows, self._first) :]
        self._shown, self._positions = rows if self._order is None else self._sorted(self._order, rows), None

    def _sorted(self, order: Int64, rows: Int64 | None) -> Int64:
        if rows is None:
            rows = np.arange(self._first, self._count)
        wanted = np.zeros(len(order), np.bool_)
        wanted[rows[rows < len(order)]] = True
        return np.concatenate([order[wanted[order]], rows[rows >= len(order)]])
