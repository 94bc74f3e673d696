"""The runs of one direction that are not read yet, as columns. Only positions are held, never bytes."""

from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind

START, ADDRESS, SIZE, TIME, PACKET, KIND = range(6)
"""Rows of the table. The address of a gap is `NOWHERE`."""
_EMPTY: Final[Int64] = np.zeros((6, 0), np.int64)


class PendingRuns:
    """The runs from where a direction was read to. They tile its stream, gaps included."""

    def __init__(self) -> None:
        self._parts: list[Int64] = []

    def __len__(self) -> int:
        return sum(part.shape[1] for part in self._parts)

    def add(self, runs: RunBatch, low: int, high: int) -> None:
        """Append rows `low` to before `high` of a batch, all of this direction."""
        rows = slice(low, high)
        address = np.where(runs.kind[rows] == RunKind.DATA, runs.address[rows], NOWHERE)
        columns = runs.start[rows], address, runs.size[rows], runs.time_ns[rows], runs.packet[rows], runs.kind[rows]
        self._parts.append(np.stack([np.asarray(column, np.int64) for column in columns]))

    def table(self) -> Int64:
        """All runs, `(6, n)`."""
        if len(self._parts) != 1:
            self._parts = [np.concatenate(self._parts, axis=1)] if self._parts else [_EMPTY]
        return self._parts[0]

    def drop_before(self, offset: int) -> None:
        """Drop runs that end at a stream offset or before it."""
        table = self.table()
        first = int(np.searchsorted(table[START] + table[SIZE], offset, side="right"))
        self._parts = [table[:, first:]] if first < table.shape[1] else []

    def held_regions(self) -> Int64:
        """Addresses and sizes of their bytes, `(2, n)`."""
        table = self.table()
        return table[[ADDRESS, SIZE]][:, table[ADDRESS] != NOWHERE]
