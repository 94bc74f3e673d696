"""Which rows the list shows, and in which order: positions in the list to rows of the capture and back.

Rows are all of them from `first` on, those that match a filter, or the marked ones among either; in the order of their
numbers, or sorted. Rows that came after sorting follow the sorted ones.

Invariants:
  * no row is at two positions;
  * without filter, marks and sorting, nothing is kept per row;
  * a position is looked up in constant time; a row in constant time, or logarithmic where rows ascend.
"""

from collections.abc import Callable

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column

_NOWHERE = -1


class RowView:
    """The rows that the list shows."""

    def __init__(self) -> None:
        self._count = 0
        self._first = 0
        """Rows before this one are not shown."""
        self._kept: Column | None = None
        """The rows that match the filter, ascending; None without a filter."""
        self._marked: Int64 | None = None
        """The rows to show of these, ascending; None for all."""
        self._order: Int64 | None = None
        """The sorted rows, in their order."""
        self._shown: Int64 | None = None
        """Rows by position; None if the row is the position."""
        self._positions: Int64 | None = None
        """Positions by row, built when first needed; not needed where rows ascend."""

    def __len__(self) -> int:
        return self._count - self._first if self._shown is None else len(self._shown)

    @property
    def count(self) -> int:
        """Rows of the capture."""
        return self._count

    @property
    def first(self) -> int:
        """The first row of the view: those before it are hidden."""
        return self._first

    @property
    def rows(self) -> Int64:
        """The rows that are shown, ascending."""
        return np.arange(self._first, self._count) if self._shown is None else np.sort(self._shown)

    @property
    def kept(self) -> Int64 | None:
        """The rows that match the filter, ascending; None without a filter."""
        return None if self._kept is None else self._kept.values.copy()

    @property
    def is_filtered(self) -> bool:
        """Whether rows may be hidden."""
        return self._kept is not None or self._marked is not None or self._first > 0

    @property
    def is_sorted(self) -> bool:
        """Whether rows are in another order than that of their numbers."""
        return self._order is not None

    def grow(self, count: int) -> None:
        """Set the number of rows of the capture."""
        if count != self._count:
            self._count = count
            if self._order is not None and self._kept is None:
                self._arrange()

    def begin(self, first: int) -> None:
        """Hide the rows before this one; 0 shows all."""
        self._first = first
        self._arrange()

    def keep(self, rows: Int64 | None) -> None:
        """Show these rows only, ascending; None for all."""
        self._kept = None
        if rows is not None:
            self._kept = Column(np.int64)
            self._kept.extend(rows)
        self._arrange()

    def add(self, rows: Int64) -> None:
        """Add rows that match the filter, ascending."""
        kept = self._kept
        if kept is None or not len(rows):
            return
        if len(kept) and rows[0] <= kept.values[-1]:  # a row that was matched again
            self.keep(np.union1d(kept.values, rows))
            return
        kept.extend(rows)
        self._arrange()

    def correct(self, looked: Int64, fitting: Int64) -> None:
        """Correct the filter's result: of the rows that it matched again, `looked`, ascending, only `fitting` match
        now."""
        if self._kept is not None and len(looked):
            others = np.setdiff1d(self._kept.values, looked, assume_unique=True)
            self.keep(np.union1d(others, fitting))

    def renumber(self, moved: Callable[[Int64], Int64]) -> None:
        """Take new numbers of rows: `moved` returns them. Rows that came since they were sorted are behind the others,
        also those whose new numbers are smaller."""
        if self._order is not None:
            order = moved(self._order)
            count = max(self._count, int(order.max(initial=-1)) + 1)
            self._order = np.concatenate([order, np.setdiff1d(np.arange(count), order, assume_unique=True)])
        self._marked = None if self._marked is None else np.sort(moved(self._marked))
        self.keep(None if self._kept is None else np.sort(moved(self._kept.values)))

    def mark(self, rows: Int64 | None) -> None:
        """Show only these of the rows, ascending; None for all."""
        self._marked = rows
        self._arrange()

    def sort(self, order: Int64 | None) -> None:
        """Show rows in this order of all rows that existed when it was made; None for that of their numbers."""
        self._order = order
        self._arrange()

    def number(self, position: int) -> int:
        """Return the row at a position of the list, both from 0."""
        return position + self._first if self._shown is None else int(self._shown[position])

    def position(self, number: int) -> int | None:
        """Return the position of a row; None if it is not shown."""
        if self._shown is None:
            return number - self._first if self._first <= number < self._count else None
        if self._order is None:
            at = int(np.searchsorted(self._shown, number))
            return at if at < len(self._shown) and self._shown[at] == number else None
        if self._positions is None:
            # a filter may have found rows that came since the list last grew
            self._positions = np.full(max(self._count, int(self._shown.max(initial=-1)) + 1), _NOWHERE, np.int64)
            self._positions[self._shown] = np.arange(len(self._shown))
        at = int(self._positions[number]) if 0 <= number < len(self._positions) else _NOWHERE
        return at if at != _NOWHERE else None

    def nearest(self, number: int) -> int | None:
        """Return the position of a row, or of the row with the nearest number; None if no row is shown."""
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
        """Compute what is shown."""
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
