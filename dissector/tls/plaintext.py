"""Decrypted bytes, in a region of the store, and the records that they were in.

Stream offsets of a decrypted direction count plaintext. `in_tcp` says where a stretch of it was in the TCP stream,
`ciphertext` where the bytes of that are in the store.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column
from dissector.core.spool import Spool
from dissector.core.store import Store

_LONGEST: Final = 1 << 44
"""Longer than any stream of a capture."""


class StreamTable:
    """Rows about stretches of streams, as columns of int64 that another thread reads while they grow: direction, stream
    offset and size, then others.

    Rows of one direction are added in stream order. Those of several are mixed, so a look-up reads the column of
    directions; it sorts nothing, as a screen asks while rows are added."""

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


class Plaintext:
    """The decrypted bytes of a capture: at most `most` of them."""

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most
        self._spool: Spool | None = None
        self.records = StreamTable(5)
        """Direction, stream offset and size of the plaintext, stream offset and size of the record in TCP."""
        self.ciphertext = StreamTable(5)
        """Direction, stream offset in TCP, size, address and packet of the runs of decrypted connections."""
        self._sorted: Int64 | None = None

    def append(self, texts: Sequence[bytes]) -> int:
        """Keep plaintext, one behind the other; return the address of the first byte. Raises `SpoolFullError`."""
        if self._spool is None:
            self._spool = Spool(self._store, self._most)
        address = self._spool.base + self._spool.size
        self._spool.append(b"".join(texts))
        return address

    def add_records(self, records: Int64) -> None:
        """Add records, `(5, n)`: a row for each column."""
        self._sorted = None
        self.records.extend(records)

    def in_tcp(self, direction: Int64, start: Int64, size: Int64) -> tuple[Int64, Int64]:
        """Return where stretches of streams are in TCP: offsets and sizes, `(n,)` each, from the first byte of their
        first record to the last byte of their last. Directions that are not decrypted stay as they are."""
        if not len(self.records):
            return start, size
        if self._sorted is None:
            table = np.stack(self.records.values())
            self._sorted = table[:, np.lexsort((table[1], table[0]))]
        of, plain, _, record, record_size = self._sorted
        keys = of * _LONGEST + plain
        begins = direction.astype(np.int64) * _LONGEST + start  # columns of directions are narrower
        first = np.searchsorted(keys, begins, side="right") - 1
        last = np.searchsorted(keys, begins + np.maximum(size, 1), side="left") - 1
        is_decrypted = (first >= 0) & (of[np.maximum(first, 0)] == direction)
        first, last = np.maximum(first, 0), np.maximum(last, 0)
        begin = np.where(is_decrypted, record[first], start)
        end = np.where(is_decrypted, record[last] + record_size[last], start + size)
        return begin, end - begin

    def without_plaintext(self, direction: int) -> list[tuple[int, int]]:
        """Return offset and size in TCP of what a decrypted direction has besides application data: its handshakes and
        alerts, and records that could not be opened."""
        records, runs = (each.overlapping(direction, 0, _LONGEST) for each in (self.records, self.ciphertext))
        starts, ends = records[3], records[3] + records[4]
        stops = np.append(starts, (runs[1] + runs[2])[-1:] if runs.shape[1] else ends[-1:])
        begins = np.append(0, ends)[: len(stops)]
        pairs = zip(begins.tolist(), stops.tolist(), strict=True)
        return [(begin, stop - begin) for begin, stop in pairs if stop > begin]

    def close(self) -> None:
        """Close the temporary file."""
        if self._spool is not None:
            self._spool.close()

    def __getstate__(self) -> dict[str, Any]:
        # A checkpoint has its bytes in an excerpt, and what was encrypted in none.
        return self.__dict__ | {"_spool": None, "_sorted": None, "ciphertext": StreamTable(5)}
