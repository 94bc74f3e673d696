"""The framing stage: runs in, frames out. Every direction's bytes cut at Kafka's 4-byte size prefixes.

Invariants, each a property test:
  * the rows of a direction (frames, gaps, unparsed bytes) tile its stream, from where it was taken for Kafka;
  * any way of cutting the stream into runs and batches gives the same frames;
  * a frame of which bytes are missing is still one row; framing goes on at its end. Only where a size prefix is lost is
    the next frame searched for (`resync`), and what was skipped is a row;
  * what is held is bounded: a search sees two windows of `limits.resync_bytes`, and all directions together hold
    `limits.held_runs`.

What is whole in the columns goes the fast way (`chains`). What is held for more is cut one by one (`cutting`), once it
is known what the direction is (`deciding`), and is found again where its place is lost (`seeking`). All share `state`.

Who speaks Kafka, and what a frame's head looks like, a `Detector` says: `session` has one.
"""

from collections.abc import Iterator

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, FrameBatch, FrameKind, RunBatch
from dissector.core.limits import Limits
from dissector.core.stage import Position, oldest_position
from dissector.core.store import Store
from dissector.framing.classifier import Classifier
from dissector.framing.detector import Classification, Detector
from dissector.framing.direction_state import DirectionState
from dissector.framing.fast_path import FastPath
from dissector.framing.frame_splitter import FrameSplitter
from dissector.framing.pending_stream import PendingStream
from dissector.framing.resynchronizer import Resynchronizer
from dissector.framing.sizes import PREFIX

_UNDECIDED, _PERHAPS, _FRAMES, _SEARCH, _OTHER = Classification
"""Bound once: members of an enum are slow to look up."""


