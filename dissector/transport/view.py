"""Header fields of a whole batch of packets, read at once, never past what was captured of a packet."""

import numpy as np
import numpy.typing as npt

from dissector.events import PacketBatch, UInt8

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class PacketView:
    """Rows of a batch with their bytes. Places are absolute in `data`; what lies past it reads as its last byte."""

    def __init__(self, data: UInt8, base: int, rows: Ints, offset: Ints, captured: Ints, length: Ints) -> None:
        self._data = data
        self.base = base
        """The store's address of `data[0]`."""
        self.rows = rows
        self.offset = offset
        self.end = offset + captured
        """Past the last captured byte."""
        self.length = length

    @classmethod
    def of(cls, packets: PacketBatch, rows: Ints) -> "PacketView":
        """Some rows of a batch."""
        columns = (packets.offset[rows], packets.captured[rows], packets.length[rows])
        return cls(packets.data, packets.base, rows, *columns)

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
        captured = (self.end - self.offset)[keep]
        return PacketView(self._data, self.base, self.rows[keep], self.offset[keep], captured, self.length[keep])
