"""The in-order path of reassembly: every direction of a batch at once, each up to its first hole.

A row is placed by columns alone if it does not begin behind the furthest byte before it in its direction: it follows,
repeats or overlaps. Its new bytes are delivered; a row that lies wholly before them is a retransmission.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind, SegmentBatch
from dissector.core.columns import Column
from dissector.transport.connection_lifecycle import LATE_SYN
from dissector.transport.connection_table import ACK, RST, SYN
from dissector.transport.holes_and_gaps import HALF, LARGEST_WINDOW, MASK, StreamPiece
from dissector.transport.retransmissions import SEEN

NOT_STARTED: Final = -1
FARTHEST: Final = 1 << 45
"""No batch moves a direction as far: 65,536 segments of 64 KiB are 2**32."""


@dataclass(slots=True)
class ExpectedSequence:
    """The next sequence number of each direction, and its stream offset."""

    expected: Column
    position: Column

    def grow(self, directions: int) -> None:
        """Make room for this many directions."""
        self.expected.grow(directions)
        self.position.grow(directions)

    def at(self, direction: int) -> tuple[int, int]:
        """Return the next sequence number and stream offset of one direction."""
        return int(self.expected.values[direction]), int(self.position.values[direction])

    def move(self, direction: int, expected: int, position: int) -> None:
        """Set the next sequence number and stream offset of one direction."""
        self.expected.values[direction] = expected
        self.position.values[direction] = position

    def begin(self, segments: SegmentBatch, rows: Int64) -> None:
        """Start new directions: at their SYN, at the peer's SYN|ACK, or at their first captured segment.

        A SYN may be out of order, too: in the batch that has the first segment it is looked for behind it."""
        directions = segments.direction[rows]
        firsts = np.flatnonzero(np.diff(directions, prepend=-1))
        group = directions[firsts]
        fresh = self.expected.values[group] == NOT_STARTED
        group, first_rows = group[fresh], rows[firsts[fresh]]
        syn = (segments.flags[first_rows] & SYN) != 0
        self.expected.values[group] = (segments.seq[first_rows].astype(np.int64) + syn) & MASK
        late = rows[(segments.flags[rows] & (SYN | RST)) == SYN]
        self._start_before(group, segments.direction[late], segments.seq[late].astype(np.int64) + 1)
        self._answered(segments, group, first_rows)

    def _start_before(self, begun: Int64, directions: Int64, starts: Int64) -> None:
        """Move the starts of directions that have just begun to these, where they are right before them."""
        distance = (self.expected.values[directions] - starts) & MASK
        moved = np.isin(directions, begun) & (distance > 0) & (distance <= LATE_SYN)
        self.expected.values[directions[moved]] = starts[moved] & MASK

    def _answered(self, segments: SegmentBatch, begun: Int64, first_rows: Int64) -> None:
        """Start directions whose SYN was not captured at the acknowledgement of the peer's SYN|ACK (RFC 9293, 3.5). The
        first one counts, if it precedes all segments of the direction, or is right before them in the stream."""
        answers = np.flatnonzero((segments.flags & (SYN | ACK | RST)) == (SYN | ACK))
        peer, firsts = np.unique(segments.direction[answers] ^ 1, return_index=True)
        row = answers[firsts]
        early = self.expected.values[peer] == NOT_STARTED
        if len(begun) and len(peer):
            at = np.minimum(np.searchsorted(begun, peer), len(begun) - 1)
            early |= (begun[at] == peer) & (first_rows[at] > row)
        self._start_before(begun, peer[~early], segments.ack[row[~early]].astype(np.int64))
        self.expected.values[peer[early]] = segments.ack[row[early]]


def in_order(
    segments: SegmentBatch, rows: Int64, expected: ExpectedSequence, waiting: Int64
) -> tuple[RunBatch, Int64, Int64]:
    """Reassemble `rows`, sorted by direction, up to each direction's first hole.

    Returns the runs, the rows from the holes on, and retransmissions as `Retransmissions.add` takes them. Directions in
    `waiting` hold bytes back, so none of their rows are delivered here.
    """
    direction = segments.direction[rows]
    firsts = np.flatnonzero(np.diff(direction, prepend=-1))
    counts = np.diff(np.append(firsts, len(rows)))
    group = direction[firsts]
    number = np.repeat(np.arange(len(firsts)), counts)
    place = _places(segments, rows, firsts, counts, expected.expected.values[group])
    size, missing = segments.size[rows], segments.missing[rows]
    data_end = place + size
    end = data_end + missing
    base = number * (2 * FARTHEST)
    reach = np.maximum.accumulate(np.clip(end, 0, FARTHEST) + base) - base
    before = np.empty_like(reach)
    before[1:] = reach[:-1]
    before[firsts] = 0
    distance = place - before
    hole = (distance > 0) | (distance < -LARGEST_WINDOW)
    if len(waiting):
        hole |= np.isin(direction, waiting)
    first_hole = np.minimum.reduceat(np.where(hole, np.arange(len(rows)), len(rows)), firsts)
    first_hole = np.minimum(first_hole, firsts + counts)
    good = np.arange(len(rows)) < first_hole[number] if hole.any() else np.ones(len(rows), np.bool_)

    retransmissions = [_repeated(segments, rows, expected, place, data_end, before, good)]
    begin = np.maximum(place, before)
    position = expected.position.values[direction]
    keep = good & (data_end > begin)
    parts = [_runs(segments, rows[keep], position[keep], begin[keep], data_end[keep], place[keep])]
    if missing.any():
        retransmissions.append(_repeated(segments, rows, expected, data_end, end, before, good))
        begin = np.maximum(data_end, before)
        keep = good & (end > begin)
        parts.append(_runs(segments, rows[keep], position[keep], begin[keep], end[keep], None))

    moved = first_hole > firsts
    far = reach[first_hole[moved] - 1]
    expected.expected.values[group[moved]] = (expected.expected.values[group[moved]] + far) & MASK
    expected.position.values[group[moved]] += far
    return joined_runs(parts), rows[~good], np.hstack(retransmissions)


def _repeated(
    segments: SegmentBatch,
    rows: Int64,
    expected: ExpectedSequence,
    begin: Int64,
    end: Int64,
    before: Int64,
    good: Bool,
) -> Int64:
    """Return stretches from `begin` to `end` that were seen before, `(5, n)`. Keep-alives do not count."""
    which = np.flatnonzero(good & (begin < np.minimum(end, before)) & ~((end - begin == 1) & (end == before)))
    direction = segments.direction[rows[which]]
    position = expected.position.values[direction]
    return np.stack((
        direction, position + begin[which], position + np.minimum(end, before)[which],
        segments.time_ns[rows[which]], np.full(len(which), SEEN),
    ))  # fmt: skip


def _places(segments: SegmentBatch, rows: Int64, firsts: Int64, counts: Int64, expected: Int64) -> Int64:
    """Return the distance of each row from its direction's `expected`, in bytes: the sum of steps from row to row.

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
    """Return runs from `begin` to `end`, relative to `position`. Without `place` they are bytes that were cut off."""
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


def run_batch(pieces: list[tuple[int, StreamPiece]]) -> RunBatch:
    """Return pieces of directions as columns."""
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


def joined_runs(parts: list[RunBatch]) -> RunBatch:
    """Merge runs, each direction's rows together and in stream order."""
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) < 2:
        return parts[0] if parts else run_batch([])
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in RunBatch.__slots__}
    order = np.lexsort((columns["start"], columns["direction"]))
    return RunBatch(**{name: column[order] for name, column in columns.items()})
