"""Holes of one direction, byte by byte: each limit from both sides, and all of it against a slow computation in words.

The limits are small here, so that a few bytes reach them.
"""

import random
from dataclasses import dataclass, field, replace

from hypothesis import given

from dissector.core.batches import RunKind
from dissector.core.limits import DEFAULT
from dissector.transport.holes_and_gaps import (
    LARGEST_WINDOW,
    SEGMENTS_OF_A_JUMP,
    OutOfOrderDirection,
    StreamPiece,
)
from dissector.transport.retransmissions import SEEN
from tests.cases import cases
from tests.traffic import seeds

LIMITS = replace(DEFAULT, out_of_order_packets=40, acknowledged_packets=6, out_of_order_bytes=24, losses=0)
NEXT = (1 << 32) - 20
"""The sequence number of the first byte: it wraps soon."""
Byte = tuple[int, int, int, int, int]
"""Stream offset, kind, address, time and packet; a lost byte has address -1."""


def segment(size: int, packet: int, address: int = 1000) -> StreamPiece:
    return StreamPiece(0, size, RunKind.DATA, address, 10 * packet, packet)


def by_bytes(pieces: list[StreamPiece]) -> list[Byte]:
    return [
        (each.start + at, each.kind, -1 if each.kind == RunKind.LOST else each.address + at, each.time_ns, each.packet)
        for each in pieces
        for at in range(each.size)
    ]


@dataclass
class InWords:
    """One direction, by its rules and byte by byte: what is held, since when, and what is believed."""

    position: int = 0
    held: dict[int, Byte] = field(default_factory=dict)
    fin: tuple[int, int, int] | None = None
    """Its offset, time and packet."""
    acks: list[tuple[int, int]] = field(default_factory=list)
    since: int = 0
    last: tuple[int, int] = (0, 0)
    out: list[Byte] = field(default_factory=list)
    again: set[tuple[int, int]] = field(default_factory=set)
    """Offsets that came again, and when."""

    def first(self) -> int | None:
        ends = [*self.held, *([self.fin[0]] if self.fin else [])]
        return min(ends) if ends else None

    def deliver(self, byte: Byte) -> None:
        offset, kind, address, time, packet = byte
        self.last = max(self.last, (packet, time))
        self.since = self.last[0]
        self.out.append((offset, kind, address, self.last[1], self.last[0]))
        self.position = offset + 1

    def drain(self) -> None:
        while self.position in self.held:
            self.deliver(self.held.pop(self.position))
        if self.fin and self.fin[0] <= self.position:
            self.fin = None
        if self.first() is None:
            self.acks = []

    def give_up(self) -> None:
        first = self.first()
        assert first is not None
        _, _, _, time, packet = self.held[first] if first in self.held else (0, 0, 0, *self.fin[1:])
        while self.position < first:
            self.deliver((self.position, RunKind.LOST, -1, time, packet))
        self.drain()

    def come_to(self, packet: int) -> None:
        while self.acks and packet - self.acks[0][0] > LIMITS.acknowledged_packets:
            offset = self.acks.pop(0)[1]
            while (first := self.first()) is not None and first <= offset:
                self.give_up()
        while self.first() is not None and packet - self.since > LIMITS.out_of_order_packets:
            self.give_up()

    def feed(self, start: int, piece: StreamPiece) -> None:
        self.come_to(piece.packet)
        if self.first() is None:
            self.since = piece.packet
        first = self.first()
        is_late = first is not None and start < first and self.acks and self.acks[-1][1] >= start + piece.size
        if not (piece.size == 1 and start + 1 == self.position):
            self.again |= {(at, piece.time_ns) for at in range(start, min(start + piece.size, self.position))}
        if is_late and first is not None:
            _, _, _, time, packet = self.held[first] if first in self.held else (0, 0, 0, *self.fin[1:])
            piece = piece._replace(time_ns=time, packet=packet)
        for at in range(piece.size):
            if start + at >= self.position and start + at not in self.held:
                self.held[start + at] = (start + at, piece.kind, piece.address + at, piece.time_ns, piece.packet)
        self.drain()
        while len(self.held) > LIMITS.out_of_order_bytes:
            self.give_up()

    def end(self, start: int, time: int, packet: int) -> None:
        self.come_to(packet)
        if start > self.position and self.fin is None:
            if not self.held:
                self.since = packet
            self.fin = (start, time, packet)

    def acknowledge(self, offset: int, packet: int) -> None:
        first = self.first()
        if first is not None and offset >= first and not (self.acks and self.acks[-1][1] >= offset):
            self.acks.append((packet, offset))


