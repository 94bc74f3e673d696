"""The fast path of reassembly: every direction of a batch at once, each up to its first hole.

A row can be placed by columns alone when it does not begin behind the furthest byte seen before it in its direction:
it follows, repeats or overlaps. What is new of it comes out; a row that lies wholly before is a retransmission.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind, SegmentBatch
from dissector.core.columns import Column
from dissector.transport.connection_table import ACK, RST, SYN
from dissector.transport.out_of_order import HALF, MASK, WILD, StreamPiece
from dissector.transport.retransmissions import SEEN

NOT_STARTED: Final = -1
FARTHEST: Final = 1 << 45
"""No batch moves a direction as far: 65,536 segments of 64 KiB are 2**32."""


@dataclass(slots=True)
class ExpectedSequence:
    """Where each direction stands: the next sequence number, and the stream offset that goes with it."""

    expected: Column
    position: Column

    def grow(self, directions: int) -> None:
        """Make room for so many."""
        self.expected.grow(directions)
        self.position.grow(directions)

    def at(self, direction: int) -> tuple[int, int]:
        """Next sequence number and stream offset of one direction."""
        return int(self.expected.values[direction]), int(self.position.values[direction])

    def move(self, direction: int, expected: int, position: int) -> None:
        """One direction has come to here."""
        self.expected.values[direction] = expected
        self.position.values[direction] = position

    def begin(self, segments: SegmentBatch, rows: Int64) -> None:
        """Start directions that are new: at their SYN, at what the peer's SYN says, or where the capture begins."""
        directions = segments.direction[rows]
        firsts = np.flatnonzero(np.diff(directions, prepend=-1))
        group = directions[firsts]
        fresh = self.expected.values[group] == NOT_STARTED
        group, first_rows = group[fresh], rows[firsts[fresh]]
        syn = (segments.flags[first_rows] & SYN) != 0
        self.expected.values[group] = (segments.seq[first_rows].astype(np.int64) + syn) & MASK
        self._answered(segments, group, first_rows)

    def _answered(self, segments: SegmentBatch, begun: Int64, first_rows: Int64) -> None:
        """A SYN|ACK tells where the other side begins (RFC 9293, 3.5), should its SYN not be in the capture. Of several
        the first one counts, where it comes before what the side itself says."""
        answers = np.flatnonzero((segments.flags & (SYN | ACK | RST)) == (SYN | ACK))
        peer, firsts = np.unique(segments.direction[answers] ^ 1, return_index=True)
        row = answers[firsts]
        early = self.expected.values[peer] == NOT_STARTED
        if len(begun) and len(peer):
            at = np.minimum(np.searchsorted(begun, peer), len(begun) - 1)
            early |= (begun[at] == peer) & (first_rows[at] > row)
        self.expected.values[peer[early]] = segments.ack[row[early]]


def in_order(
    segments: SegmentBatch, rows: Int64, lines: ExpectedSequence, waiting: Int64
) -> tuple[RunBatch, Int64, Int64]:
    """The runs of `rows` (sorted by direction) up to each direction's first hole, the rows from there on, and the
    stretches that came again, as `Resent.add` takes them.

    Directions in `waiting` hold something back, so none of their rows can come out here.
    """
    direction = segments.direction[rows]
    firsts = np.flatnonzero(np.diff(direction, prepend=-1))
    counts = np.diff(np.append(firsts, len(rows)))
    group = direction[firsts]
    number = np.repeat(np.arange(len(firsts)), counts)
    place = _places(segments, rows, firsts, counts, lines.expected.values[group])
    size, missing = segments.size[rows], segments.missing[rows]
    data_end = place + size
    end = data_end + missing
    base = number * (2 * FARTHEST)
    reach = np.maximum.accumulate(np.clip(end, 0, FARTHEST) + base) - base
    before = np.empty_like(reach)
    before[1:] = reach[:-1]
    before[firsts] = 0
    distance = place - before
    hole = (distance > 0) | (distance < -WILD)
    if len(waiting):
        hole |= np.isin(direction, waiting)
    first_hole = np.minimum.reduceat(np.where(hole, np.arange(len(rows)), len(rows)), firsts)
    first_hole = np.minimum(first_hole, firsts + counts)
    good = np.arange(len(rows)) < first_hole[number] if hole.any() else np.ones(len(rows), np.bool_)

    resent = [_again(segments, rows, lines, place, data_end, before, good)]
    begin = np.maximum(place, before)
    position = lines.position.values[direction]
    keep = good & (data_end > begin)
    parts = [_runs(segments, rows[keep], position[keep], begin[keep], data_end[keep], place[keep])]
    if missing.any():
        resent.append(_again(segments, rows, lines, data_end, end, before, good))
        begin = np.maximum(data_end, before)
        keep = good & (end > begin)
        parts.append(_runs(segments, rows[keep], position[keep], begin[keep], end[keep], None))

    moved = first_hole > firsts
    far = reach[first_hole[moved] - 1]
    lines.expected.values[group[moved]] = (lines.expected.values[group[moved]] + far) & MASK
    lines.position.values[group[moved]] += far
    return joined(parts), rows[~good], np.hstack(resent)


