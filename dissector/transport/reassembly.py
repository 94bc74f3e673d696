"""TCP reassembly: `SegmentBatch` to `RunBatch`.

In order is the common case, and so is a repeated segment: one check over the columns finds, for every direction of the
batch at once, the rows up to its first hole. Only from there on a direction takes the careful path, segment by
segment, and comes back as soon as it has no hole any more.

Invariants, each a property test:
  * the runs of a direction tile its stream from the first byte on, without overlap, gaps in band;
  * any cutting of the capture into batches gives the same runs;
  * sequence numbers wrap; stream offsets don't.
"""

from collections import Counter
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind, SegmentBatch
from dissector.core.columns import Column, unique
from dissector.core.limits import Limits
from dissector.transport.connection_table import ACK, FIN, RST, SYN
from dissector.transport.in_order import NOT_STARTED, ExpectedSequence, batch_of, in_order, joined
from dissector.transport.out_of_order import MASK, OutOfOrderDirection, StreamPiece
from dissector.transport.retransmissions import Retransmissions

OUT_OF_WINDOW: Final = "TCP sequence number that cannot be"
STRETCH: Final = 1024
"""Rows tried at once after a hole: few enough to be cheap where the next hole is near."""
WORTH_IT: Final = 32
"""Rows in order from which on the columnar check beats going one by one (measured: it costs as much as 20 rows)."""
PATIENCE: Final = 128
"""Rows taken one by one before the columnar check is tried again where it was not worth it."""


class Reassembler:
    """Reassembles every direction of a capture. Segments that can't be are counted in `ignored`, what comes again or
    late is entered in `resent`."""

    def __init__(self, limits: Limits, ignored: Counter[str], resent: Retransmissions) -> None:
        self._limits = limits
        self._ignored = ignored
        self._resent = resent
        self._lines = ExpectedSequence(Column(np.int64, NOT_STARTED), Column(np.int64))
        self._careful: dict[int, OutOfOrderDirection] = {}
        """Directions that hold something back."""

    def feed(self, segments: SegmentBatch, closed: Int64) -> RunBatch:
        """Return the bytes that are in order now, and all that is held of connections that are `closed`."""
        if not len(segments):
            return batch_of([])
        flags = segments.flags
        useful = (((segments.size + segments.missing) > 0) | ((flags & (SYN | FIN)) != 0)) & ((flags & RST) == 0)
        rows = np.flatnonzero(useful)
        rows = rows[np.argsort(segments.direction[rows], kind="stable")]
        self._lines.grow((int(segments.direction.max()) | 1) + 1)
        self._lines.begin(segments, rows)
        parts = []
        waiting = list(self._careful)
        if len(rows):
            runs, rows, again = in_order(segments, rows, self._lines, np.array(waiting, np.int64))
            self._resent.add(again)
            parts.append(runs)
        if len(rows) or waiting:
            parts += self._holes(segments, rows, waiting)
        parts.append(self.end(closed))
        return joined(parts)

    def end(self, connections: Int64) -> RunBatch:
        """Return what is held back of these connections, its holes as gaps."""
        ending = set(connections.tolist()) if self._careful else set()
        return self._release([direction for direction in self._careful if direction >> 1 in ending])

    def flush(self) -> RunBatch:
        """Return all that is held back, its holes as gaps."""
        return self._release(list(self._careful))

    @property
    def held_bytes(self) -> int:
        """Bytes held back."""
        return int(self.held_regions()[1].sum())

    def held_regions(self) -> Int64:
        """Addresses and sizes of what is held back, `(2, n)`."""
        held = [piece for state in self._careful.values() for piece in state.held if piece.address != NOWHERE]
        return np.array([(piece.address, piece.size) for piece in held], np.int64).reshape(-1, 2).T

    def pending(self) -> Int64:
        """Packets and times of what is held back, `(2, n)`."""
        held = [(piece.packet, piece.time_ns) for state in self._careful.values() for piece in state.held]
        return np.array(held, np.int64).reshape(-1, 2).T

    def _release(self, directions: list[int]) -> RunBatch:
        out = []
        for direction in directions:
            state = self._careful[direction]
            out += [(direction, piece) for piece in state.finish()]
            self._keep(direction, state)
        return batch_of(out)

    def _holes(self, segments: SegmentBatch, rows: Int64, waiting: list[int]) -> list[RunBatch]:
        """Directions that have a hole: those with `rows` from there on, those that only hear from their peer."""
        acks = np.flatnonzero(segments.flags & ACK)
        acks = acks[np.argsort(segments.direction[acks], kind="stable")]
        whose = segments.direction[acks]
        own = segments.direction[rows]
        now = int(segments.packet[-1]) + 1
        parts = []
        for direction in sorted({*unique(own).tolist(), *waiting}):
            mine = rows[slice(*np.searchsorted(own, [direction, direction + 1]))]
            heard = acks[slice(*np.searchsorted(whose, [direction ^ 1, (direction ^ 1) + 1]))]
            if len(mine) or len(heard):
                parts += self._direction(segments, direction, mine, heard)
            state = self._careful.get(direction)
            if state is not None:
                parts.append(batch_of([(direction, piece) for piece in state.settle(now)]))
                self._keep(direction, state)
        return parts

    def _direction(self, segments: SegmentBatch, direction: int, rows: Int64, heard: Int64) -> list[RunBatch]:
        """One direction's rows: one by one while there is a hole, by column where there is none."""
        parts = []
        none = np.zeros(0, np.int64)
        least = 0
        while len(rows) or direction in self._careful:
            count, pieces = self._one_by_one(segments, direction, rows, heard, least)
            parts.append(batch_of([(direction, piece) for piece in pieces]))
            rows = rows[count:]
            if not len(rows):
                break
            runs, left, again = in_order(segments, rows[:STRETCH], self._lines, none)
            self._resent.add(again)
            parts.append(runs)
            taken = min(STRETCH, len(rows)) - len(left)
            rows = rows[taken:]
            least = 1 if taken > WORTH_IT else PATIENCE
        return parts

    def _one_by_one(
        self, segments: SegmentBatch, direction: int, rows: Int64, heard: Int64, least: int
    ) -> tuple[int, list[StreamPiece]]:
        """Take rows until nothing is held back any more, at least `least`; how many, and what comes out."""
        state = self._careful.get(direction)
        if state is None:
            expected, position = self._lines.at(direction)
            state = OutOfOrderDirection(expected, position, self._limits)
        upto = len(rows)
        acks = _Acks(segments, heard[np.searchsorted(heard, rows[0]) :] if len(rows) and not state.waits else heard)
        out: list[StreamPiece] = []
        for count in range(0, len(rows), PATIENCE):
            part = rows[count : count + PATIENCE]
            for number, values in enumerate(_values(segments, part), count + 1):
                acks.told(state, values[0])
                out += _take(state, *values[1:])
                if number >= least and not state.waits:
                    upto = number
                    break
            else:
                continue
            break
        if upto == len(rows):
            acks.told(state, len(segments))
        self._keep(direction, state)
        return upto, out

    def _keep(self, direction: int, state: OutOfOrderDirection) -> None:
        """Write back where a direction stands; forget its state where nothing is held back."""
        self._lines.move(direction, state.expected, state.position)
        if state.waits:
            self._careful[direction] = state
        else:
            self._careful.pop(direction, None)
        if state.resent:
            stretches = np.array(state.resent, np.int64).T
            self._resent.add(np.vstack((np.full(len(state.resent), direction), stretches)))
            state.resent = []
        if state.wild:
            self._ignored[OUT_OF_WINDOW] += state.wild
            state.wild = 0


