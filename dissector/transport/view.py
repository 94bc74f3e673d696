"""Header fields of a whole batch of packets, read at once, never past what was captured of a packet."""

import numpy as np
import numpy.typing as npt

from dissector.events import PacketBatch

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class PacketView:
    """Rows of a batch with their bytes. Places are absolute in `data`; what lies past it reads as its last byte."""

    def __init__(self, packets: PacketBatch, rows: Ints) -> None:
        self._data = packets.data
        self.rows = rows
        self.offset = packets.offset[rows]
        self.end = self.offset + packets.captured[rows]
        """Past the last captured byte."""
        self.length = packets.length[rows]

    def u8(self, at: Ints) -> Ints:
        return self._data.take(at, mode="clip").astype(np.int64)

    def u16(self, at: Ints) -> Ints:
        """Big-endian, as all of IP is."""
        return (self.u8(at) << 8) | self.u8(at + 1)

    def u32(self, at: Ints) -> Ints:
        return (self.u16(at) << 16) | self.u16(at + 2)

    def raw(self, at: Ints, width: int) -> npt.NDArray[np.uint8]:
        """`(n, width)` bytes."""
        return self._data.take(at[:, None] + np.arange(width), mode="clip")

    def where(self, keep: Flags) -> "PacketView":
        """Some of the rows."""
        view = object.__new__(PacketView)
        view._data = self._data
        view.rows, view.offset = self.rows[keep], self.offset[keep]
        view.end, view.length = self.end[keep], self.length[keep]
        return view
