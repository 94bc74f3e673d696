"""The fast path of framing: whole frames of every direction of a batch at once, many a segment or many rows a frame.

Nearly every segment begins with a frame. So every run is split as if it did, all runs side by side, a frame a round;
then each direction is followed from its position: where that is the first byte of a run, the frames found in the run
are used. Frames that cross the end of their run are located by stream offset.

A direction is followed up to a gap between frames, a size that is impossible, or a frame that is incomplete. From there
on its runs are held as a `PendingStream`.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import FrameBatch, FrameKind, RunBatch, RunKind
from dissector.core.store import Store
from dissector.framing.sizes import LEAST_FRAME, LEAST_HEAD, PREFIX

FEW_RUNS: Final = 24
"""Below this many runs it is cheaper to split one after the other (measured: a round costs as much as 30 frames)."""


class FastPathStop(NamedTuple):
    """How far a direction was followed: a stream offset, and the row of the batch that has it."""

    row: int
    offset: int


@dataclass(slots=True)
class _Frames:
    """Frames found, by the row they begin in: those within a row as arrays, those across rows one by one."""

    row: list[Int64] = field(default_factory=list)
    start: list[Int64] = field(default_factory=list)
    size: list[Int64] = field(default_factory=list)
    spans: list[tuple[int, int, int, int]] = field(default_factory=list)
    """First row, stream offset, size, and the row after the last."""


class FastPath:
    """Frames of the runs of one batch. `largest` is the largest size that is believed, its prefix included."""

    def __init__(self, store: Store, runs: RunBatch, largest: int) -> None:
        self._store = store
        self._runs = runs
        self._largest = largest
        self._ends = runs.start + runs.size
        self._data = runs.kind == RunKind.DATA
        self._walk()
        self._frames = _Frames()

    def _walk(self) -> None:
        """Split every run from its first byte on.

        `_offset` is where its complete frames end; `_tail` is the size of the frame that begins there and goes on in
        the next run, 0 where unknown."""
        runs = self._runs
        self._offset = np.zeros(len(runs), np.int64)
        self._tail = np.zeros(len(runs), np.int64)
        found: list[tuple[Int64, Int64, Int64]] = []
        active = np.flatnonzero(self._data & (runs.size >= PREFIX))
        while len(active) > FEW_RUNS:
            offset = self._offset[active]
            words = self._store.gather(runs.address[active] + offset, PREFIX)
            size = words.view(">i4").reshape(-1).astype(np.int64) + PREFIX
            fits = (size >= LEAST_FRAME) & (size <= self._largest)
            whole = fits & (size <= runs.size[active] - offset)
            self._tail[active] = np.where(fits & ~whole, size, 0)
            active, offset, size = active[whole], offset[whole], size[whole]
            found.append((active, offset, size))
            self._offset[active] = offset + size
            active = active[self._offset[active] + PREFIX <= runs.size[active]]
        found += [self._walk_one(row, int(self._offset[row])) for row in active.tolist()]
        row, offset, size = (np.concatenate(columns) for columns in zip((_NONE, _NONE, _NONE), *found, strict=True))
        order = np.argsort(row, kind="stable")
        self._found = row[order], offset[order], size[order]
        self._plain = self._data & (self._offset == runs.size)

    def _walk_one(self, row: int, offset: int) -> tuple[Int64, Int64, Int64]:
        """Return the complete frames of a run from `offset` on, and set `_offset` and `_tail` as `_walk` does."""
        size = int(self._runs.size[row])
        data = self._store.read(int(self._runs.address[row]), size)
        offsets, sizes = [], []
        self._tail[row] = 0
        while offset + PREFIX <= size:
            length = PREFIX + int.from_bytes(data[offset : offset + PREFIX], "big", signed=True)
            if not LEAST_FRAME <= length <= self._largest:
                break
            if offset + length > size:
                self._tail[row] = length
                break
            offsets.append(offset)
            sizes.append(length)
            offset += length
        self._offset[row] = offset
        return np.full(len(sizes), row), np.array(offsets, np.int64), np.array(sizes, np.int64)

    def follow(self, lows: Int64, highs: Int64, offsets: Int64) -> list[FastPathStop]:
        """Follow directions from stream offsets on, each in its rows `low` to before `high`. Return where they stop."""
        taken = np.zeros(len(self._runs) + 1, np.int64)
        uneven = np.append(np.flatnonzero(~self._plain), len(self._runs))
        nexts = uneven[np.searchsorted(uneven, lows)]
        at_start = self._runs.start[lows] == offsets
        stops = []
        for low, high, offset, first, even in zip(
            lows.tolist(), highs.tolist(), offsets.tolist(), nexts.tolist(), at_start.tolist(), strict=True
        ):
            if even and first >= high:
                taken[low] += 1
                taken[high] -= 1
                stops.append(FastPathStop(high, int(self._ends[high - 1])))
            else:
                stops.append(self._follow(low, high, offset, taken, uneven))
        keep = np.cumsum(taken)[self._found[0]] > 0
        row, offset, size = (column[keep] for column in self._found)
        self._add(row, self._runs.start[row] + offset, size)
        return stops

    def _follow(self, row: int, high: int, at: int, taken: Int64, uneven: Int64) -> FastPathStop:
        """Follow one direction. Rows whose frames count are marked in `taken`: +1 at the first, -1 after the last."""
        starts, ends = self._runs.start, self._ends
        while row < high:
            if at == starts[row]:
                last = min(int(uneven[np.searchsorted(uneven, row)]), high - 1)
                if not self._data[last]:
                    last -= 1
                if last < row:
                    break
                taken[row] += 1
                taken[last + 1] -= 1
                row = last
                at = int(starts[row] + self._offset[row])
            elif self._data[row]:
                found = self._walk_one(row, at - int(starts[row]))
                self._add(found[0], starts[row] + found[1], found[2])
                at = int(starts[row] + self._offset[row])
            else:
                break
            if at == ends[row]:
                row += 1
                continue
            size = int(self._tail[row]) or self._size_across(row, high, at)
            if not size or at + size > ends[high - 1] or not self._has_head(row, high, at, size):
                break
            into = row + int(np.searchsorted(ends[row:high], at + size, side="right"))
            upto = into + (into < high and bool(starts[into] < at + size))
            self._frames.spans.append((row, at, size, upto))
            row, at = into, at + size
        return FastPathStop(row, at)

    def _size_across(self, row: int, high: int, at: int) -> int:
        """The size of a frame whose prefix crosses the end of a run; 0 where it is incomplete or impossible."""
        prefix = b""
        while row < high and self._data[row] and len(prefix) < PREFIX:
            inside = at - int(self._runs.start[row])
            size = min(int(self._runs.size[row]) - inside, PREFIX - len(prefix))
            prefix += self._store.read(int(self._runs.address[row]) + inside, size)
            at += size
            row += 1
        size = PREFIX + int.from_bytes(prefix, "big", signed=True) if len(prefix) == PREFIX else 0
        return size if LEAST_FRAME <= size <= self._largest else 0

    def _has_head(self, row: int, high: int, at: int, size: int) -> bool:
        """Whether enough of a frame's beginning was captured to recognize it."""
        need = at + min(size, LEAST_HEAD)
        while row < high and self._data[row] and self._ends[row] < need:
            row += 1
        return row < high and bool(self._data[row])

    def _add(self, row: Int64, start: Int64, size: Int64) -> None:
        self._frames.row.append(row)
        self._frames.start.append(start)
        self._frames.size.append(size)

    def frames(self) -> FrameBatch:
        """Return the frames of the directions followed, in no order."""
        runs, found = self._runs, self._frames
        row, start, size = (np.concatenate([*parts, _NONE]) for parts in (found.row, found.start, found.size))
        spans = np.array(found.spans, np.int64).reshape(-1, 4)
        counts = spans[:, 3] - spans[:, 0]
        firsts = np.cumsum(counts) - counts
        rows = np.repeat(spans[:, 0] - firsts, counts) + np.arange(int(counts.sum()))
        begin = np.maximum(runs.start[rows], np.repeat(spans[:, 1], counts))
        end = np.minimum(self._ends[rows], np.repeat(spans[:, 1] + spans[:, 2], counts))
        address = np.where(self._data[rows], runs.address[rows] + begin - runs.start[rows], runs.address[rows])
        seen = np.concatenate([row, spans[:, 0]])
        piece = np.concatenate([np.arange(len(row)), len(row) + firsts, [len(row) + len(rows)]])
        return FrameBatch(
            direction=runs.direction[seen],
            kind=np.full(len(seen), FrameKind.FRAME, np.uint8),
            start=np.concatenate([start, spans[:, 1]]),
            size=np.concatenate([size, spans[:, 2]]),
            time_ns=runs.time_ns[seen],
            packet=runs.packet[seen],
            piece=piece,
            piece_address=np.concatenate([runs.address[row] + start - runs.start[row], address]),
            piece_size=np.concatenate([size, end - begin]),
        )


_NONE: Final = np.zeros(0, np.int64)