class _Acks:
    """The peer's acknowledgements in a batch, told to a direction as the capture comes to them."""

    def __init__(self, segments: SegmentBatch, rows: Int64) -> None:
        self._segments = segments
        self._rows = rows
        self._at = 0

    def told(self, state: OutOfOrderDirection, row: int) -> None:
        """Tell those before `row`. Those that come while there is no hole say nothing."""
        upto = int(np.searchsorted(self._rows, row)) if self._at < len(self._rows) else self._at
        if upto > self._at and state.waits:
            part = self._rows[self._at : upto]
            ack, packet = self._segments.ack[part], self._segments.packet[part]
            for values in zip(ack.tolist(), packet.tolist(), strict=True):
                state.acknowledge(*values)
        self._at = upto


def _values(segments: SegmentBatch, rows: Int64) -> "zip[tuple[int, ...]]":
    columns = (segments.seq, segments.flags, segments.size, segments.missing, segments.address,
               segments.time_ns, segments.packet)  # fmt: skip
    return zip(rows.tolist(), *(column[rows].tolist() for column in columns), strict=True)


def _take(
    state: OutOfOrderDirection, seq: int, flags: int, size: int, missing: int, address: int, time_ns: int, packet: int
) -> list[StreamPiece]:
    """One segment: its bytes, the bytes that the snap length cut off, its FIN."""
    seq = (seq + (flags & SYN != 0)) & MASK
    out: list[StreamPiece] = []
    if size:
        out += state.feed(seq, StreamPiece(0, size, RunKind.DATA, address, time_ns, packet))
    if missing:
        out += state.feed((seq + size) & MASK, StreamPiece(0, missing, RunKind.TRUNCATED, NOWHERE, time_ns, packet))
    if flags & FIN:
        out += state.end((seq + size + missing) & MASK, time_ns, packet)
    return out
