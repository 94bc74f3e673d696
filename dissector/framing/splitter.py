"""Runs in, frames out: every direction's bytes cut at Kafka's 4-byte size prefixes.

Invariants, each a property test:
  * the rows of a direction (frames, gaps, unparsed bytes) tile its stream, from where it was taken for Kafka;
  * any way of cutting the stream into runs and batches gives the same frames;
  * a frame of which bytes are missing is still one row; framing goes on at its end. Only where a size prefix is lost is
    the next frame searched for (`resync`), and what was skipped is a row;
  * what is held is bounded: a search sees two windows of `limits.resync_bytes`, and all directions together hold
    `limits.held_runs`.

Who speaks Kafka, and what a frame's head looks like, a `Recogniser` says: `session` has one.
"""

import struct
from collections.abc import Collection
from itertools import takewhile
from typing import Final

import numpy as np

from dissector.columns import Column
from dissector.events import NOWHERE, FrameBatch, FrameKind, Int64, RunBatch, RunKind
from dissector.framing.chains import Chains
from dissector.framing.frames import FrameRow, FrameRows
from dissector.framing.resync import Search
from dissector.framing.sizes import HEAD, LEAST_FRAME, LEAST_HEAD, PREFIX
from dissector.framing.stream import Piece, Stream
from dissector.framing.verdicts import Recogniser, Verdict
from dissector.limits import Limits
from dissector.store import Store

_SIZE: Final = struct.Struct(">i")
_UNTOLD: Final = 8
"""Rows kept of what was passed over before a direction is known to be Kafka."""
_UNDECIDED, _PERHAPS, _FRAMES, _SEARCH, _OTHER = Verdict
"""Bound once: members of an enum are slow to look up."""


