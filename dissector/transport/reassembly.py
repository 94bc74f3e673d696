"""TCP reassembly: `SegmentBatch` to `RunBatch`.

In order is the common case: one check over the columns proves which directions are in order and contiguous in this
batch; only the others take the careful path, segment by segment.

Invariants, each a property test:
  * the runs of a direction tile its stream from the first byte on, without overlap, gaps in band;
  * any cutting of the capture into batches gives the same runs;
  * sequence numbers wrap; stream offsets don't.
"""

from collections import Counter

import numpy as np
import numpy.typing as npt

from dissector.columns import Column
from dissector.events import NOWHERE, RunBatch, RunKind, SegmentBatch
from dissector.limits import Limits
from dissector.transport.careful import CarefulDirection, Piece
from dissector.transport.flows import FIN, RST, SYN

Ints = npt.NDArray[np.int64]
MODULUS = 1 << 32
NOT_STARTED = -1


class Reassembler:
    """Reassembles every direction of a capture."""

    def __init__(self, limits: Limits, ignored: Counter[str]) -> None:
        self._limits = limits
        self._ignored = ignored
        self._expected = Column(np.int64, NOT_STARTED)
        """The next sequence number of each direction."""
        self._position = Column(np.int64)
        """The stream offset that goes with it."""
        self._careful: dict[int, CarefulDirection] = {}
        """Directions that hold something back."""

    def feed(self, segments: SegmentBatch) -> RunBatch:
        """Bytes that are in order now."""
        size = segments.size + segments.missing
        useful = ((size > 0) | ((segments.flags & (SYN | FIN)) != 0)) & ((segments.flags & RST) == 0)
        rows = np.flatnonzero(useful)
        if not len(rows):
            return _batch([], [])
        rows = rows[np.argsort(segments.direction[rows], kind="stable")]
        self._expected.grow(int(segments.direction.max()) + 1)
        self._position.grow(len(self._expected))
        return self._runs(segments, rows, size[rows])

    def _runs(self, segments: SegmentBatch, rows: Ints, size: Ints) -> RunBatch:
        direction = segments.direction[rows]
        firsts = np.flatnonzero(np.diff(direction, prepend=-1))
        counts = np.diff(np.append(firsts, len(rows)))
        syn = (segments.flags[rows] & SYN) != 0
        seq = (segments.seq[rows].astype(np.int64) + syn) % MODULUS
        group = direction[firsts]
        fresh = self._expected.values[group] == NOT_STARTED
        self._expected.values[group[fresh]] = seq[firsts][fresh]
        before = np.cumsum(size) - size
        before -= np.repeat(before[firsts], counts)
        straight = seq == (np.repeat(self._expected.values[group], counts) + before) % MODULUS
        simple = np.logical_and.reduceat(straight & (segments.missing[rows] == 0), firsts)
        if self._careful:
            simple &= ~np.isin(group, np.fromiter(self._careful, np.int64))
        start = np.repeat(self._position.values[group], counts) + before
        keep = np.repeat(simple, counts) & (size > 0)
        chosen = rows[keep]
        whole = RunBatch(
            direction[keep], np.zeros(len(chosen), np.uint8), start[keep], segments.address[chosen],
            size[keep], segments.time_ns[chosen], segments.packet[chosen],
        )  # fmt: skip
        total = np.add.reduceat(size, firsts)
        done = group[simple]
        self._expected.values[done] = (self._expected.values[done] + total[simple]) % MODULUS
        self._position.values[done] += total[simple]
        careful = [
            (int(group[n]), piece)
            for n in np.flatnonzero(~simple).tolist()
            for piece in self._feed_careful(segments, int(group[n]), rows[firsts[n] : firsts[n] + counts[n]])
        ]
        return _batch([whole], careful)

    def _feed_careful(self, segments: SegmentBatch, direction: int, rows: Ints) -> list[Piece]:
        state = self._careful.get(direction)
        if state is None:
            expected, position = int(self._expected.values[direction]), int(self._position.values[direction])
            state = CarefulDirection(expected, position, self._limits, self._ignored)
        out: list[Piece] = []
        columns = (segments.seq, segments.flags, segments.size, segments.missing, segments.address,
                   segments.time_ns, segments.packet)  # fmt: skip
        for seq, flags, size, missing, address, time_ns, packet in zip(
            *(c[rows].tolist() for c in columns), strict=True
        ):
            seq += bool(flags & SYN)
            if size or not missing:
                out += state.feed(seq, Piece(0, size, RunKind.DATA, address, time_ns, packet))
            if missing:
                out += state.feed(seq + size, Piece(0, missing, RunKind.TRUNCATED, NOWHERE, time_ns, packet))
        self._expected.values[direction] = state.expected
        self._position.values[direction] = state.position
        if state.waits:
            self._careful[direction] = state
        else:
            self._careful.pop(direction, None)
        return [piece for piece in out if piece.size]

    def finish(self) -> RunBatch:
        """The capture ends: what was held back comes out, its holes as gaps."""
        pieces = [(direction, piece) for direction, state in self._careful.items() for piece in state.finish()]
        self._careful.clear()
        return _batch([], [(direction, piece) for direction, piece in pieces if piece.size])


def _batch(whole: list[RunBatch], pieces: list[tuple[int, Piece]]) -> RunBatch:
    """Columns of runs; rows of one direction stay together."""
    table = np.array([(direction, *piece) for direction, piece in pieces], np.int64).reshape(-1, 7)

    def column(number: int, name: str) -> Ints:
        return np.concatenate([*(getattr(runs, name) for runs in whole), table[:, number]])

    return RunBatch(
        direction=column(0, "direction"),
        start=column(1, "start"),
        size=column(2, "size"),
        kind=column(3, "kind").astype(np.uint8),
        address=column(4, "address"),
        time_ns=column(5, "time_ns"),
        packet=column(6, "packet"),
    )
