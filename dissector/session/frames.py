"""All frames of a capture, as columns: where each is, when it began. Bytes stay in the store until somebody looks.

A frame in one piece costs 40 bytes here; the pieces of the others (frames across segments) stand in columns beside.
"""

from collections.abc import Iterator

import numpy as np

from dissector.columns import Column
from dissector.events import NOWHERE, FrameBatch, Int64
from dissector.store import Store


class FrameTable:
    """Growing columns of frames, gaps and unparsed bytes. A row number, once given, stays."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.direction = Column(np.int32)
        self.start = Column(np.int64)
        self.size = Column(np.int32)
        self.time_ns = Column(np.int64)
        self.packet = Column(np.int64)
        self._address = Column(np.int64)
        """Of a frame in one piece; else -2 - its first row in the piece columns."""
        self._piece_address = Column(np.int64)
        self._piece_size = Column(np.int64)

    def __len__(self) -> int:
        return len(self.direction)

    def extend(self, batch: FrameBatch) -> int:
        """Append a batch; the row number of its first row."""
        first = len(self)
        self.direction.extend(batch.direction)
        self.start.extend(batch.start)
        self.size.extend(np.minimum(batch.size, 2**31 - 1))
        self.time_ns.extend(batch.time_ns)
        self.packet.extend(batch.packet)
        counts = np.diff(batch.piece)
        address = batch.piece_address[np.minimum(batch.piece[:-1], len(batch.piece_address) - 1)]
        several = counts != 1
        rows = np.repeat(several, counts)
        firsts = np.cumsum(np.where(several, counts, 0)) - np.where(several, counts, 0)
        address = np.where(several, -2 - (firsts + len(self._piece_address)), address)
        self._address.extend(address)
        self._piece_address.extend(batch.piece_address[rows])
        self._piece_size.extend(batch.piece_size[rows])
        return first

    def contiguous(self, rows: Int64) -> Int64:
        """The addresses of rows in one piece; a negative number for the others."""
        return self._address.values[rows]

    def _pieces(self, row: int) -> Iterator[tuple[int, int]]:
        """Piece by piece: who wants the beginning does not pay for the rest."""
        address, size = int(self._address.values[row]), int(self.size.values[row])
        if address >= NOWHERE:
            yield address, size
            return
        at = -2 - address
        while size > 0:
            piece = int(self._piece_size.values[at])
            yield int(self._piece_address.values[at]), piece
            size -= piece
            at += 1

    def captured(self, row: int) -> int:
        """How many bytes of a frame the capture has."""
        return sum(size for address, size in self._pieces(row) if address != NOWHERE)

    def read(self, row: int, most: int | None = None) -> tuple[bytes, int]:
        """A frame's captured bytes, and how many of them come before the first hole. `most` bounds what is read."""
        parts: list[bytes] = []
        whole: int | None = None
        room = most if most is not None else 1 << 62
        have = 0
        for address, size in self._pieces(row):
            if room <= 0:
                break
            if address == NOWHERE:
                whole = have if whole is None else whole
                continue
            parts.append(bytes(self._store.read(address, min(size, room))))
            have += len(parts[-1])
            room -= len(parts[-1])
        data = b"".join(parts)
        return data, len(data) if whole is None else whole
