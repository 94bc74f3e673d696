"""The runs of one direction that are not read yet, as columns. Only positions are held, never bytes."""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind
from dissector.core.store import Store

START, ADDRESS, SIZE, TIME, PACKET, KIND = range(6)
"""Rows of the table. The address of a gap is `NOWHERE`."""
_EMPTY: Final[Int64] = np.zeros((6, 0), np.int64)


class Stretch(NamedTuple):
    """What a stream has from an offset on: bytes up to the next gap, or a gap."""

    data: bytes
    missing: int
    is_last: bool
    """Whether nothing is behind it yet."""


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

    def stretch(self, at: int, store: Store) -> Stretch | None:
        """Return what is there from a stream offset on; None if it is nothing yet."""
        table = self.table()
        starts, ends = table[START], table[START] + table[SIZE]
        first = int(ends.searchsorted(at, side="right"))
        if first == table.shape[1]:
            return None
        if table[ADDRESS, first] == NOWHERE:
            return Stretch(b"", int(ends[first]) - at, first + 1 == table.shape[1])
        gaps = (table[ADDRESS, first:] == NOWHERE).nonzero()[0]
        stop = first + int(gaps[0]) if len(gaps) else table.shape[1]
        skipped = at - int(starts[first])
        addresses, sizes = table[ADDRESS, first:stop].copy(), table[SIZE, first:stop].copy()
        addresses[0] += skipped
        sizes[0] -= skipped
        return Stretch(store.join(addresses, sizes), 0, stop == table.shape[1])

    def drop_before(self, offset: int) -> None:
        """Drop runs that end at a stream offset or before it."""
        table = self.table()
        first = int(np.searchsorted(table[START] + table[SIZE], offset, side="right"))
        self._parts = [table[:, first:]] if first < table.shape[1] else []

    def held_regions(self) -> Int64:
        """Addresses and sizes of their bytes, `(2, n)`."""
        table = self.table()
        return table[[ADDRESS, SIZE]][:, table[ADDRESS] != NOWHERE]
