"""The framing stage: splits the runs of every direction at Kafka's 4-byte size prefixes.

Invariants, each a property test:
  * the rows of a direction (frames, gaps, unparsed bytes) tile its stream, from where it was classified as Kafka;
  * any cutting of the stream into runs and batches gives the same frames;
  * a frame of which bytes are missing is still one row; framing goes on at its end. Only where a size prefix is lost is
    the next frame searched for, and the skipped bytes are a row;
  * what is held is bounded: a search sees two windows of `limits.resync_bytes`, and all directions together hold
    `limits.held_runs`.

`fast_path` splits what is complete natively. The rest is held: `classifier` finds out what a direction is,
`frame_splitter` splits it frame by frame, `resynchronizer` searches for the next frame. All share `direction_state`.
A `ProtocolDetector` knows how Kafka's frames look; `detection` has it.
"""

from collections.abc import Iterator

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, FrameBatch, FrameKind, RunBatch, RunKind
from dissector.core.limits import Limits
from dissector.core.stage import Position, oldest_position
from dissector.core.store import Store
from dissector.framing.classifier import Classifier
from dissector.framing.detector import ALERT_SIZE, PREFIX, Classification, ProtocolDetector
from dissector.framing.direction_state import DirectionState
from dissector.framing.fast_path import follow
from dissector.framing.frame_splitter import FrameSplitter
from dissector.framing.pending_stream import PendingStream
from dissector.framing.resynchronizer import Resynchronizer

_UNDECIDED, _POSSIBLE, _FRAMES, _SEARCH, _OTHER = map(int, Classification)
"""Plain numbers: numpy compares its own with members of an enum slowly."""


