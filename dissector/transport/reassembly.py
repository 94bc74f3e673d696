"""TCP reassembly: `SegmentBatch` to `RunBatch`.

Segments in order, and retransmissions, are the common case: one check over the columns finds, for every direction of
the batch at once, the rows up to its first hole (`in_order`). From there on a direction is reassembled segment by
segment (`holes_and_gaps`), until it has no hole any more.

Invariants, each a property test:
  * the runs of a direction tile its stream from the first byte on, without overlap, gaps in band;
  * any cutting of the capture into batches gives the same runs, but for a SYN behind segments of its connection: it is
    looked for in the batch of the first of them (`ExpectedSequence.begin`);
  * sequence numbers wrap; stream offsets don't.
"""

from collections import Counter
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind, SegmentBatch
from dissector.core.columns import Column, unique
from dissector.core.limits import Limits
from dissector.transport.capture_clock import CaptureClock
from dissector.transport.connection_table import ACK, FIN, RST, SYN
from dissector.transport.holes_and_gaps import MASK, OutOfOrderDirection, StreamPiece
from dissector.transport.in_order import NOT_STARTED, ExpectedSequence, in_order, joined_runs, run_batch
from dissector.transport.retransmissions import Retransmissions

OUT_OF_WINDOW: Final = "TCP sequence number that cannot be"
ROWS_AFTER_HOLE: Final = 1024
"""Rows tried at once in columns after a hole: few enough to be cheap where the next hole is near."""
LEAST_IN_ORDER: Final = 32
"""Rows in order from which on columns beat going one by one (measured: a check costs as much as 20 rows)."""
ROWS_ONE_BY_ONE: Final = 128
"""Rows processed one by one before columns are tried again, where they did not pay."""


