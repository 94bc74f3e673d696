"""The values that pass between stages. Columns, not objects: one row of numpy arrays per packet, segment, run, frame.

    capture -> PacketBatch -> transport -> RunBatch -> framing -> FrameBatch -> session

Conventions, true of every batch:
  * all columns of a batch have the same length `(n,)`; rows are immutable once handed on;
  * times are int64 nanoseconds since 1970; sizes are bytes;
  * an `address` is a position in the capture's `Store`; bytes are located, never copied;
  * a `direction` is `2 * connection + side`; side 0 is the end that sent the connection's first packet in the capture;
    who is the client is the session's business;
  * a packet number counts from 0 over the whole capture.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from dissector.core.arrays import Int64, UInt8, UInt16, UInt32

NOWHERE: Final = -1
"""The address of bytes that the capture does not have."""

NEVER: Final = 1 << 62
"""The time of what did not happen, nanoseconds."""


@dataclass(frozen=True, slots=True)
class PacketBatch:
    """Up to `limits.BATCH_PACKETS` packets as they stand in one region of the store."""

    data: UInt8
    """The whole region, usually a mapped file: `(bytes,)`."""
    base: int
    """The store's address of `data[0]`."""
    number: Int64
    """Packet numbers, ascending; of a part of a capture some are left out."""
    time_ns: Int64
    offset: Int64
    """Where the packet's first captured byte stands in `data`."""
    captured: Int64
    """Bytes that the capture has of it."""
    length: Int64
    """Bytes that it had on the wire."""
    link_type: UInt16
    """LINKTYPE_ number of the interface that it was seen on."""
    comments: Mapping[int, str] = field(default_factory=dict)
    """What somebody wrote on packets, by row."""

    def __len__(self) -> int:
        return len(self.offset)


@dataclass(frozen=True, slots=True)
class SegmentBatch:
    """TCP segments, in capture order."""

    packet: Int64
    time_ns: Int64
    direction: Int64
    seq: UInt32
    ack: UInt32
    flags: UInt8
    """TCP flags, FIN 1, SYN 2, RST 4, PSH 8, ACK 16."""
    address: Int64
    """Of the payload's first byte."""
    size: Int64
    """Payload bytes captured."""
    missing: Int64
    """Payload bytes that were sent after these and cut off by the snap length."""

    def __len__(self) -> int:
        return len(self.packet)


class RunKind(IntEnum):
    """What a row of a `RunBatch` is: bytes, or the reason why there are none."""

    DATA = 0
    LOST = 1
    TRUNCATED = 2
    """Cut off by the snap length."""


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Contiguous pieces of byte streams: each direction's rows are in stream order and tile it without overlap.

    A gap stands in band, as a row with address `NOWHERE`. Stream offsets count from 0 at the first byte after SYN, or
    at the first byte seen where the capture began in the middle.
    """

    direction: Int64
    kind: UInt8
    start: Int64
    """Stream offset of the first byte."""
    address: Int64
    size: Int64
    time_ns: Int64
    """Of the packet that made it readable in order, or that showed that it is missing."""
    packet: Int64

    def __len__(self) -> int:
        return len(self.direction)


class FrameKind(IntEnum):
    """What a row of a `FrameBatch` is."""

    FRAME = 0
    GAP = 1
    """Bytes that the capture lacks, outside of any frame that is known."""
    UNPARSED = 2
    """Bytes that were skipped to find the next frame, or the rest of a stream that ended inside a size prefix."""


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Size-prefixed frames (and, in band, what is none), each direction's rows in stream order."""

    direction: Int64
    kind: UInt8
    start: Int64
    """Stream offset of the size prefix."""
    size: Int64
    """Bytes on the wire, the 4-byte prefix included."""
    time_ns: Int64
    """Of the packet with its first byte."""
    packet: Int64
    piece: Int64
    """Row of its first piece in `piece_address`; its last one is before the next row's first: `(n + 1,)`."""
    piece_address: Int64
    """`NOWHERE` for a piece that the capture lacks."""
    piece_size: Int64

    def __len__(self) -> int:
        return len(self.direction)
