"""The batches that pass between stages. Columns, not objects: one row of numpy arrays per packet, segment, run, frame.

    capture -> PacketBatch -> transport -> RunBatch -> framing -> FrameBatch -> index

Conventions, true of every batch:
  * all columns of a batch have the same length `(n,)`; rows are immutable once passed on;
  * times are int64 nanoseconds since 1970; sizes are bytes;
  * an `address` is a position in the capture's `Store`; bytes are located, never copied;
  * a `direction` is `2 * connection + side`; side 0 is the end that sent the connection's first packet in the capture;
    `detection` finds out which one is the client;
  * a packet number counts from 0 over the whole capture.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt16, UInt32

NO_SCALE: Final = -1
"""The scale of the windows of a SYN that offers none, and of a segment that is no SYN."""
NOWHERE: Final = -1
"""The address of bytes that the capture does not have."""

NEVER: Final = 1 << 62
"""A time, or a packet number, behind all others: of what did not happen."""


@dataclass(frozen=True, slots=True)
class PacketBatch:
    """Up to `limits.BATCH_PACKETS` packets in one region of the store."""

    data: UInt8
    """The whole region, usually a mapped file: `(bytes,)`."""
    base: int
    """The store's address of `data[0]`."""
    number: Int64
    """Packet numbers, ascending; a capture partition does not have all."""
    time_ns: Int64
    offset: Int64
    """The offset of the packet's first captured byte in `data`."""
    captured: Int64
    """Bytes captured."""
    length: Int64
    """Bytes on the wire."""
    link_type: UInt16
    """LINKTYPE_ number of the interface."""
    comments: Mapping[int, str] = field(default_factory=dict)
    """Comments on packets, by row."""

    def __len__(self) -> int:
        return len(self.offset)


def join(parts: Sequence[PacketBatch]) -> PacketBatch:
    """Return consecutive batches of one region, at least one, as one."""
    if len(parts) == 1:
        return parts[0]
    columns = ("number", "time_ns", "offset", "captured", "length", "link_type")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in columns}
    comments: dict[int, str] = {}
    rows = 0
    for part in parts:
        comments |= {rows + row: text for row, text in part.comments.items()}
        rows += len(part)
    return PacketBatch(parts[-1].data, parts[0].base, **joined, comments=comments)


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
    """Payload bytes behind these that the snap length cut off."""
    window: Int64
    """As the header has it, without its scale."""
    scale: Int64
    """Of a SYN, by how many bits the windows of its sender are to be shifted; `NO_SCALE` where it offers no scale."""

    def __len__(self) -> int:
        return len(self.packet)


class RunKind(IntEnum):
    """The kind of a row of a `RunBatch`: bytes, or the reason why there are none."""

    DATA = 0
    LOST = 1
    TRUNCATED = 2
    """Cut off by the snap length."""


@dataclass(frozen=True, slots=True)
class RunBatch:
    """Contiguous pieces of byte streams: each direction's rows are in stream order and tile it without overlap.

    A gap is in band, as a row with address `NOWHERE`. Stream offsets count from 0 at the first byte after SYN, or
    at the first byte seen where the capture began in the middle.
    """

    direction: Int64
    kind: UInt8
    start: Int64
    """Stream offset of the first byte."""
    address: Int64
    size: Int64
    time_ns: Int64
    """Of the packet that made the bytes contiguous, or that showed that they are missing."""
    packet: Int64

    def __len__(self) -> int:
        return len(self.direction)


class FrameKind(IntEnum):
    """The kind of a row of a `FrameBatch`."""

    FRAME = 0
    GAP = 1
    """Missing bytes, outside of any known frame."""
    UNPARSED = 2
    """Bytes that were skipped to find the next frame, or the rest of a stream that ended inside a size prefix."""


@dataclass(frozen=True, slots=True)
class FrameBatch:
    """Size-prefixed frames and, in band, gaps and unparsed bytes; each direction's rows in stream order."""

    direction: Int64
    kind: UInt8
    start: Int64
    """Stream offset of the size prefix."""
    size: Int64
    """Bytes on the wire, the 4-byte prefix included."""
    time_ns: Int64
    """Of the packet with its first byte."""
    end_ns: Int64
    """Of the packet that completed it: the time at which its last byte was there."""
    packet: Int64
    piece: Int64
    """Index of each row's first piece in `piece_address`, and the end of the last one: `(n + 1,)`."""
    piece_address: Int64
    """`NOWHERE` for a missing piece."""
    piece_size: Int64
    is_cut: Bool
    """Whether bytes of it were cut off from their packets, by the snap length or the end of the file."""

    def __len__(self) -> int:
        return len(self.direction)
