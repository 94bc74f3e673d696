"""The careful path of reassembly: one direction whose segments do not simply follow each other.

Invariants:
  * what comes out tiles the stream, in order, without overlap;
  * a byte, once seen, never changes: of two copies the first one captured wins (RFC 9293, 3.10.7.4);
  * a hole waits until its bytes come, or the peer has acknowledged them `limits.acknowledged_packets` ago, or nothing
    has come out for `limits.out_of_order_packets`, or for `limits.out_of_order_bytes` held back; then it is a gap. All
    are counted in packets and bytes of the capture, so batches make no difference;
  * along the stream time and packet number never run backwards: a piece that came too early bears those of the one
    before it, which it had to wait for.
"""

from bisect import bisect_right
from collections import deque
from typing import Final, NamedTuple

from dissector.core.batches import NOWHERE, RunKind
from dissector.core.limits import Limits
from dissector.transport.retransmissions import SEEN

MASK: Final = 0xFFFFFFFF
HALF: Final = 1 << 31
WILD: Final = 1 << 30
"""A sequence number farther off than this is damage, not loss: no window is larger (RFC 7323, 2.3)."""
STRAYS_BELIEVED: Final = 8
"""So many wild segments that follow one another are no damage: the capture paused for longer than a window."""


Stretch = tuple[int, int, int, int]
"""Stream offsets of beginning and end, when it came, and since when it waited."""


class StreamPiece(NamedTuple):
    """Bytes, or known absence of bytes, at a stream offset."""

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
        """The bytes from `start` to `end`, which lie in it."""
        address = NOWHERE if self.address == NOWHERE else self.address + start - self.start
        return StreamPiece(start, end - start, self.kind, address, self.time_ns, self.packet)


def _end(piece: StreamPiece) -> int:
    return piece.start + piece.size