@given(chance=seeds)
def test_any_traffic_gives_what_the_rules_say(chance: random.Random) -> None:
    for _ in range(25):
        real, words = OutOfOrderDirection(NEXT, 0, LIMITS), InWords()
        out: list[StreamPiece] = []
        packet = 0
        for _ in range(chance.randint(5, 40)):
            packet += chance.choice((1, 1, 1, 2, 7, 41))
            at = max(0, words.position + chance.choice((0, 0, -5, -1, 1, 2, 4, 9, 15, 25)))
            what = chance.random()
            if what < 0.7:
                piece = segment(chance.randint(1, 8), packet, chance.randrange(1000, 10_000))
                out += real.feed((NEXT + at) % 2**32, piece)
                words.feed(at, piece)
            elif what < 0.8:
                out += real.end((NEXT + at) % 2**32, 10 * packet, packet)
                words.end(at, 10 * packet, packet)
            elif what < 0.95:
                real.acknowledge((NEXT + at) % 2**32, packet)
                words.acknowledge(at, packet)
            else:
                out += real.advance_to(packet)
                words.come_to(packet)
            assert by_bytes(out) == words.out
            assert (real.position, real.expected) == (words.position, (NEXT + words.position) % 2**32)
            assert real.is_pending == (words.first() is not None)
            assert sorted(byte[0] for byte in by_bytes(real.held)) == sorted(words.held)
        came_again = {
            (at, time) for start, end, time, since in real.retransmissions if since == SEEN for at in range(start, end)
        }
        assert came_again == words.again
        while words.first() is not None:
            words.give_up()
        assert by_bytes(out + real.finish()) == words.out


def delivered(direction: OutOfOrderDirection, seq: int, size: int, packet: int) -> list[tuple[int, int]]:
    """Kinds and sizes of what comes out with a segment."""
    return [(each.kind, each.size) for each in direction.feed(seq, segment(size, packet))]


@cases(("size", "gives_up"), [(24, False), (25, True)])
def test_a_hole_waits_until_more_bytes_are_held_than_the_limit(size: int, gives_up: bool) -> None:
    direction = OutOfOrderDirection(0, 0, LIMITS)
    assert not delivered(direction, 10, 5, 1)
    assert not delivered(direction, 12, 3, 2)  # nothing new
    assert delivered(direction, 15, size - 5, 3) == (
        [(RunKind.LOST, 10), (RunKind.DATA, 5), (RunKind.DATA, 20)] if gives_up else []
    )


@cases(("pieces", "gives_up"), [(4, False), (5, True)])
def test_a_hole_waits_until_more_pieces_are_held_than_the_limit(pieces: int, gives_up: bool) -> None:
    direction = OutOfOrderDirection(0, 0, replace(LIMITS, out_of_order_packets=4))
    out = [each for at in range(1, pieces + 1) for each in delivered(direction, 4 * at, 2, 1)]
    assert out == ([(RunKind.LOST, 4), (RunKind.DATA, 2)] if gives_up else [])


@cases(("packet", "gives_up"), [(45, False), (46, True)])
def test_a_hole_waits_for_as_many_packets_as_the_limit(packet: int, gives_up: bool) -> None:
    direction = OutOfOrderDirection(0, 0, LIMITS)
    direction.feed(10, segment(5, 5))
    direction.feed(20, segment(1, 30))  # more behind it make it wait no longer
    assert bool(direction.advance_to(packet)) == gives_up


@cases(("ack", "packet", "given_up"), [(9, 100, 0), (10, 7, 0), (10, 8, 1), (19, 8, 1), (20, 8, 2), (29, 8, 2)])
def test_an_acknowledgement_up_to_what_is_behind_a_hole_makes_it_a_gap(ack: int, packet: int, given_up: int) -> None:
    direction = OutOfOrderDirection(0, 0, replace(LIMITS, out_of_order_packets=1000))
    direction.feed(10, segment(5, 1))
    direction.feed(20, segment(5, 1))
    direction.acknowledge(ack, 1)
    assert [each.kind for each in direction.advance_to(packet)].count(RunKind.LOST) == given_up


def test_of_two_ends_of_a_stream_the_first_one_captured_counts() -> None:
    direction = OutOfOrderDirection(0, 0, LIMITS)
    assert not direction.end(10, 10, 1)
    assert not direction.end(15, 20, 2)
    assert [(each.start, each.size, each.packet) for each in direction.finish()] == [(0, 10, 1)]