class Splitter:
    """Frames every direction of a capture."""

    def __init__(self, store: Store, recogniser: Recogniser, limits: Limits) -> None:
        self._store = store
        self._recogniser = recogniser
        self._limits = limits
        self._mode = Column(np.uint8, _UNDECIDED)
        self._next = Column(np.int64, 0)
        """Where the next frame begins, for directions of which nothing is held."""
        self._ignored = Column(np.int64, 0)
        self._held: dict[int, Stream] = {}
        self._held_runs = 0
        """At most so many runs are held: what is left behind is subtracted when it matters."""
        self._searches: dict[int, Search] = {}
        self._untold: dict[int, list[FrameRow]] = {}
        """What was passed over of directions that are perhaps Kafka's."""
        self._stirred: set[int] = set()
        """Directions to search anew: more of them, or of their peer, is known."""
        self._ended = False
        self._over: set[int] = set()
        """Directions of which nothing more will come, though the capture goes on."""
        self._rows = FrameRows()

    def feed(self, runs: RunBatch) -> FrameBatch:
        """Frames that these runs complete. Runs of one direction stand together, in stream order."""
        if len(runs):
            for column in (self._mode, self._next, self._ignored):
                column.grow((int(runs.direction.max()) | 1) + 1)
            firsts = np.flatnonzero(np.diff(runs.direction, prepend=-1))
            self._recognise(runs, firsts)
            left = self._follow(runs, firsts, np.append(firsts[1:], len(runs)))
            for low, high in left:
                self._take(runs, low, high)
            self._decide([int(runs.direction[low]) for low, _ in left])
            if self._held_runs > self._limits.held_runs:
                self._let_go()
        return self._rows.batch()

    def resync(self, *, final: bool = False) -> FrameBatch:
        """Frames found in directions that lost their place. Call it until it gives none, and tell the recogniser of the
        requests among them each time: responses are known by the requests that wait. `final`: the capture ends, what is
        held comes out as it is."""
        if final and not self._ended:
            self._ended = True
            self._end({*self._held, *self._untold})
        for asking in (True, False):
            for direction in sorted(d for d in self._stirred if self._recogniser.asks(d) == asking):
                self._stirred.discard(direction)
                self._seek(direction)
            found = self._rows.batch()
            if len(found):
                return found
        return self._rows.batch()

    def ignored(self, direction: int) -> int:
        """Bytes of a direction that is not Kafka."""
        return int(self._ignored.values[direction]) if direction < len(self._ignored) else 0

    def leave(self, connections: Int64) -> None:
        """Nothing more comes of these connections: what is held of them comes out as it is, by `resync`."""
        gone = set(connections.tolist()) if self._held or self._untold else set()
        self._over = {direction for direction in (*self._held, *self._untold) if direction >> 1 in gone}
        self._end(self._over)

    def _end(self, directions: set[int]) -> None:
        """No more bytes will come of them."""
        held = sorted(direction for direction in directions if direction in self._held)
        self._decide(sorted(held, key=self._recogniser.asks, reverse=True))
        for direction in held:
            if direction in self._held and self._mode.values[direction] == _FRAMES:
                self._split(direction, self._held[direction])
        self._stirred |= directions

    def _is_over(self, direction: int) -> bool:
        """Whether nothing more will come of a direction."""
        return self._ended or direction in self._over

    def _recognise(self, runs: RunBatch, firsts: Int64) -> None:
        """Directions that begin here with enough to tell them by are settled at once, the client's side first."""
        fresh = (self._mode.values[runs.direction[firsts]] == _UNDECIDED) & (runs.start[firsts] == 0)
        fresh &= (runs.kind[firsts] == RunKind.DATA) & (runs.size[firsts] >= LEAST_HEAD)
        rows = firsts[fresh]
        if not len(rows):
            return
        rows = rows[np.argsort(runs.packet[rows], kind="stable")]
        heads = self._store.gather(runs.address[rows], HEAD)
        plain = self._recogniser.begin(runs.direction[rows], heads, runs.size[rows])
        taken = runs.direction[rows[plain]]
        self._mode.values[taken] = _FRAMES
        settled = np.isin(self._mode.values[taken ^ 1], (_UNDECIDED, _FRAMES)) & (not self._untold)
        for direction in taken[~settled].tolist():
            self._settle_peer(direction)
        for row in rows[~plain].tolist():
            direction = int(runs.direction[row])
            head = bytes(self._store.read(int(runs.address[row]), min(HEAD, int(runs.size[row]))))
            verdict = self._recogniser.verdict(direction, head, from_start=True, final=False)
            if verdict == _FRAMES:
                self._mode.values[direction] = _FRAMES
                self._settle_peer(direction)
            elif verdict == _OTHER:
                self._leave(direction)
                self._ask_again(direction ^ 1)

    def _follow(self, runs: RunBatch, lows: Int64, highs: Int64) -> list[tuple[int, int]]:
        """The common case, at once: whole frames, as far as columns can tell. Rows that are left, by direction."""
        lows = lows.copy()
        direction = runs.direction[lows]
        if self._held:
            for group in np.flatnonzero(np.isin(direction, np.fromiter(self._held, np.int64))).tolist():
                lows[group] = self._catch_up(runs, int(lows[group]), int(highs[group]))
        row = np.minimum(lows, len(runs) - 1)
        at = self._next.values[direction]
        fast = (self._mode.values[direction] == _FRAMES) & (lows < highs)
        fast &= (runs.start[row] <= at) & (at < runs.start[row] + runs.size[row])
        if self._held:
            fast &= ~np.isin(direction, np.fromiter(self._held, np.int64))
        if fast.any():
            chains = Chains(self._store, runs, PREFIX + self._limits.frame_size)
            stops = chains.follow(lows[fast], highs[fast], at[fast])
            self._rows.add_batch(chains.frames())
            lows[fast], self._next.values[direction[fast]] = np.array(stops, np.int64).T
        other = self._mode.values[direction] == _OTHER
        last = highs[other] - 1
        self._ignored.values[direction[other]] += runs.start[last] + runs.size[last] - runs.start[lows[other]]
        left = (lows < highs) & ~other
        return list(zip(lows[left].tolist(), highs[left].tolist(), strict=True))

    def _catch_up(self, runs: RunBatch, low: int, high: int) -> int:
        """Give a direction of which something is held what that needs, and no more: the row to go on with."""
        direction = int(runs.direction[low])
        ends = runs.start[low:high] + runs.size[low:high]
        first = low
        while low < high and self._mode.values[direction] == _FRAMES:
            stream = self._held.get(direction)
            if stream is None:
                break
            upto = min(high, max(low, first + int(np.searchsorted(ends, stream.need))) + 1)
            self._take(runs, low, upto)
            low = upto
            if (
                self._mode.values[direction] == _FRAMES
                and direction in self._held
                and stream.at >= runs.start[upto - 1]
            ):
                del self._held[direction]
                self._next.values[direction] = stream.at
                return upto - 1
        return low

    def _take(self, runs: RunBatch, low: int, high: int) -> None:
        """Rows of one direction go the careful way."""
        direction = int(runs.direction[low])
        mode = int(self._mode.values[direction])
        stream = self._held.get(direction)
        if stream is None:
            stream = self._held[direction] = Stream(int(self._next.values[direction]))
        stream.extend(runs, low, high)
        self._held_runs += high - low
        if mode in (_SEARCH, _PERHAPS):
            self._stirred.add(direction)
        elif mode == _FRAMES and stream.end >= stream.need:
            self._split(direction, stream)

    def _decide(self, directions: Collection[int]) -> None:
        """Ask what directions are that are undecided; one that is decided may settle its peer."""
        waiting = [d for d in directions if self._mode.values[d] == _UNDECIDED]
        while waiting:
            settled = [direction for direction in waiting if self._decide_one(direction)]
            if not settled:
                return
            peers = {direction ^ 1 for direction in settled}
            waiting = [d for d in peers if d in self._held and self._mode.values[d] == _UNDECIDED]

    def _decide_one(self, direction: int) -> bool:
        stream = self._held[direction]
        missing = stream.gap()
        head = stream.peek(self._store, HEAD, after=missing) or b""
        from_start = stream.at == missing == 0
        final = self._is_over(direction) or stream.end - stream.at >= self._limits.undecided_bytes
        verdict = self._recogniser.verdict(direction, head, from_start=from_start, final=final)
        if verdict == _UNDECIDED:
            if not final:
                return False
            verdict = _OTHER
        self._mode.values[direction] = verdict
        if verdict == _OTHER:
            self._leave(direction)
            self._ask_again(direction ^ 1)
        elif verdict == _FRAMES:
            self._skip(direction, stream, FrameKind.GAP, missing)
            self._settle_peer(direction)
            self._split(direction, stream)
        else:
            self._stirred.add(direction)
        return True

    def _leave(self, direction: int) -> None:
        """A direction is not Kafka's."""
        self._mode.values[direction] = _OTHER
        stream = self._held.pop(direction, None)
        held = stream.end - stream.at if stream else 0
        self._ignored.values[direction] += held + sum(row.size for row in self._untold.pop(direction, ()))
        self._searches.pop(direction, None)

    def _settle_peer(self, direction: int) -> None:
        """A direction is Kafka's, and so is its peer."""
        peer = direction ^ 1
        mode = int(self._mode.values[peer])
        if mode == _UNDECIDED and peer not in self._untold:
            return
        if mode == _OTHER:
            self._mode.values[peer] = _SEARCH
        elif self._untold.get(peer):
            self._mode.values[peer] = _SEARCH
            self._stirred.add(peer)
            self._tell(peer)
        else:
            self._ask_again(peer)

    def _ask_again(self, direction: int) -> None:
        """What a direction is, of which the peer is known now."""
        if self._mode.values[direction] == _PERHAPS:
            self._mode.values[direction] = _UNDECIDED
            self._searches.pop(direction, None)
            if direction in self._held:
                self._decide([direction])

    def _tell(self, direction: int) -> None:
        """What was passed over is of a direction that is Kafka's."""
        for row in self._untold.pop(direction, ()):
            self._rows.add(row)

    def _split(self, direction: int, stream: Stream) -> None:
        """Cut off all frames that are there; what is left stays held. Where the place is lost the search is up."""
        while stream.at < stream.end:
            self._split_run(direction, stream)
            missing = stream.gap()
            if missing:
                self._skip(direction, stream, FrameKind.GAP, missing)
            elif stream.at == stream.end:
                break
            else:
                size = self._frame_size(stream)
                if size == 0 and not self._is_over(direction):
                    return
                fits = LEAST_FRAME <= size <= PREFIX + self._limits.frame_size
                if fits or (size == PREFIX and _stands_alone(stream)):
                    if not self._frame(direction, stream, size):
                        return
                    continue
            self._mode.values[direction] = _SEARCH
            self._stirred.add(direction)
            return
        self._next.values[direction] = stream.at
        self._held.pop(direction, None)

    def _split_run(self, direction: int, stream: Stream) -> None:
        """The frames that lie whole in the run that comes next: the common case of several frames a segment."""
        run = stream.run()
        if run.address == NOWHERE:
            return
        data = self._store.read(run.address, run.size)
        first = offset = stream.at - run.start
        while offset + PREFIX <= run.size:
            size = PREFIX + _SIZE.unpack_from(data, offset)[0]
            if not LEAST_FRAME <= size <= PREFIX + self._limits.frame_size or offset + size > run.size:
                break
            pieces = [(run.address + offset, size)]
            self._rows.add(FrameRow(direction, FrameKind.FRAME, run.start + offset, size, run.seen, pieces))
            offset += size
        stream.advance(offset - first)

    def _frame_size(self, stream: Stream) -> int:
        """Of the frame that begins here, prefix included; 0 where the prefix is not all there yet, -1 if it is lost."""
        prefix = stream.peek(self._store, PREFIX) or b""
        if len(prefix) == PREFIX:
            return PREFIX + int.from_bytes(prefix, "big", signed=True)
        return 0 if stream.end - stream.at < PREFIX else -1

    def _frame(self, direction: int, stream: Stream, size: int) -> bool:
        if stream.end - stream.at < size and not self._is_over(direction):
            stream.need = stream.at + size
            return False
        pieces = stream.pieces(size)
        missing = size - sum(length for _, length in pieces)
        if missing:
            pieces.append((NOWHERE, missing))
        kind = FrameKind.FRAME if _intact(pieces) >= min(size, LEAST_HEAD) else FrameKind.UNPARSED
        self._rows.add(FrameRow(direction, kind, stream.at, size, stream.run().seen, pieces))
        stream.advance(size)
        return True

    def _skip(self, direction: int, stream: Stream, kind: FrameKind, size: int) -> None:
        """Pass over bytes: a row, which is kept back while nobody knows whether this is Kafka."""
        if not size:
            return
        row = FrameRow(direction, kind, stream.at, size, stream.run().seen, stream.pieces(size))
        stream.advance(size)
        if self._mode.values[direction] != _PERHAPS:
            self._rows.add(row)
            return
        untold = self._untold.setdefault(direction, [])
        untold.append(row)
        if len(untold) > _UNTOLD:
            self._ignored.values[direction] += untold.pop(0).size

    def _seek(self, direction: int) -> None:
        """Find the next frame of a direction, and cut off those that follow. What is passed over becomes a row."""
        perhaps = self._mode.values[direction] == _PERHAPS
        stream = self._held.get(direction)
        if stream is not None and (perhaps or self._mode.values[direction] == _SEARCH):
            while stream.at < stream.end:
                self._skip(direction, stream, FrameKind.GAP, stream.gap())
                if stream.at == stream.end:
                    break  # nothing behind the gap to look at, and nothing to wait for
                passed = self._look(direction, stream)
                if passed == 0:
                    return
                if perhaps and passed == self._limits.resync_bytes and not self._recogniser.expects(direction):
                    self._leave(direction)
                    return
                self._skip(direction, stream, FrameKind.UNPARSED, passed)
            self._held.pop(direction, None)
        if perhaps and self._is_over(direction):
            self._leave(direction)

    def _look(self, direction: int, stream: Stream) -> int:
        """Look for a frame up to the next gap, or in two windows; how many bytes to pass over. 0: one was found and the
        stream is split from there on, or more bytes must tell."""
        window = self._limits.resync_bytes
        end, gap = stream.intact(stream.at + 2 * window)
        closed = gap or (self._is_over(direction) and end == stream.end)
        search = self._searches.setdefault(direction, Search(stream.at))
        at = search.find(stream, self._store, self._recogniser.heads(direction), self._limits, end=end, closed=closed)
        if at is not None:
            self._found(direction, stream, at)
            return 0
        if closed:
            del self._searches[direction]
            return end - stream.at
        return window if end - stream.at == 2 * window else 0

    def _found(self, direction: int, stream: Stream, at: int) -> None:
        del self._searches[direction]
        if self._mode.values[direction] == _PERHAPS:
            self._recogniser.found(direction, stream.peek(self._store, HEAD, at - stream.at) or b"")
            self._tell(direction)
            self._settle_peer(direction)
        self._mode.values[direction] = _FRAMES
        self._skip(direction, stream, FrameKind.UNPARSED, at - stream.at)
        self._split(direction, stream)

    def _let_go(self) -> None:
        """Too much is held: those that have waited longest come out as they are."""
        self._held_runs = sum(map(len, self._held.values()))
        if self._held_runs <= self._limits.held_runs:
            return
        for direction in sorted(self._held, key=lambda d: self._held[d].run().seen[1]):
            stream = self._held[direction]
            self._held_runs -= len(stream)
            if self._mode.values[direction] in (_UNDECIDED, _PERHAPS):
                self._leave(direction)
            else:
                self._mode.values[direction] = _SEARCH
                self._searches.pop(direction, None)
                self._skip(direction, stream, FrameKind.UNPARSED, stream.end - stream.at)
                del self._held[direction]
            if self._held_runs <= self._limits.held_runs // 2:
                return


def _intact(pieces: list[Piece]) -> int:
    """Bytes before the first hole."""
    return sum(size for _, size in takewhile(lambda piece: piece[0] != NOWHERE, pieces))


def _stands_alone(stream: Stream) -> bool:
    """Whether a size of 0 is all that a segment has: an empty frame, with which a broker of old ended a PLAIN login."""
    run = stream.run()
    return run.start == stream.at and run.size == PREFIX
