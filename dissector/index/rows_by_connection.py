"""The rows of each connection, without a scan of all rows for each.

Invariant: rows are sorted once, and again only when new ones have come; it costs four bytes for each row.
"""

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.grouping import edges
from dissector.index.exchange_table import ExchangeTable


class RowsByConnection:
    """The rows of a table by connection. They are sorted again when `generation` has changed."""

    def __init__(self, table: ExchangeTable) -> None:
        self._table = table
        self._generation = -1
        self._order = np.empty(0, np.int32)
        self._starts = np.empty(0, np.int64)
        self._repeated: dict[int, frozenset[int]] = {}

    def rows(self, connection: int, generation: int) -> Int64:
        """Return the rows of a connection, ascending."""
        if generation != self._generation:
            self._generation = generation
            self._repeated.clear()
            rows = self._table.rows()
            connections = self._table.connection.values[rows]
            self._order = rows[np.argsort(connections, kind="stable")].astype(np.int32)
            self._starts = edges(np.bincount(connections))
        if connection + 1 >= len(self._starts):
            return np.empty(0, np.int64)
        start, stop = self._starts[connection : connection + 2].tolist()
        return self._order[start:stop].astype(np.int64)

    def repeated_ids(self, connection: int, generation: int) -> frozenset[int]:
        """Return the correlation ids of more than one request of a connection."""
        rows = self.rows(connection, generation)
        if connection not in self._repeated:
            table = self._table
            has_request = table.has_request(rows)
            ids, counts = np.unique(table.correlation_id.values[rows[has_request]], return_counts=True)
            self._repeated[connection] = frozenset(ids[counts > 1].tolist())
        return self._repeated[connection]
