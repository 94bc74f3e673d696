"""Rows about stretches of streams, such as records of a direction: columns that another thread reads while they grow.

Invariant: rows of one direction are added in stream order. Those of several are mixed, so a look-up reads the column of
directions; it sorts nothing, as a screen asks while rows are added.
"""

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column


class StreamTable:
    """Columns of int64: direction, stream offset and size, then others."""

    def __init__(self, columns: int) -> None:
        self._columns = tuple(Column(np.int64) for _ in range(columns))
        self._rows = 0
        """Rows that all columns have: the others are being added."""

    def __len__(self) -> int:
        return self._rows

    def extend(self, rows: Int64) -> None:
        """Add rows, `(columns, n)`."""
        for column, values in zip(self._columns, rows, strict=True):
            column.extend(values)
        self._rows += rows.shape[1]

    def values(self) -> list[Int64]:
        """The columns, `(n,)` each."""
        rows = self._rows
        return [column.values[:rows] for column in self._columns]

    def overlapping(self, direction: int, start: int, size: int) -> Int64:
        """Return the rows of a direction that have bytes of a stretch, `(columns, n)`, in stream order."""
        columns = self.values()
        rows = np.flatnonzero(columns[0] == direction)
        starts = columns[1][rows]
        first = np.searchsorted(starts + columns[2][rows], start, side="right")
        stop = np.searchsorted(starts, start + size, side="left")
        return np.stack([column[rows[first:stop]] for column in columns])