@cases(("seq", "is_pending"), [(0, False), (1, True), (LARGEST_WINDOW, True), (LARGEST_WINDOW + 1, False)])
def test_an_end_is_waited_for_if_bytes_can_be_missing_before_it(seq: int, is_pending: bool) -> None:
    direction = OutOfOrderDirection(0, 0, LIMITS)
    assert not direction.end(seq, 10, 1)
    assert direction.is_pending == is_pending


@cases(("seq", "believed"), [(LARGEST_WINDOW, True), (LARGEST_WINDOW + 1, False)])
def test_a_number_farther_off_than_any_window_is_not_believed(seq: int, believed: bool) -> None:
    ahead, behind = (OutOfOrderDirection(0, 5, LIMITS) for _ in range(2))
    ahead.feed(seq, segment(3, 1))
    behind.feed(-seq % 2**32, segment(3, 1))
    assert [each.start for each in ahead.held] == [5 + seq if believed else 0]
    assert bool(behind.retransmissions) == believed
    for each in (ahead, behind):
        assert each.out_of_window == 0
        each.finish()
        assert each.out_of_window == (not believed)
    acknowledged = OutOfOrderDirection(0, 0, LIMITS)
    acknowledged.feed(10, segment(5, 1))
    acknowledged.acknowledge(seq, 1)
    assert bool(acknowledged.advance_to(8)) == believed


@cases(("count", "jumps"), [(SEGMENTS_OF_A_JUMP - 1, False), (SEGMENTS_OF_A_JUMP, True)])
def test_so_many_segments_in_a_row_far_ahead_are_a_pause_of_the_capture(count: int, jumps: bool) -> None:
    direction = OutOfOrderDirection(100, 0, LIMITS)
    far = 100 + LARGEST_WINDOW + 7
    pieces = [each for n in range(count) for each in direction.feed(far + 3 * n, segment(3, n, 50 * n))]
    assert len(pieces) == (1 + count if jumps else 0)
    if jumps:
        assert pieces[0] == StreamPiece(0, far - 100, RunKind.LOST, -1, 0, 0)
        assert [each.address for each in pieces[1:]] == [50 * n for n in range(count)]
        assert direction.position == far - 100 + 3 * count
        assert not direction.is_pending


def test_segments_far_ahead_that_do_not_follow_one_another_are_damage() -> None:
    direction = OutOfOrderDirection(100, 0, LIMITS)
    far = 100 + LARGEST_WINDOW + 7
    for n in range(SEGMENTS_OF_A_JUMP - 1):
        assert not direction.feed(far + 3 * n, segment(3, n))
    assert not direction.feed(far + 3 * (SEGMENTS_OF_A_JUMP - 2), segment(3, 10))  # the last one captured twice
    assert direction.out_of_window == 1
    assert not direction.feed(far + 3 * SEGMENTS_OF_A_JUMP + 1, segment(3, 20))
    assert direction.out_of_window == SEGMENTS_OF_A_JUMP
    assert direction.is_pending
    assert len(direction.feed(100, segment(3, 21))) == 1
    assert direction.out_of_window == SEGMENTS_OF_A_JUMP + 1
    assert not direction.is_pending


@cases(
    ("start", "size", "stretches"),
    [(9, 1, []), (8, 1, [(8, 9)]), (8, 2, [(8, 10)]), (9, 2, [(9, 10)]), (10, 1, []), (4, 20, [(4, 10)])],
)
def test_what_comes_again_is_recorded_unless_it_keeps_alive(
    start: int, size: int, stretches: list[tuple[int, int]]
) -> None:
    direction = OutOfOrderDirection(0, 0, LIMITS)
    direction.feed(0, segment(10, 1))
    direction.feed(start, segment(size, 2))
    assert direction.retransmissions == [(start, end, 20, SEEN) for start, end in stretches]


@cases(("filled", "stretches"), [(9, []), (10, [(0, 15, 30, 10)])])
def test_what_waited_behind_a_hole_is_recorded_once_it_is_filled(
    filled: int, stretches: list[tuple[int, int, int, int]]
) -> None:
    direction = OutOfOrderDirection(0, 0, LIMITS)
    direction.feed(10, segment(5, 1))
    direction.feed(0, segment(filled, 3))
    assert direction.retransmissions == stretches
