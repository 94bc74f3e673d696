"""The rows of each connection, without a scan of all rows for each.

Invariant: rows are sorted once, and again only when new ones have come; it costs four bytes for each row.
"""

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import ExchangeTable


class RowsByConnection:
    """The rows of a table by connection. They are sorted again when `generation` has changed."""

    def __init__(self, table: ExchangeTable) -> None:
        self._table = table
        self._generation = -1
        self._order = np.empty(0, np.int32)
        self._starts = np.empty(0, np.int64)

    def rows(self, connection: int, generation: int) -> Int64:
        """Return the rows of a connection, ascending."""
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
