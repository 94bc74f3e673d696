"""What was read of a direction and not taken yet: plaintext of records, and gaps, with the packets they ended in."""

import numpy as np

from dissector.core.arrays import Int64
from dissector.tls.pending_runs import PACKET, SIZE, START, TIME


class Pieces:
    """Plaintext of records and gaps, in stream order, as lists of equal length."""

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