class Reassembler:
    """Reassembles every direction of a capture. Impossible segments are counted in `ignored`, bytes that come again or
    late are added to `retransmissions`."""

    def __init__(
        self, limits: Limits, ignored: Counter[str], retransmissions: Retransmissions, *, is_patient: bool = False
    ) -> None:
        """It `is_patient` in a capture that does not grow: late bytes are waited for, however long they take."""
        self._limits = limits
        self._clock = None if is_patient else CaptureClock(limits.late_ns)
        self._losses = Column(np.int32)
        """By direction: the holes that waited in vain."""
        self._ignored = ignored
        self._retransmissions = retransmissions
        self._expected = ExpectedSequence(Column(np.int64, NOT_STARTED), Column(np.int64))
        self._out_of_order: dict[int, OutOfOrderDirection] = {}
        """Directions that hold bytes back."""

    def feed(self, segments: SegmentBatch, closed: Int64) -> RunBatch:
        """Return the bytes that are in order now, and all that is held of connections that are `closed`."""
        if not len(segments):
            return run_batch([])
        flags = segments.flags
        useful = (((segments.size + segments.missing) > 0) | ((flags & (SYN | FIN)) != 0)) & ((flags & RST) == 0)
        rows = np.flatnonzero(useful)
        rows = rows[np.argsort(segments.direction[rows], kind="stable")]
        self._expected.grow((int(segments.direction.max()) | 1) + 1)
        self._losses.grow((int(segments.direction.max()) | 1) + 1)
        if self._clock is not None:
            self._clock.feed(segments.packet, segments.time_ns)
        self._expected.begin(segments, rows)
        parts = []
        waiting = list(self._out_of_order)
        if len(rows):
            runs, rows, repeated = in_order(segments, rows, self._expected, np.array(waiting, np.int64))
            self._retransmissions.add(repeated)
            parts.append(runs)
        if len(rows) or waiting:
            parts += self._holes(segments, rows, waiting)
        parts.append(self.end(closed))
        return joined_runs(parts)

    def end(self, connections: Int64) -> RunBatch:
        """Return what is held back of these connections, its holes as gaps."""
        ending = set(connections.tolist()) if self._out_of_order else set()
        return self._release([direction for direction in self._out_of_order if direction >> 1 in ending])

    def flush(self) -> RunBatch:
        """Return all that is held back, its holes as gaps."""
        return self._release(list(self._out_of_order))

    @property
    def held_bytes(self) -> int:
        """Bytes held back."""
        return int(self.held_regions()[1].sum())

    def held_regions(self) -> Int64:
        """Addresses and sizes of what is held back, `(2, n)`."""
        held = [piece for state in self._out_of_order.values() for piece in state.held if piece.address != NOWHERE]
        return np.array([(piece.address, piece.size) for piece in held], np.int64).reshape(-1, 2).T

    def pending(self) -> Int64:
        """Packets and times of what is held back, `(2, n)`."""
        held = [(piece.packet, piece.time_ns) for state in self._out_of_order.values() for piece in state.held]
        return np.array(held, np.int64).reshape(-1, 2).T

    def _release(self, directions: list[int]) -> RunBatch:
        out = []
        for direction in directions:
            state = self._out_of_order[direction]
            out += [(direction, piece) for piece in state.finish()]
            self._keep(direction, state)
        return run_batch(out)

    def _holes(self, segments: SegmentBatch, rows: Int64, waiting: list[int]) -> list[RunBatch]:
        """Reassemble directions that have a hole: with `rows` in this batch, or with segments of the peer only."""
        acks = np.flatnonzero(segments.flags & ACK)
        acks = acks[np.argsort(segments.direction[acks], kind="stable")]
        ack_directions = segments.direction[acks]
        directions = segments.direction[rows]
        recent = self._first_recent(segments)
        now, last = int(segments.packet[-1]) + 1, int(recent[-1])
        parts = []
        have_rows = {*unique(directions).tolist(), *(unique(ack_directions) ^ 1).tolist()}
        for direction in sorted({*unique(directions).tolist(), *waiting}):
            if direction not in have_rows and not self._out_of_order[direction].may_be_over(last):
                continue
            own_rows = rows[slice(*np.searchsorted(directions, [direction, direction + 1]))]
            peer_rows = acks[slice(*np.searchsorted(ack_directions, [direction ^ 1, (direction ^ 1) + 1]))]
            if len(own_rows) or len(peer_rows):
                parts += self._direction(segments, direction, own_rows, peer_rows, recent)
            state = self._out_of_order.get(direction)
            if state is not None:
                parts.append(run_batch([(direction, piece) for piece in state.advance_to(now, last)]))
                self._keep(direction, state)
        return parts

    def _first_recent(self, segments: SegmentBatch) -> Int64:
        """Return for each segment the first packet since which a hole has not waited too long when it comes."""
        recent = segments.packet - self._limits.late_packets
        return recent if self._clock is None else np.maximum(recent, self._clock.first_recent(segments.packet))

    def _direction(
        self, segments: SegmentBatch, direction: int, rows: Int64, peer_rows: Int64, recent: Int64
    ) -> list[RunBatch]:
        """Reassemble one direction's rows: one by one while there is a hole, in columns where there is none."""
        parts = []
        none = np.zeros(0, np.int64)
        least = 0
        while len(rows) or direction in self._out_of_order:
            count, pieces = self._one_by_one(segments, direction, rows, peer_rows, recent, least)
            parts.append(run_batch([(direction, piece) for piece in pieces]))
            rows = rows[count:]
            if not len(rows):
                break
            runs, remaining, repeated = in_order(segments, rows[:ROWS_AFTER_HOLE], self._expected, none)
            self._retransmissions.add(repeated)
            parts.append(runs)
            taken = min(ROWS_AFTER_HOLE, len(rows)) - len(remaining)
            rows = rows[taken:]
            least = 1 if taken > LEAST_IN_ORDER else ROWS_ONE_BY_ONE
        return parts

    def _one_by_one(
        self, segments: SegmentBatch, direction: int, rows: Int64, peer_rows: Int64, recent: Int64, least: int
    ) -> tuple[int, list[StreamPiece]]:
        """Process rows until nothing is held back, at least `least`. Return how many, and what is delivered."""
        state = self._out_of_order.get(direction)
        if state is None:
            expected, position = self._expected.at(direction)
            state = OutOfOrderDirection(expected, position, self._limits, int(self._losses.values[direction]))
        upto = len(rows)
        acks = _Acks(
            segments,
            peer_rows[np.searchsorted(peer_rows, rows[0]) :] if len(rows) and not state.is_pending else peer_rows,
        )
        out: list[StreamPiece] = []
        for count in range(0, len(rows), ROWS_ONE_BY_ONE):
            part = rows[count : count + ROWS_ONE_BY_ONE]
            for number, values in enumerate(_values(segments, recent, part), count + 1):
                acks.pass_on(state, values[0])
                out += _take(state, *values[1:])
                if number >= least and not state.is_pending:
                    upto = number
                    break
            else:
                continue
            break
        if upto == len(rows):
            acks.pass_on(state, len(segments))
        self._keep(direction, state)
        return upto, out

    def _keep(self, direction: int, state: OutOfOrderDirection) -> None:
        """Store the position of a direction; drop its state where nothing is held back."""
        self._expected.move(direction, state.expected, state.position)
        self._losses.values[direction] = state.losses
        if state.is_pending:
            self._out_of_order[direction] = state
        else:
            self._out_of_order.pop(direction, None)
        if state.retransmissions:
            stretches = np.array(state.retransmissions, np.int64).T
            self._retransmissions.add(np.vstack((np.full(len(state.retransmissions), direction), stretches)))
            state.retransmissions = []
        if state.out_of_window:
            self._ignored[OUT_OF_WINDOW] += state.out_of_window
            state.out_of_window = 0


