"""The careful path of reassembly: one direction whose segments do not simply follow each other.

Invariants:
  * what comes out tiles the stream, in order, without overlap;
  * a byte, once seen, never changes: of two copies the first one captured wins (RFC 9293, 3.10.7.4);
  * a hole waits for at most `limits.out_of_order_packets` packets of the capture and `out_of_order_bytes` held back;
    then it is a gap. Both are counted in what the capture has, so batches make no difference;
  * along the stream time and packet number never run backwards: a piece that came too early bears those of the one
    before it, which it had to wait for.
"""

from bisect import bisect_left
from collections import Counter
from typing import Final, NamedTuple

from dissector.events import NOWHERE, RunKind
from dissector.limits import Limits

HALF: Final = 1 << 31
WILD: Final = 1 << 30
"""A sequence number farther off than this is damage, not loss."""


class Piece(NamedTuple):
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

    def part(self, start: int, end: int) -> "Piece":
        """The bytes from `start` to `end`, which lie in it."""
        address = NOWHERE if self.address == NOWHERE else self.address + start - self.start
        return self._replace(start=start, size=end - start, address=address)


class CarefulDirection:
    """Puts segments of one direction in order. `position` is the stream offset of the next byte to come out."""

    def __init__(self, expected: int, position: int, limits: Limits, ignored: Counter[str]) -> None:
        self._limits = limits
        self._ignored = ignored
        self._held: list[Piece] = []
        self._held_bytes = 0
        self._hole_packet = 0
        self._last = (0, 0)
        """Number and time of the last packet that came out."""
        self.expected = expected
        self.position = position

    @property
    def waits(self) -> bool:
        """Whether something is held back."""
        return bool(self._held)

    def feed(self, seq: int, piece: Piece) -> list[Piece]:
        """Take a segment, its `start` yet unknown; what comes out."""
        out: list[Piece] = []
        if self._held and piece.packet - self._hole_packet > self._limits.out_of_order_packets:
            out += self._give_up()
        distance = ((seq - self.expected + HALF) & 0xFFFFFFFF) - HALF
        if abs(distance) > WILD:
            self._ignored["TCP sequence number that cannot be"] += 1
            return out
        piece = piece._replace(start=self.position + distance)
        if piece.start <= self.position and not self._held:
            if piece.end > self.position:
                out.append(self._deliver(piece.part(self.position, piece.end)))
            return out
        if piece.end > self.position:
            self._hold(piece)
            out += self._drain()
        while self._held_bytes > self._limits.out_of_order_bytes:
            out += self._give_up()
        return out

    def finish(self) -> list[Piece]:
        """Everything held, its holes as gaps."""
        out: list[Piece] = []
        while self._held:
            out += self._give_up()
        return out

    def _deliver(self, piece: Piece) -> Piece:
        self.position = piece.end
        self.expected = (self.expected + piece.size) & 0xFFFFFFFF
        self._last = packet, time_ns = max(self._last, (piece.packet, piece.time_ns))
        return piece._replace(time_ns=time_ns, packet=packet)

    def _hold(self, piece: Piece) -> None:
        """Keep what is new of it: earlier copies of the same bytes stay."""
        if not self._held:
            self._hole_packet = piece.packet
        at, end = max(piece.start, self.position), piece.end
        row = bisect_left(self._held, at, key=lambda held: held.end)
        while at < end or (piece.size == 0 and at == end):
            held = self._held[row] if row < len(self._held) else None
            if held is not None and held.start <= at and held.size:
                if piece.size == 0:
                    return
                at = held.end
            else:
                upto = min(end, held.start) if held is not None else end
                self._held.insert(row, piece.part(at, upto))
                self._held_bytes += upto - at
                at = upto
                if piece.size == 0:
                    return
            row += 1

    def _drain(self) -> list[Piece]:
        """What has no hole before it any more."""
        count = 0
        out: list[Piece] = []
        for held in self._held:
            if held.start > self.position:
                break
            count += 1
            self._held_bytes -= held.size
            out.append(self._deliver(held))
        del self._held[:count]
        if self._held and count:
            self._hole_packet = min(held.packet for held in self._held)
        return out

    def _give_up(self) -> list[Piece]:
        """The first hole is a gap."""
        first = self._held[0]
        gap = first._replace(start=self.position, size=first.start - self.position, kind=RunKind.LOST, address=NOWHERE)
        return [self._deliver(gap), *self._drain()]
