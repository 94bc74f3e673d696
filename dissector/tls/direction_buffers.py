"""What waits in one direction: runs that are not read yet, of which positions alone are held; plaintext and gaps that
were read and not taken yet."""

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


class Pieces:
    """Plaintext of records and gaps with the packets they ended in, in stream order, as lists of equal length."""

    def __init__(self, plain_start: int = 0) -> None:
        self.plain_end = plain_start
        """Bytes of plaintext so far, gaps and what was taken before included."""
        self.texts: list[bytes | None] = []
        """None for a gap."""
        self.sizes: list[int] = []
        self.records: list[int] = []
        """Offset of each record in the TCP stream, and where it ends."""
        self.ends: list[int] = []
        self._seen: list[Int64] = []
        self._noted = 0

    def __len__(self) -> int:
        return len(self.texts)

    def add(self, text: bytes, record: int, end: int) -> None:
        """Append the plaintext of a record, if it has any."""
        if text:
            self._append(text, len(text), record, end)

    def add_gap(self, size: int, offset: int) -> None:
        """Append missing plaintext, if it has a size, that ends at an offset of the TCP stream."""
        if size > 0:
            self._append(None, size, offset, offset)

    def extend(self, texts: list[bytes], records: list[int], ends: list[int]) -> None:
        """Append the plaintext of many records."""
        sizes = list(map(len, texts))
        self.plain_end += sum(sizes)
        self.texts += texts
        self.sizes += sizes
        self.records += records
        self.ends += ends

    def _append(self, text: bytes | None, size: int, record: int, end: int) -> None:
        self.plain_end += size
        self.texts.append(text)
        self.sizes.append(size)
        self.records.append(record)
        self.ends.append(end)

    def note_packets(self, table: Int64, last_seen: Int64) -> None:
        """Find the packet with the last byte of each piece that is new, in the table of runs that it was read from.
        `last_seen` are time and packet of what is behind them, `(2, 1)`."""
        ends = np.array(self.ends[self._noted :], np.int64)
        self._noted = len(self.ends)
        if len(ends):
            rows = np.searchsorted(table[START] + table[SIZE], ends - 1, side="right")
            self._seen.append(np.append(table[[TIME, PACKET]], last_seen, axis=1)[:, rows])

    @property
    def seen(self) -> Int64:
        """Time and packet of each piece, `(2, n)`."""
        return np.concatenate(self._seen, axis=1)
