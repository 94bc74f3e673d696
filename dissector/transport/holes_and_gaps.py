"""The out-of-order path of reassembly: one direction that has a hole, segment by segment.

Invariants:
  * what is delivered tiles the stream, in order, without overlap;
  * a byte, once seen, never changes: of two copies the first one captured wins (RFC 9293, 3.10.7.4);
  * a hole becomes a gap `limits.acknowledged_packets` after the peer acknowledged its bytes, when nothing was delivered
    for `limits.out_of_order_packets`, or when `limits.out_of_order_bytes` are held back. In the first two cases it
    waits for longer, as a capture may have bytes far behind their acknowledgement: for `limits.late_packets`, or in a
    capture that grows, where somebody waits for the rows, until the capture's clock has moved on by `limits.late_ns` as
    well (`capture_clock`), whichever comes first. Once `limits.losses` holes of a direction waited in vain, it waits no
    longer. All are counted in packets, bytes and time of the capture, so batches make no difference;
  * along the stream, time and packet number never decrease: a piece that came too early gets those of the piece that it
    had to wait for. Bytes that the capture has behind their acknowledgement were not late for the peer: they get time
    and packet of what follows them.
"""

from bisect import bisect_right
from collections import deque
from typing import Final, NamedTuple

from dissector.core.batches import NOWHERE, RunKind
from dissector.core.limits import Limits
from dissector.transport.retransmissions import SEEN

MASK: Final = 0xFFFFFFFF
HALF: Final = 1 << 31
LARGEST_WINDOW: Final = 1 << 30
"""A sequence number farther off than this is damage, not loss (RFC 7323, 2.3)."""
SEGMENTS_OF_A_JUMP: Final = 8
"""Consecutive segments out of the window that are no damage: the capture paused for longer than a window."""


Stretch = tuple[int, int, int, int]
"""Stream offsets of beginning and end, when it came, and since when it waited."""


class StreamPiece(NamedTuple):
    """Bytes at a stream offset, or a gap."""

    start: int
    size: int
    kind: int
    address: int
    time_ns: int
    packet: int

    @property
    def end(self) -> int:
        return self.start + self.size

    def part(self, start: int, end: int) -> "StreamPiece":
        """Return the bytes from `start` to `end`, which lie in it."""
        address = NOWHERE if self.address == NOWHERE else self.address + start - self.start
        return StreamPiece(start, end - start, self.kind, address, self.time_ns, self.packet)


def _end(piece: StreamPiece) -> int:
    return piece.start + piece.size