def _again(
    segments: SegmentBatch,
    rows: Int64,
    lines: ExpectedSequence,
    begin: Int64,
    end: Int64,
    before: Int64,
    good: Bool,
) -> Int64:
    """The stretches, `(5, n)`, from `begin` to `end` that lie before what was seen; a keep-alive is none."""
    which = np.flatnonzero(good & (begin < np.minimum(end, before)) & ~((end - begin == 1) & (end == before)))
    direction = segments.direction[rows[which]]
    position = lines.position.values[direction]
    return np.stack((
        direction, position + begin[which], position + np.minimum(end, before)[which],
        segments.time_ns[rows[which]], np.full(len(which), SEEN),
    ))  # fmt: skip


def _places(segments: SegmentBatch, rows: Int64, firsts: Int64, counts: Int64, expected: Int64) -> Int64:
    """How far from the direction's `expected` each row begins, in bytes: steps from row to row, added up.

    A step is taken modulo 2**32 to the nearer side, so a direction may move any distance in a batch.
    """
    seq = segments.seq[rows].astype(np.int64)
    seq += (segments.flags[rows] & SYN) != 0
    previous = np.empty_like(seq)
    previous[1:] = seq[:-1]
    previous[firsts] = expected
    step = ((seq - previous + HALF) & MASK) - HALF
    place: Int64 = np.cumsum(step)
    place -= np.repeat(place[firsts] - step[firsts], counts)
    return place


def _runs(
    segments: SegmentBatch, rows: Int64, position: Int64, begin: Int64, end: Int64, place: Int64 | None
) -> RunBatch:
    """Runs from `begin` to `end`, counted from the direction's `position`; without `place` they are cut off bytes."""
    address = np.full(len(rows), NOWHERE, np.int64) if place is None else segments.address[rows] + (begin - place)
    return RunBatch(
        direction=segments.direction[rows],
        kind=np.full(len(rows), RunKind.TRUNCATED if place is None else RunKind.DATA, np.uint8),
        start=position + begin,
        address=address,
        size=end - begin,
        time_ns=segments.time_ns[rows],
        packet=segments.packet[rows],
    )


def batch_of(pieces: list[tuple[int, StreamPiece]]) -> RunBatch:
    """Pieces of directions as columns."""
    table = np.array([(direction, *piece) for direction, piece in pieces], np.int64).reshape(-1, 7)
    return RunBatch(
        direction=table[:, 0],
        start=table[:, 1],
        size=table[:, 2],
        kind=table[:, 3].astype(np.uint8),
        address=table[:, 4],
        time_ns=table[:, 5],
        packet=table[:, 6],
    )


def joined(parts: list[RunBatch]) -> RunBatch:
    """One batch of all, each direction's rows together and in stream order."""
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) < 2:
        return parts[0] if parts else batch_of([])
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in RunBatch.__slots__}
    order = np.lexsort((columns["start"], columns["direction"]))
    return RunBatch(**{name: column[order] for name, column in columns.items()})
