"""Headers of a protocol in many packets at once, as columns; and the types in which a header says what it leads to.

A protocol gives a number and the list that the number is from, as headers do. It names the next protocol only where
there is no number.

Invariants:
  * nothing is read past the captured bytes of a packet: callers check `room` before they read a header;
  * rows ascend: they are packets of one batch, in capture order.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.batches import PacketBatch

NOT_IP: Final = "not IP"
NOT_TCP: Final = "not TCP"
ORDINARY: Final = frozenset({NOT_IP, NOT_TCP})
"""Reasons to ignore a packet that cannot hide Kafka."""
ENCRYPTED: Final = "encrypted tunnel"
NOTHING: Final = 0xFFFF
"""A number without a protocol in any list."""


class HeaderColumns:
    """The first bytes of a header, `(n, size)`. Fields are named by their offset, and returned as int64, `(n,)`."""

    def __init__(self, data: UInt8) -> None:
        self._data = data

    def u8(self, at: int) -> Int64:
        return self._data[:, at].astype(np.int64)

    def u16(self, at: int) -> Int64:
        """Big-endian, as nearly all are."""
        return self._field(at, ">u2")

    def u32(self, at: int) -> Int64:
        return self._field(at, ">u4")

    def little16(self, at: int) -> Int64:
        return self._field(at, "<u2")

    def small16(self, at: int) -> Int64:
        """A number below 256 in the byte order of the host that wrote it: the smaller of both readings."""
        return np.minimum(self._field(at, ">u2"), self._field(at, "<u2"))

    def small32(self, at: int) -> Int64:
        """A number below 65,536 in the byte order of the host that wrote it."""
        return np.minimum(self._field(at, ">u4"), self._field(at, "<u4"))

    def raw(self, at: int, width: int) -> UInt8:
        """`(n, width)` bytes."""
        return self._data[:, at : at + width]

    def _field(self, at: int, kind: str) -> Int64:
        width = np.dtype(kind).itemsize
        return self._data[:, at : at + width].view(kind)[:, 0].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Layer:
    """A protocol in the packets `rows` of a batch. Offsets are absolute in `data`; all columns are `(n,)`."""

    data: UInt8
    base: int
    """The store's address of `data[0]`; `NOWHERE` while it is not in the store."""
    rows: Int64
    at: Int64
    """Where the protocol's header begins."""
    captured: Int64
    """Past the last captured byte of the packet."""
    end: Int64
    """Past the protocol's last byte, by the enclosing header; past `captured` where the packet was cut."""
    ip: Int64
    """Where the innermost IP header so far begins; meaningless before the first one."""
    depth: int = 0
    """IP headers so far; the same for all rows."""

    @classmethod
    def of(cls, packets: PacketBatch) -> "Layer":
        """Return the link layer of a batch."""
        at = packets.offset
        rows = np.arange(len(packets), dtype=np.int64)
        return cls(packets.data, packets.base, rows, at, at + packets.captured, at + packets.length, at)

    @classmethod
    def joined(cls, layers: "list[Layer]") -> "Layer":
        """Merge layers of the same data and depth."""
        if len(layers) == 1:
            return layers[0]
        order = np.argsort(np.concatenate([layer.rows for layer in layers]), kind="stable")
        columns = [(layer.rows, layer.at, layer.captured, layer.end, layer.ip) for layer in layers]
        rows, at, captured, end, ip = (np.concatenate(column)[order] for column in zip(*columns, strict=True))
        return cls(layers[0].data, layers[0].base, rows, at, captured, end, ip, layers[0].depth)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def room(self) -> Int64:
        """Bytes that can be read from `at` on."""
        return np.minimum(self.captured, self.end) - self.at

    def header(self, size: int) -> HeaderColumns:
        """The next `size` bytes; there is room for them in every row."""
        return HeaderColumns(self._bytes(self.at, size))

    def ip_header(self, size: int) -> HeaderColumns:
        """The first `size` bytes of the innermost IP header."""
        return HeaderColumns(self._bytes(self.ip, size))

    def _bytes(self, at: Int64, size: int) -> UInt8:
        # A view with an item at every offset, overlapping the next one: so the bytes of one packet are one copy.
        windows = np.ndarray((len(self.data) - size + 1,), f"V{size}", self.data.data, strides=(1,))
        return windows[at].view(np.uint8).reshape(-1, size)

    def after(self, size: int | Int64, end: Int64 | None = None) -> "Layer":
        """Return what follows a header of this size. It ends at `end`, or where this layer does."""
        return replace(self, at=self.at + size, end=self.end if end is None else end)

    def where(self, keep: Bool) -> "Layer":
        """Return some of the rows."""
        if keep.all():
            return self
        return Layer(
            self.data, self.base, self.rows[keep], self.at[keep], self.captured[keep], self.end[keep], self.ip[keep],
            self.depth,
        )  # fmt: skip

    def split(self, good: Bool) -> "tuple[Layer, Layer]":
        """Return the good rows, and the others."""
        return self.where(good), self.where(~good)


class ProtocolNumbers(Enum):
    """Lists of numbers that identify the next protocol. All have 16 bits."""

    LINK_TYPE = auto()
    """LINKTYPE_ values of the tcpdump group."""
    ETHERTYPE = auto()
    """IEEE 802; up to 1,500 it is a length, and LLC follows."""
    IP_PROTOCOL = auto()
    IP_FRAGMENT = auto()
    """IP protocols once more, of an IPv4 packet that is a fragment."""
    NEXT_HEADER = auto()
    """IP protocols and the extension headers of IPv6."""
    UDP_PORT = auto()


class Terminal(Enum):
    """Where parsing of headers ends."""

    TCP = auto()
    FRAGMENT = auto()
    """Handled one by one: of IPv4 from their payload on, of IPv6 from their fragment header on."""


class NextHeader(NamedTuple):
    """Rows that continue in the same way: by number, with a protocol, at a terminal, or ignored for a reason."""

    layer: Layer
    to: "ProtocolNumbers | Next"
    number: Int64 | int = 0

    @property
    def numbers(self) -> Int64:
        """The number of each row."""
        return np.broadcast_to(np.asarray(self.number), len(self.layer))


class HeaderProtocol(NamedTuple):
    """How to parse one header."""

    name: str
    size: int
    """Bytes of it that `read` gets; packets with less room are not passed to it."""
    read: Callable[[Layer, HeaderColumns], Iterable[NextHeader]]
    runt: str = ""
    """Why a packet that was sent with less than `size` bytes is ignored; empty where that is damage."""


Next = HeaderProtocol | Terminal | str
"""A string is the reason why packets are ignored."""