class Framer:
    """Frames every direction of a capture."""

    def __init__(self, store: Store, recogniser: Detector, limits: Limits) -> None:
        self._store = store
        self._recogniser = recogniser
        self._limits = limits
        self._state = DirectionState()
        self._cutter = FrameSplitter(store, limits, self._state)
        self._decider = Classifier(store, recogniser, limits, self._state, self._cutter)
        self._seeker = Resynchronizer(store, recogniser, limits, self._state, self._cutter, self._decider)
        self._held_runs = 0
        """At most so many runs are held: what is left behind is subtracted when it matters."""

    def feed(self, batch: RunBatch) -> list[FrameBatch]:
        """Return the frames that these runs complete. Runs of one direction stand together, in stream order."""
        self._frame(batch)
        return [self._state.rows.batch()]

    def end(self, connections: Int64) -> Iterator[FrameBatch]:
        """Return what is held of these connections, and the frames found in directions that lost their place."""
        if len(connections):
            self._end_connections(connections)
        return self._search_all()

    def _end_connections(self, connections: Int64) -> None:
        ending = set(connections.tolist()) if self._state.held or self._state.untold else set()
        self._state.over = {
            direction for direction in (*self._state.held, *self._state.untold) if direction >> 1 in ending
        }
        self._end(self._state.over)

    def flush(self) -> Iterator[FrameBatch]:
        """Return all that is held: the capture ends."""
        if not self._state.ended:
            self._state.ended = True
            self._end({*self._state.held, *self._state.untold})
        return self._search_all()

    def _frame(self, runs: RunBatch) -> None:
        if len(runs):
            self._state.grow((int(runs.direction.max()) | 1) + 1)
            firsts = np.flatnonzero(np.diff(runs.direction, prepend=-1))
            self._decider.recognise(runs, firsts)
            left = self._follow(runs, firsts, np.append(firsts[1:], len(runs)))
            for low, high in left:
                self._take(runs, low, high)
            self._decider.decide([int(runs.direction[low]) for low, _ in left])
            if self._held_runs > self._limits.held_runs:
                self._let_go()

    def _search_all(self) -> Iterator[FrameBatch]:
        """Search all directions that lost their place and changed since.

        Directions of clients are searched first, and what is found there is given before those of servers are: by then
        the index holds these requests, and responses are recognized by them."""
        while len(frames := self._search()):
            yield frames

    def _search(self) -> FrameBatch:
        """Search directions that changed, those of clients first, until there are frames."""
        for asking in (True, False):
            for direction in sorted(d for d in self._state.stirred if self._recogniser.asks(d) == asking):
                self._state.stirred.discard(direction)
                self._seeker.seek(direction)
            found = self._state.rows.batch()
            if len(found):
                return found
        return self._state.rows.batch()

    def ignored(self, direction: int) -> int:
        """Bytes of a direction that is not Kafka."""
        return int(self._state.ignored.values[direction]) if direction < len(self._state.ignored) else 0

    @property
    def held_bytes(self) -> int:
        """At most a frame, or two windows of `limits.resync_bytes`, a direction; `limits.held_runs` runs in all."""
        return int(self.held_regions()[1].sum())

    def held_regions(self) -> Int64:
        """Addresses and sizes of what is held, `(2, n)`."""
        untold = [piece for rows in self._state.untold.values() for row in rows for piece in row.pieces]
        told_later = np.array(untold, np.int64).reshape(-1, 2).T
        held = [stream.places() for stream in self._state.held.values()]
        return np.concatenate([told_later[:, told_later[0] != NOWHERE], *held], axis=1)

    def oldest_pending(self, after_ns: int = -1) -> Position:
        """The first packet with a first byte that is held of a direction."""
        held = [stream.run().seen[::-1] for stream in self._state.held.values() if len(stream)]
        return oldest_position(np.array(held, np.int64).reshape(-1, 2).T, after_ns)

    def _end(self, directions: set[int]) -> None:
        """No more bytes will come of them."""
        held = sorted(direction for direction in directions if direction in self._state.held)
        self._decider.decide(sorted(held, key=self._recogniser.asks, reverse=True))
        for direction in held:
            if direction in self._state.held and self._state.mode.values[direction] == _FRAMES:
                self._cutter.split(direction, self._state.held[direction])
        self._state.stirred |= directions

    def _follow(self, runs: RunBatch, lows: Int64, highs: Int64) -> list[tuple[int, int]]:
        """The common case, at once: whole frames, as far as columns can tell. Rows that are left, by direction."""
        lows = lows.copy()
        direction = runs.direction[lows]
        if self._state.held:
            for group in np.flatnonzero(np.isin(direction, np.fromiter(self._state.held, np.int64))).tolist():
                lows[group] = self._catch_up(runs, int(lows[group]), int(highs[group]))
        row = np.minimum(lows, len(runs) - 1)
        at = self._state.next.values[direction]
        fast = (self._state.mode.values[direction] == _FRAMES) & (lows < highs)
        fast &= (runs.start[row] <= at) & (at < runs.start[row] + runs.size[row])
        if self._state.held:
            fast &= ~np.isin(direction, np.fromiter(self._state.held, np.int64))
        if fast.any():
            chains = FastPath(self._store, runs, PREFIX + self._limits.frame_size)
            stops = chains.follow(lows[fast], highs[fast], at[fast])
            self._state.rows.add_batch(chains.frames())
            lows[fast], self._state.next.values[direction[fast]] = np.array(stops, np.int64).T
        other = self._state.mode.values[direction] == _OTHER
        last = highs[other] - 1
        self._state.ignored.values[direction[other]] += runs.start[last] + runs.size[last] - runs.start[lows[other]]
        left = (lows < highs) & ~other
        return list(zip(lows[left].tolist(), highs[left].tolist(), strict=True))

    def _catch_up(self, runs: RunBatch, low: int, high: int) -> int:
        """Give a direction of which something is held what that needs, and no more: the row to go on with."""
        direction = int(runs.direction[low])
        ends = runs.start[low:high] + runs.size[low:high]
        first = low
        while low < high and self._state.mode.values[direction] == _FRAMES:
            stream = self._state.held.get(direction)
            if stream is None:
                break
            upto = min(high, max(low, first + int(np.searchsorted(ends, stream.need))) + 1)
            self._take(runs, low, upto)
            low = upto
            if (
                self._state.mode.values[direction] == _FRAMES
                and direction in self._state.held
                and stream.at >= runs.start[upto - 1]
            ):
                del self._state.held[direction]
                self._state.next.values[direction] = stream.at
                return upto - 1
        return low

    def _take(self, runs: RunBatch, low: int, high: int) -> None:
        """Rows of one direction go the careful way."""
        direction = int(runs.direction[low])
        mode = int(self._state.mode.values[direction])
        stream = self._state.held.get(direction)
        if stream is None:
            stream = self._state.held[direction] = PendingStream(int(self._state.next.values[direction]))
        stream.extend(runs, low, high)
        self._held_runs += high - low
        if mode in (_SEARCH, _PERHAPS):
            self._state.stirred.add(direction)
        elif mode == _FRAMES and stream.end >= stream.need:
            self._cutter.split(direction, stream)

    def _let_go(self) -> None:
        """Too much is held: those that have waited longest come out as they are."""
        self._held_runs = sum(map(len, self._state.held.values()))
        if self._held_runs <= self._limits.held_runs:
            return
        for direction in sorted(self._state.held, key=lambda d: self._state.held[d].run().seen[1]):
            stream = self._state.held[direction]
            self._held_runs -= len(stream)
            if self._state.mode.values[direction] in (_UNDECIDED, _PERHAPS):
                self._state.leave(direction)
            else:
                self._state.mode.values[direction] = _SEARCH
                self._state.searches.pop(direction, None)
                self._state.skip(direction, stream, FrameKind.UNPARSED, stream.end - stream.at)
                del self._state.held[direction]
            if self._held_runs <= self._limits.held_runs // 2:
                return
