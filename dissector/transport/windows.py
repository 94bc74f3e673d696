"""Full windows: data that ends exactly where the receiver's window does, so that the sender has to wait.

A window counts from the last acknowledgement of the receiver, in units that both SYNs agreed on: without both of them
in the capture nothing is known. It is what Wireshark calls "TCP Window Full".

Invariant: any cutting of the capture into batches gives the same counts.
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.batches import NO_SCALE, SegmentBatch
from dissector.core.columns import Column
from dissector.transport.connection_table import ACK, RST, SYN

MASK: Final = 0xFFFFFFFF
UNKNOWN: Final = -2
"""The scale of an end whose SYN was not seen."""
NOTHING: Final = -1


class FullWindows:
    """Counts by direction: segments that filled the window of the other one."""

    def __init__(self) -> None:
        self._counts = Column(np.int32)
        self._scale = Column(np.int8, UNKNOWN)
        self._limit = Column(np.int64, NOTHING)
        """By direction, the sequence number up to which it lets the other one send."""

    def of(self, direction: int) -> int:
        """The segments of a direction that filled the other end's window."""
        return int(self._counts.values[direction])

    def feed(self, segments: SegmentBatch, size: Int64, order: Int64) -> None:
        """Take segments, in capture order; `size` is that of their payload, `order` is stable and by connection."""
        for column in (self._counts, self._scale, self._limit):
            column.grow((int(segments.direction.max()) | 1) + 1)
        direction, flags = segments.direction[order], segments.flags[order]
        announces: Bool = (flags & (ACK | RST) == ACK) & self._knows_scales(direction, flags, segments.scale[order])
        limit = self._limits(segments, order, direction, flags)
        end = (segments.seq[order].astype(np.int64) + size[order]) & MASK
        carries = (size[order] > 0) & (flags & (SYN | RST) == 0)
        places = np.arange(len(order))
        firsts = np.flatnonzero(np.diff(direction >> 1, prepend=NOTHING))
        begins = np.repeat(firsts, np.diff(firsts, append=len(order)))
        lasts = np.append(firsts[1:], len(order)) - 1
        for side in (0, 1):
            last = np.maximum.accumulate(np.where(announces & (direction & 1 == side), places, NOTHING))
            sent = np.flatnonzero(carries & (direction & 1 != side))
            allowed = np.where(last[sent] >= begins[sent], limit[last[sent]], self._limit.values[direction[sent] ^ 1])
            np.add.at(self._counts.values, direction[sent[end[sent] == allowed]], 1)
            new = lasts[last[lasts] >= firsts]
            self._limit.values[direction[new] & ~1 | side] = limit[last[new]]

    def _knows_scales(self, direction: Int64, flags: UInt8, scale: Int64) -> Bool:
        """Take the scales of new SYNs, and return which segments come after those of both ends."""
        known_from = np.where(self._scale.values == UNKNOWN, len(direction), NOTHING)
        syns = np.flatnonzero((flags & (SYN | RST) == SYN) & (self._scale.values[direction] == UNKNOWN))
        of, first = np.unique(direction[syns], return_index=True)
        self._scale.values[of] = scale[syns[first]]
        known_from[of] = syns[first]
        known: Bool = np.arange(len(direction)) >= np.maximum(known_from[direction], known_from[direction ^ 1])
        return known

    def _limits(self, segments: SegmentBatch, order: Int64, direction: Int64, flags: UInt8) -> Int64:
        """Return up to where each segment lets the other end send. The windows of SYNs have no scale, and others only
        if both ends offer one (RFC 7323, 1.3)."""
        one, other = self._scale.values[direction].astype(np.int64), self._scale.values[direction ^ 1]
        shift = np.where((flags & SYN == 0) & (one > NO_SCALE) & (other > NO_SCALE), one, 0)
        limits: Int64 = (segments.ack[order].astype(np.int64) + (segments.window[order] << shift)) & MASK
        return limits
