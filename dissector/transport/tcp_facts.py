"""What TCP did on each connection: round-trip times, bytes and packets each way, windows, bytes lost.

Computed for a batch of segments at once; a connection keeps some 200 bytes.

  * The handshake's round trip is from the SYN to the opener's first ACK: Wireshark's "initial RTT". It is known
    where the capture began before the connection.
  * The round trip of an acknowledgement is from data to a segment without data that acknowledges exactly its end, if
    nothing of the connection came between them. So neither the time a server takes, nor a loss, is in it.
  * Zero windows and full windows are Wireshark's. The latter are known where both SYNs were captured, as only they have
    the windows' scales (`windows.py`).

Invariant, a property test: any cutting of the capture into batches gives the same facts.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import RunBatch, RunKind, SegmentBatch
from dissector.core.columns import Column
from dissector.transport.connection_table import ACK, FIN, RST, SYN
from dissector.transport.retransmissions import Retransmissions
from dissector.transport.windows import FullWindows

MASK: Final = 0xFFFFFFFF
NOTHING: Final = -1


class DirectionFacts(NamedTuple):
    """What one end sent."""

    packets: int
    bytes: int
    """Of payload, those that came again included."""
    retransmitted: int
    """Bytes that came again."""
    lost: int
    """Bytes that were sent and are not in the capture."""
    zero_windows: int
    """Segments that said that nothing more may be sent."""
    full_windows: int
    """Segments that ended where the other end's window does: nothing more may be sent for now."""


class TcpFacts(NamedTuple):
    """What TCP did on a connection; times in nanoseconds, None where the capture does not show them."""

    handshake_ns: int | None
    ack_ns: int | None
    """The mean round trip of acknowledgements."""
    least_ack_ns: int | None
    sides: tuple[DirectionFacts, DirectionFacts]