class OutOfOrderDirection:
    """Puts segments of one direction in order. `position` is the stream offset of the next byte to come out."""

    def __init__(self, expected: int, position: int, limits: Limits) -> None:
        self._limits = limits
        self._held: list[StreamPiece] = []
        """In stream order, apart from each other, all behind `position`."""
        self._held_bytes = 0
        self._fin: StreamPiece | None = None
        """An end of the stream that lies behind a hole; its size is 0."""
        self._hole_packet = 0
        """Since when nothing has come out. While something does, what stands far ahead is no reason to give up: one
        wrong sequence number would make all that follows look like a repetition."""
        self._acks: deque[tuple[int, int]] = deque()
        """Packet number and stream offset of acknowledgements that reach past the first hole."""
        self._strays: list[tuple[int, StreamPiece]] = []
        self._last = (0, 0)
        """Number and time of the last packet that came out."""
        self.expected = expected
        self.position = position
        self.resent: list[Stretch] = []
        """What came again, or late, as `resent.Resent` has it."""
        self.wild = 0
        """Segments left out because their sequence number can't be."""

    @property
    def waits(self) -> bool:
        """Whether something is held back."""
        return bool(self._held or self._fin or self._strays)

    def feed(self, seq: int, piece: StreamPiece) -> list[StreamPiece]:
        """Take a segment with bytes, its `start` yet unknown; what comes out."""
        out = self.settle(piece.packet)
        distance = ((seq - self.expected + HALF) & MASK) - HALF
        if not -WILD <= distance <= WILD:
            return out + self._stray(seq, piece)
        self._forget_strays()
        piece = StreamPiece(self.position + distance, *piece[1:])
        self._note_again(piece)
        if piece.end <= self.position:
            return out
        before, behind = self.position, self._held[0] if self._held else None
        if distance <= 0 and not self._held:
            out.append(self._deliver(piece.part(self.position, piece.end) if distance else piece))
        else:
            self._hold(piece)
        out += self._drain()
        if behind is not None and self.position > behind.start:
            self.resent.append((before, self.position, piece.time_ns, behind.time_ns))
        while self._held_bytes > self._limits.out_of_order_bytes or len(self._held) > self._limits.out_of_order_packets:
            out += self._give_up()
        return out

    def _note_again(self, piece: StreamPiece) -> None:
        """Bytes that were there before; a keep-alive is none."""
        if piece.start < self.position and not (piece.size == 1 and piece.end == self.position):
            self.resent.append((piece.start, min(piece.end, self.position), piece.time_ns, SEEN))

    def end(self, seq: int, time_ns: int, packet: int) -> list[StreamPiece]:
        """A FIN stands at `seq`: what lies before it and never comes is a gap."""
        out = self.settle(packet)
        distance = ((seq - self.expected + HALF) & MASK) - HALF
        if 0 < distance <= WILD and self._fin is None:
            if not self._held:
                self._hole_packet = packet
            self._fin = StreamPiece(self.position + distance, 0, RunKind.LOST, NOWHERE, time_ns, packet)
        return out

    def acknowledge(self, ack: int, packet: int) -> None:
        """The peer has received everything before `ack`. The capture may show that before the bytes themselves."""
        first = self._first()
        if first is None:
            return
        distance = ((ack - self.expected + HALF) & MASK) - HALF
        offset = self.position + distance
        if distance <= WILD and offset >= first.start and not (self._acks and self._acks[-1][1] >= offset):
            self._acks.append((packet, offset))

    @property
    def held(self) -> list[StreamPiece]:
        """All that is kept: behind a hole, and what may be noise."""
        return [*self._held, *(piece for _, piece in self._strays)]

    def settle(self, packet: int) -> list[StreamPiece]:
        """The capture has come to `packet`: holes that waited long enough are gaps."""
        out: list[StreamPiece] = []
        while self._acks and packet - self._acks[0][0] > self._limits.acknowledged_packets:
            _, offset = self._acks.popleft()
            while (first := self._first()) is not None and first.start <= offset:
                out += self._give_up()
        while self._first() is not None and packet - self._hole_packet > self._limits.out_of_order_packets:
            out += self._give_up()
        return out

    def finish(self) -> list[StreamPiece]:
        """Everything held, its holes as gaps."""
        self._forget_strays()
        out: list[StreamPiece] = []
        while self._first() is not None:
            out += self._give_up()
        return out

    def _first(self) -> StreamPiece | None:
        """What is known to stand right behind the first hole."""
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
        """Keep what is new of it: earlier copies of the same bytes stay."""
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
        """What has no hole before it any more."""
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

    def _give_up(self) -> list[StreamPiece]:
        """The first hole is a gap."""
        first = self._first()
        if first is None:
            return []
        gap = first._replace(start=self.position, size=first.start - self.position, kind=RunKind.LOST, address=NOWHERE)
        return [self._deliver(gap), *self._drain()]

    def _stray(self, seq: int, piece: StreamPiece) -> list[StreamPiece]:
        """A wild segment: noise, unless enough of them follow one another."""
        if self._strays:
            last_seq, last = self._strays[-1]
            if seq == last_seq:
                self.wild += 1  # the same packet captured twice
                return []
            if seq != (last_seq + last.size) & MASK:
                self._forget_strays()
        self._strays.append((seq, piece))
        return self._jump() if len(self._strays) == STRAYS_BELIEVED else []

    def _forget_strays(self) -> None:
        self.wild += len(self._strays)
        self._strays.clear()

    def _jump(self) -> list[StreamPiece]:
        """The stream goes on where the strays are; what lies between was lost, at least once around the modulus."""
        strays, self._strays = self._strays, []
        out = self.finish()
        seq, first = strays[0]
        between = (seq - self.expected) & MASK
        out.append(
            self._deliver(StreamPiece(self.position, between, RunKind.LOST, NOWHERE, first.time_ns, first.packet))
        )
        for seq, piece in strays:
            out += self.feed(seq, piece)
        return out
