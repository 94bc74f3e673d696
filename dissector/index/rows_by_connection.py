"""Which rows of the index are those of a connection, found without a look at all rows for each.

Invariant: sorted once for as long as nothing comes in; four bytes a row.
"""

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import ExchangeTable


class RowsByConnection:
    """The rows of one table by their connection. What came in since is seen when `generation` has changed."""

    def __init__(self, table: ExchangeTable) -> None:
        self._table = table
        self._generation = -1
        self._order = np.empty(0, np.int32)
        self._starts = np.empty(0, np.int64)

    def rows(self, connection: int, generation: int) -> Int64:
        """The rows of a connection, ascending."""
        if generation != self._generation:
            self._generation = generation
            rows = self._table.rows()
            connections = self._table.connection.values[rows]
            self._order = rows[np.argsort(connections, kind="stable")].astype(np.int32)
            self._starts = np.concatenate(([0], np.cumsum(np.bincount(connections))))
        if connection + 1 >= len(self._starts):
            return np.empty(0, np.int64)
        start, stop = self._starts[connection : connection + 2].tolist()
        return self._order[start:stop].astype(np.int64)