class _Acks:
    """The peer's acknowledgements in a batch, passed on to a direction as the capture comes to them."""

    def __init__(self, segments: SegmentBatch, rows: Int64) -> None:
        self._segments = segments
        self._rows = rows
        self._at = 0

    def pass_on(self, state: OutOfOrderDirection, row: int) -> None:
        """Pass on those before `row`. While there is no hole they are of no use."""
        upto = int(np.searchsorted(self._rows, row)) if self._at < len(self._rows) else self._at
        if upto > self._at and state.is_pending:
            part = self._rows[self._at : upto]
            ack, packet = self._segments.ack[part], self._segments.packet[part]
            for values in zip(ack.tolist(), packet.tolist(), strict=True):
                state.acknowledge(*values)
        self._at = upto


def _values(segments: SegmentBatch, recent: Int64, rows: Int64) -> "zip[tuple[int, ...]]":
    columns = (segments.seq, segments.flags, segments.size, segments.missing, segments.address,
               segments.time_ns, segments.packet, recent)  # fmt: skip
    return zip(rows.tolist(), *(column[rows].tolist() for column in columns), strict=True)


def _take(
    state: OutOfOrderDirection, seq: int, flags: int, size: int, missing: int, address: int, time_ns: int, packet: int,
    recent: int,
) -> list[StreamPiece]:  # fmt: skip
    """Add one segment: its bytes, the bytes that the snap length cut off, its FIN."""
    seq = (seq + (flags & SYN != 0)) & MASK
    out: list[StreamPiece] = []
    if size:
        out += state.feed(seq, StreamPiece(0, size, RunKind.DATA, address, time_ns, packet), recent)
    if missing:
        cut_off = StreamPiece(0, missing, RunKind.TRUNCATED, NOWHERE, time_ns, packet)
        out += state.feed((seq + size) & MASK, cut_off, recent)
    if flags & FIN:
        out += state.end((seq + size + missing) & MASK, time_ns, packet, recent)
    return out