class Framer:
    """Frames every direction of a capture. A `Stage`."""

    def __init__(self, store: Store, detector: ProtocolDetector, limits: Limits) -> None:
        self._store = store
        self._detector = detector
        self._limits = limits
        self._state = DirectionState()
        self._splitter = FrameSplitter(store, limits, self._state)
        self._classifier = Classifier(store, detector, limits, self._state, self._splitter)
        self._resynchronizer = Resynchronizer(store, detector, limits, self._state, self._splitter, self._classifier)
        self._held_runs = 0
        """An upper bound on the runs held: those framed since are subtracted when it matters."""

    def feed(self, batch: RunBatch) -> list[FrameBatch]:
        """Return the frames that these runs complete. Runs of one direction are adjacent, in stream order."""
        self._frame(batch)
        return [self._state.rows.batch()]

    def end(self, connections: Int64) -> Iterator[FrameBatch]:
        """Return what is held of these connections, and the frames found in directions that lost their place."""
        if len(connections):
            self._end_connections(connections)
        return self._search_all()

    def _end_connections(self, connections: Int64) -> None:
        ending = set(connections.tolist()) if self._state.held or self._state.pending_rows else set()
        self._state.ended_directions = {
            direction for direction in (*self._state.held, *self._state.pending_rows) if direction >> 1 in ending
        }
        self._end(self._state.ended_directions)

    def flush(self) -> Iterator[FrameBatch]:
        """Return all that is held: the capture ends."""
        if not self._state.is_flushed:
            self._state.is_flushed = True
            self._end({*self._state.held, *self._state.pending_rows})
        return self._search_all()

    def _frame(self, runs: RunBatch) -> None:
        if len(runs):
            self._state.grow((int(runs.direction.max()) | 1) + 1)
            firsts = np.flatnonzero(np.diff(runs.direction, prepend=-1))
            self._classifier.classify_starts(runs, firsts)
            remaining = self._frame_in_columns(runs, firsts, np.append(firsts[1:], len(runs)))
            for low, high in remaining:
                self._hold(runs, low, high)
            self._classifier.classify([int(runs.direction[low]) for low, _ in remaining])
            if self._held_runs > self._limits.held_runs:
                self._release_oldest()

    def _search_all(self) -> Iterator[FrameBatch]:
        """Search all directions that lost their place and changed since.

        Directions of clients are searched first, and what is found there is given before those of servers are: by then
        the index holds these requests, and responses are recognized by them."""
        while len(frames := self._search()):
            yield frames

    def _search(self) -> FrameBatch:
        """Search directions that changed, those of clients first, until there are frames."""
        for is_client in (True, False):
            while directions := sorted(d for d in self._state.needs_search if self._detector.is_client(d) == is_client):
                for direction in directions:
                    self._state.needs_search.discard(direction)
                    self._resynchronizer.resynchronize(direction)
                if not is_client:
                    break  # responses are recognized by requests, and these ones have theirs now
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
        pending_rows = [piece for rows in self._state.pending_rows.values() for row in rows for piece in row.pieces]
        told_later = np.array(pending_rows, np.int64).reshape(-1, 2).T
        held = [stream.held_regions() for stream in self._state.held.values()]
        return np.concatenate([told_later[:, told_later[0] != NOWHERE], *held], axis=1)

    def oldest_pending(self, after_ns: int = -1) -> Position:
        """The first packet with a first byte that is held of a direction."""
        held = [stream.run().seen[::-1] for stream in self._state.held.values() if len(stream)]
        return oldest_position(np.array(held, np.int64).reshape(-1, 2).T, after_ns)

    def _end(self, directions: set[int]) -> None:
        """Classify and split what is held of directions of which nothing more comes."""
        held = sorted(direction for direction in directions if direction in self._state.held)
        self._classifier.classify(sorted(held, key=self._detector.is_client, reverse=True))
        for direction in held:
            if direction in self._state.held and self._state.mode.values[direction] == _FRAMES:
                self._splitter.split(direction, self._state.held[direction])
        self._state.needs_search |= directions

    def _frame_in_columns(self, runs: RunBatch, lows: Int64, highs: Int64) -> list[tuple[int, int]]:
        """Split complete frames in columns, the common case. Return the remaining rows of each direction. Of one that
        is held none are left, unless it has lost its place."""
        lows = lows.copy()
        direction = runs.direction[lows]
        if self._state.held:
            for group in np.flatnonzero(np.isin(direction, np.fromiter(self._state.held, np.int64))).tolist():
                lows[group] = self._catch_up(runs, int(lows[group]), int(highs[group]))
        row = np.minimum(lows, len(runs) - 1)
        at = self._state.next.values[direction]
        fast = (self._state.mode.values[direction] == _FRAMES) & (lows < highs)
        fast &= (runs.start[row] <= at) & (at < runs.start[row] + runs.size[row])
        if fast.any():
            largest = PREFIX + self._limits.frame_size
            frames, lows[fast], offsets = follow(self._store, runs, largest, lows[fast], highs[fast], at[fast])
            self._state.rows.add_batch(frames)
            self._state.next.values[direction[fast]] = offsets
        other = self._state.mode.values[direction] == _OTHER
        last = highs[other] - 1
        self._state.ignored.values[direction[other]] += runs.start[last] + runs.size[last] - runs.start[lows[other]]
        self._note_alerts(runs)
        remaining = (lows < highs) & ~other
        return list(zip(lows[remaining].tolist(), highs[remaining].tolist(), strict=True))

    def _note_alerts(self, runs: RunBatch) -> None:
        """Find TLS alerts in directions that are not Kafka: a failed handshake ends with one, in its own segment."""
        rows = np.flatnonzero((runs.size == ALERT_SIZE) & (runs.kind == RunKind.DATA))
        for row in rows[self._state.mode.values[runs.direction[rows]] == _OTHER].tolist():
            data = self._store.read(int(runs.address[row]), ALERT_SIZE)
            self._detector.note_alert(int(runs.direction[row]), bytes(data))

    def _catch_up(self, runs: RunBatch, low: int, high: int) -> int:
        """Add to a held stream the rows that complete its next frame, and no more. Return the row to go on with."""
        direction = int(runs.direction[low])
        ends = runs.start[low:high] + runs.size[low:high]
        first = low
        while low < high and self._state.mode.values[direction] == _FRAMES:
            stream = self._state.held.get(direction)
            if stream is None:
                break
            upto = min(high, max(low, first + int(np.searchsorted(ends, stream.need))) + 1)
            self._hold(runs, low, upto)
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

    def _hold(self, runs: RunBatch, low: int, high: int) -> None:
        """Hold rows of one direction, and split them one by one."""
        direction = int(runs.direction[low])
        mode = int(self._state.mode.values[direction])
        stream = self._state.held.get(direction)
        if stream is None:
            stream = self._state.held[direction] = PendingStream(int(self._state.next.values[direction]))
        stream.extend(runs, low, high)
        self._held_runs += high - low
        if mode in (_SEARCH, _POSSIBLE):
            self._state.needs_search.add(direction)
        elif mode == _FRAMES and stream.end >= stream.need:
            self._splitter.split(direction, stream)

    def _release_oldest(self) -> None:
        """Release the streams held for longest, as unparsed bytes or not Kafka, where too much is held."""
        self._held_runs = sum(map(len, self._state.held.values()))
        if self._held_runs <= self._limits.held_runs:
            return
        for direction in sorted(self._state.held, key=lambda d: self._state.held[d].run().seen[1]):
            stream = self._state.held[direction]
            self._held_runs -= len(stream)
            if self._state.mode.values[direction] in (_UNDECIDED, _POSSIBLE):
                self._state.reject(direction)
            else:
                self._state.mode.values[direction] = _SEARCH
                self._state.searches.pop(direction, None)
                self._state.skip(direction, stream, FrameKind.UNPARSED, stream.end - stream.at)
                del self._state.held[direction]
            if self._held_runs <= self._limits.held_runs // 2:
                return