class TcpFactsTable:
    """The facts of all connections of a capture."""

    def __init__(self, retransmissions: Retransmissions) -> None:
        self._retransmissions = retransmissions
        self._packets, self._bytes, self._lost = Column(np.int64), Column(np.int64), Column(np.int64)
        self._zero_windows = Column(np.int32)
        """By direction; the others by connection."""
        self._full_windows = FullWindows()
        self._syn_ns, self._handshake_ns = Column(np.int64), Column(np.int64)
        self._opener = Column(np.int8, NOTHING)
        """The direction's side that sent the SYN."""
        self._acks, self._ack_ns = Column(np.int32), Column(np.int64)
        self._least_ack_ns = Column(np.int64, np.iinfo(np.int64).max)
        self._end, self._end_ns = Column(np.int64, NOTHING), Column(np.int64)
        """Of the last segment: if it carried data, the sequence number behind it, and its side above 32 bits; its
        time."""

    def feed(self, segments: SegmentBatch) -> None:
        """Take segments, in capture order."""
        if not len(segments):
            return
        count = (int(segments.direction.max()) >> 1) + 1
        for column in (self._packets, self._bytes, self._lost, self._zero_windows):
            column.grow(2 * count)
        for column in (
            self._syn_ns, self._handshake_ns, self._opener, self._acks, self._ack_ns, self._least_ack_ns, self._end,
            self._end_ns,
        ):  # fmt: skip
            column.grow(count)
        direction, flags = segments.direction, segments.flags
        size = segments.size + segments.missing
        _add(self._packets, direction, 1)
        _add(self._bytes, direction, size)
        closed = (segments.window == 0) & (flags & (SYN | RST | FIN) == 0)
        _add(self._zero_windows, direction[closed], 1)
        self._handshakes(segments)
        order = np.argsort(direction >> 1, kind="stable")
        self._acknowledgements(segments, size, order)
        self._full_windows.feed(segments, size, order)

    def add_gaps(self, runs: RunBatch) -> None:
        """Count the bytes that the capture does not have."""
        lost = runs.kind == RunKind.LOST
        if lost.any():
            self._lost.grow((int(runs.direction[lost].max()) | 1) + 1)
            _add(self._lost, runs.direction[lost], runs.size[lost])

    def _handshakes(self, segments: SegmentBatch) -> None:
        """Measure from the first SYN to the first ACK of the same end behind it."""
        flags, direction, time_ns = segments.flags, segments.direction, segments.time_ns
        of_kind = flags & (SYN | ACK | RST)
        opening = np.flatnonzero(of_kind == SYN)[::-1]  # numpy assigns the last of equal indices
        opening = opening[self._opener.values[direction[opening] >> 1] == NOTHING]
        self._opener.values[direction[opening] >> 1] = direction[opening] & 1
        self._syn_ns.values[direction[opening] >> 1] = time_ns[opening]
        acks = np.flatnonzero(of_kind == ACK)[::-1]
        acks = acks[self._handshake_ns.values[direction[acks] >> 1] == 0]
        acks = acks[self._opener.values[direction[acks] >> 1] == direction[acks] & 1]
        taken = time_ns[acks] - self._syn_ns.values[direction[acks] >> 1]
        self._handshake_ns.values[direction[acks[taken >= 0]] >> 1] = np.maximum(taken[taken >= 0], 1)

    def _acknowledgements(self, segments: SegmentBatch, size: Int64, order: Int64) -> None:
        """Measure from data to the acknowledgement that is the connection's next segment; `order` is by connection."""
        direction, flags, time_ns = segments.direction[order], segments.flags[order], segments.time_ns[order]
        connection, size = direction >> 1, size[order]
        firsts = np.flatnonzero(np.diff(connection, prepend=NOTHING))
        carries = (size > 0) & (flags & (SYN | RST | FIN) == 0)
        end = ((segments.seq[order].astype(np.int64) + size) & MASK) | (direction & 1) << 32
        end = np.where(carries, end, NOTHING)
        before, before_ns = np.empty_like(end), np.empty_like(time_ns)
        before[1:], before_ns[1:] = end[:-1], time_ns[:-1]
        before[firsts], before_ns[firsts] = (
            self._end.values[connection[firsts]],
            self._end_ns.values[connection[firsts]],
        )
        wanted = segments.ack[order].astype(np.int64) | (direction & 1 ^ 1) << 32
        is_ack: Bool = (size == 0) & (flags & (SYN | RST | FIN | ACK) == ACK) & (before == wanted)
        of, taken = connection[is_ack], time_ns[is_ack] - before_ns[is_ack]
        _add(self._acks, of, 1)
        _add(self._ack_ns, of, taken)
        np.minimum.at(self._least_ack_ns.values, of, taken)
        lasts = np.append(firsts[1:], len(order)) - 1
        self._end.values[connection[lasts]], self._end_ns.values[connection[lasts]] = end[lasts], time_ns[lasts]

    def last_time_ns(self, connection: int) -> int:
        """The time of the last segment of a connection."""
        return int(self._end_ns.values[connection])

    def of(self, connection: int) -> TcpFacts | None:
        """The facts of a connection; None where no segment of it was fed."""
        if connection >= len(self._acks):
            return None
        acks = int(self._acks.values[connection])
        handshake_ns = int(self._handshake_ns.values[connection])
        one, other = (
            DirectionFacts(
                int(self._packets.values[at]), int(self._bytes.values[at]), self._retransmissions.repeated_bytes(at),
                int(self._lost.values[at]), int(self._zero_windows.values[at]), self._full_windows.of(at),
            )
            for at in (2 * connection, 2 * connection + 1)
        )  # fmt: skip
        return TcpFacts(
            handshake_ns or None,
            int(self._ack_ns.values[connection]) // acks if acks else None,
            int(self._least_ack_ns.values[connection]) if acks else None,
            (one, other),
        )


def _add(column: Column, at: Int64, values: Int64 | int) -> None:
    """Add to places of a column, of which some occur more than once."""
    np.add.at(column.values, at, values)
