"""The rows of single connections, for detectors that look at what else was said on one.

Invariants:
  * those of a connection are in the order of its streams, and all that the index has when they are first asked for in a
    step of the examination;
  * columns are made for all connections that are looked at together, and kept for so many rows, and one connection.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.findings.framework.examination_queue import in_start_order
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.index.exchange_table import RowsByConnection
from dissector.index.indexer import Indexer

MOST_ROWS: Final = 1 << 14
"""Rows that are kept during a step."""


class ConnectionRows:
    """Finds the rows of connections."""

    def __init__(self, index: Indexer, columns: Callable[[Int64], ExaminedRows]) -> None:
        """`columns` makes columns of rows of the index."""
        self._index = index
        self._columns = columns
        self._by_connection = RowsByConnection(index.table)
        self._kept: dict[int, ExaminedRows] = {}
        self._room = MOST_ROWS

    def forget(self) -> None:
        """Keep nothing beyond a step."""
        self._kept.clear()
        self._room = MOST_ROWS

    def in_order(self, connection: int) -> Int64:
        """Return the numbers of the rows of a connection so far."""
        rows = self._by_connection.rows(connection, self._index.generation)
        return in_start_order(self._index, rows)

    def of(self, connection: int) -> ExaminedRows:
        """Return them with their columns."""
        if connection not in self._kept:
            if self._room <= 0:
                self.forget()
            self._keep({connection: self.in_order(connection)})
        return self._kept[connection]

    def look_at(self, connections: Int64) -> None:
        """Read the rows of several connections together, as long as there is room for them."""
        parts: dict[int, Int64] = {}
        room = self._room
        for connection in connections.tolist():
            if room <= 0:
                break
            parts[connection] = self.in_order(connection)
            room -= len(parts[connection])
        if parts:
            self._keep(parts)

    def _keep(self, parts: dict[int, Int64]) -> None:
        rows, first = self._columns(np.concatenate(list(parts.values()))), 0
        for connection, part in parts.items():
            self._kept[connection] = rows.where(slice(first, first + len(part)))
            first += len(part)
        self._room -= first