class OutOfOrderDirection:
    """Puts segments of one direction in order. `position` is the stream offset of the next byte to deliver."""

    def __init__(self, expected: int, position: int, limits: Limits, losses: int = 0) -> None:
        """`losses` are the holes that waited in vain so far."""
        self._limits = limits
        self.losses = losses
        self._held: list[StreamPiece] = []
        """In stream order, apart from each other, all behind `position`."""
        self._held_bytes = 0
        self._fin: StreamPiece | None = None
        """The end of the stream, if a hole is before it; its size is 0."""
        self._hole_packet = 0
        """Since which packet nothing was delivered. While something is, segments far ahead do not make the hole a gap:
        one wrong sequence number would make everything behind it look like a retransmission."""
        self._acks: deque[tuple[int, int]] = deque()
        """Packet number and stream offset of acknowledgements that reach past the first hole."""
        self._stray_segments: list[tuple[int, StreamPiece]] = []
        self._last = (0, 0)
        """Number and time of the last packet delivered."""
        self.expected = expected
        self.position = position
        self.retransmissions: list[Stretch] = []
        """Bytes that came again, or late, as in `Retransmissions`."""
        self.out_of_window = 0
        """Segments ignored because their sequence number is impossible."""

    @property
    def is_pending(self) -> bool:
        """Whether something is held back."""
        return bool(self._held or self._fin or self._stray_segments)

    def feed(self, seq: int, piece: StreamPiece, recent: int = 0) -> list[StreamPiece]:
        """Add a segment with bytes, whose `start` is unknown yet; return what is delivered. `recent` is that of
        `advance_to`."""
        out = self.advance_to(piece.packet, recent)
        distance = ((seq - self.expected + HALF) & MASK) - HALF
        if not -LARGEST_WINDOW <= distance <= LARGEST_WINDOW:
            return out + self._stray(seq, piece)
        self._forget_strays()
        piece = StreamPiece(self.position + distance, *piece[1:])
        self._record_retransmission(piece)
        if (first := self._first()) is not None and self._is_acknowledged(piece.end) and piece.start < first.start:
            piece = piece._replace(time_ns=first.time_ns, packet=first.packet)
            self.losses = 0
        if piece.end <= self.position:
            return out
        before, behind = self.position, self._held[0] if self._held else None
        if distance <= 0 and not self._held:
            out.append(self._deliver(piece.part(self.position, piece.end) if distance else piece))
        else:
            self._hold(piece)
        out += self._drain()
        if behind is not None and self.position > behind.start:
            self.retransmissions.append((before, self.position, piece.time_ns, behind.time_ns))
        while self._held_bytes > self._limits.out_of_order_bytes or len(self._held) > self._most_held:
            out += self._lose()
        return out

    def _is_acknowledged(self, offset: int) -> bool:
        """Whether the peer said that it has all bytes before a stream offset that is behind a hole."""
        return bool(self._acks) and self._acks[-1][1] >= offset

    def _record_retransmission(self, piece: StreamPiece) -> None:
        """Record bytes that were there before; keep-alives do not count."""
        if piece.start < self.position and not (piece.size == 1 and piece.end == self.position):
            self.retransmissions.append((piece.start, min(piece.end, self.position), piece.time_ns, SEEN))

    def end(self, seq: int, time_ns: int, packet: int, recent: int = 0) -> list[StreamPiece]:
        """Add a FIN at `seq`: bytes before it that never come are a gap. `recent` is that of `advance_to`."""
        out = self.advance_to(packet, recent)
        distance = ((seq - self.expected + HALF) & MASK) - HALF
        if 0 < distance <= LARGEST_WINDOW and self._fin is None:
            if not self._held:
                self._hole_packet = packet
            self._fin = StreamPiece(self.position + distance, 0, RunKind.LOST, NOWHERE, time_ns, packet)
        return out

    def acknowledge(self, ack: int, packet: int) -> None:
        """Record that the peer has received everything before `ack`. It may be captured before the bytes are."""
        first = self._first()
        if first is None:
            return
        distance = ((ack - self.expected + HALF) & MASK) - HALF
        offset = self.position + distance
        if distance <= LARGEST_WINDOW and offset >= first.start and not (self._acks and self._acks[-1][1] >= offset):
            self._acks.append((packet, offset))

    @property
    def held(self) -> list[StreamPiece]:
        """All that is held: bytes behind a hole, and segments out of the window."""
        return [*self._held, *(piece for _, piece in self._stray_segments)]

    def advance_to(self, packet: int, recent: int = 0) -> list[StreamPiece]:
        """Turn holes into gaps that have waited long enough when the capture comes to `packet`. A hole that may be
        filled late has so only if it waits since before `recent`."""
        out: list[StreamPiece] = []
        while self._acks and self._has_waited(self._acks[0][0], packet, self._limits.acknowledged_packets, recent):
            _, offset = self._acks.popleft()
            while (first := self._first()) is not None and first.start <= offset:
                out += self._lose()
        while self._first() is not None and self._has_waited(
            self._hole_packet, packet, self._limits.out_of_order_packets, recent
        ):
            out += self._lose()
        return out

    def may_be_over(self, recent: int) -> bool:
        """Whether `advance_to` may turn a hole into a gap; cheap, as thousands of directions may have one."""
        since = min(self._acks[0][0], self._hole_packet) if self._acks else self._hole_packet
        return since < recent or not self._is_patient

    @property
    def _is_patient(self) -> bool:
        """Whether holes of this direction may be filled late: not too many waited in vain."""
        return self.losses < self._limits.losses

    def _has_waited(self, since: int, packet: int, packets: int, recent: int) -> bool:
        """Whether a hole has waited long enough: for so many packets, and if it may be filled late, since before
        `recent`."""
        return packet - since > packets and (since < recent or not self._is_patient)

    @property
    def _most_held(self) -> int:
        """How many pieces may be held."""
        few = self._limits.out_of_order_packets
        return max(few, self._limits.late_packets) if self._is_patient else few

    def _lose(self) -> list[StreamPiece]:
        """Turn the first hole into a gap, as it waited for long enough."""
        self.losses += 1
        return self._declare_gap()

    def finish(self) -> list[StreamPiece]:
        """Return everything held, its holes as gaps."""
        self._forget_strays()
        out: list[StreamPiece] = []
        while self._first() is not None:
            out += self._declare_gap()
        return out

    def _first(self) -> StreamPiece | None:
        """What is right behind the first hole."""
        first = self._held[0] if self._held else None
        if self._fin is not None and (first is None or self._fin.start < first.start):
            return self._fin
        return first

    def _deliver(self, piece: StreamPiece) -> StreamPiece:
        self.position = piece.end
        self.expected = (self.expected + piece.size) & MASK
        self._last = packet, time_ns = max(self._last, (piece.packet, piece.time_ns))
        self._hole_packet = packet
        return piece if packet == piece.packet else piece._replace(time_ns=time_ns, packet=packet)

    def _hold(self, piece: StreamPiece) -> None:
        """Hold its new bytes: of bytes that are held already the earlier copy stays."""
        if self._first() is None:
            self._hole_packet = piece.packet
        at, end = max(piece.start, self.position), piece.end
        row = bisect_right(self._held, at, key=_end)
        while at < end:
            held = self._held[row] if row < len(self._held) else None
            if held is not None and held.start <= at:
                at = held.end
            else:
                upto = min(end, held.start) if held is not None else end
                self._held.insert(row, piece.part(at, upto))
                self._held_bytes += upto - at
                at = upto
            row += 1

    def _drain(self) -> list[StreamPiece]:
        """Deliver what has no hole before it any more."""
        out: list[StreamPiece] = []
        for held in self._held:
            if held.start > self.position:
                break
            self._held_bytes -= held.size
            out.append(self._deliver(held))
        del self._held[: len(out)]
        if self._fin is not None and self._fin.start <= self.position:
            self._fin = None
        if self._first() is None:
            self._acks.clear()
        return out

    def _declare_gap(self) -> list[StreamPiece]:
        """Turn the first hole into a gap; return what is delivered."""
        first = self._first()
        if first is None:
            return []
        gap = first._replace(start=self.position, size=first.start - self.position, kind=RunKind.LOST, address=NOWHERE)
        return [self._deliver(gap), *self._drain()]

    def _stray(self, seq: int, piece: StreamPiece) -> list[StreamPiece]:
        """Add a segment out of the window: damage, unless enough of them follow one another."""
        if self._stray_segments:
            last_seq, last = self._stray_segments[-1]
            if seq == last_seq:
                self.out_of_window += 1  # the same packet captured twice
                return []
            if seq != (last_seq + last.size) & MASK:
                self._forget_strays()
        self._stray_segments.append((seq, piece))
        return self._jump() if len(self._stray_segments) == SEGMENTS_OF_A_JUMP else []

    def _forget_strays(self) -> None:
        self.out_of_window += len(self._stray_segments)
        self._stray_segments.clear()

    def _jump(self) -> list[StreamPiece]:
        """Continue the stream at the stray segments; the bytes between were lost, modulo 2**32."""
        strays, self._stray_segments = self._stray_segments, []
        out = self.finish()
        seq, first = strays[0]
        between = (seq - self.expected) & MASK
        out.append(
            self._deliver(StreamPiece(self.position, between, RunKind.LOST, NOWHERE, first.time_ns, first.packet))
        )
        for seq, piece in strays:
            out += self.feed(seq, piece)
        return out
