"""Runs in, frames out: every direction's bytes cut at Kafka's 4-byte size prefixes.

Invariants, each a property test:
  * the rows of a direction (frames, gaps, unparsed bytes) tile its stream, from where it was taken for Kafka;
  * any way of cutting the stream into runs and batches gives the same frames;
  * a frame of which bytes are missing is still one row; framing goes on at its end. Only where a size prefix is lost is
    the next frame searched for (`resync`), and what was skipped is a row.

Who speaks Kafka, and what a frame's head looks like, a `Recogniser` says: `session` has one.
"""

import struct
from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from itertools import takewhile
from typing import Final, Protocol

import numpy as np

from dissector.columns import Column
from dissector.events import NOWHERE, FrameBatch, FrameKind, Int64, RunBatch, RunKind
from dissector.framing.chains import LEAST_FRAME, LEAST_HEAD, PREFIX, Chains
from dissector.framing.frames import FrameRows
from dissector.framing.resync import Plausible, find_frame
from dissector.framing.stream import Piece, Stream
from dissector.limits import Limits
from dissector.store import Store

_SIZE: Final = struct.Struct(">i")
HEAD: Final = 64
"""Bytes that a recogniser is shown."""


class Verdict(IntEnum):
    """What the beginning of a direction is."""

    UNDECIDED = 0
    """More bytes, or the other direction, must tell."""
    FRAMES = 1
    """Kafka, a frame begins here."""
    SEARCH = 2
    """Kafka, but the capture began in the middle of a frame."""
    OTHER = 3
    """Not Kafka: its bytes are not framed."""


class Recogniser(Protocol):
    """Knows Kafka from other protocols."""

    def verdict(self, direction: int, head: bytes, *, from_start: bool, final: bool) -> Verdict:
        """What a direction is of which `head` is seen first; `from_start` if the stream began with it, `final` if no
        more will come."""

    def plausible(self, direction: int) -> Plausible:
        """What a frame of this direction begins with, for finding one after a gap."""


class Splitter:
    """Frames every direction of a capture."""

    def __init__(self, store: Store, recogniser: Recogniser, limits: Limits) -> None:
        self._store = store
        self._recogniser = recogniser
        self._limits = limits
        self._mode = Column(np.uint8, Verdict.UNDECIDED)
        self._next = Column(np.int64, 0)
        """Where the next frame begins, for directions of which nothing is held."""
        self._ignored: Counter[int] = Counter()
        self._held: dict[int, Stream] = {}
        self._rows = FrameRows()

    def feed(self, runs: RunBatch) -> FrameBatch:
        """Frames that these runs complete. Runs of one direction stand together, in stream order."""
        if len(runs):
            self._mode.grow(int(runs.direction.max()) + 1)
            self._next.grow(len(self._mode))
            firsts = np.flatnonzero(np.diff(runs.direction, prepend=-1))
            self._recognise(runs, firsts)
            ends = np.append(firsts[1:], len(runs))
            for low, high in self._follow(runs, firsts, ends):
                self._take(runs, low, high)
        self._decide(self._held)
        return self._rows.batch()

    def resync(self) -> FrameBatch:
        """Frames found in directions that lost their place: call it once the requests seen so far are known."""
        for direction in [d for d in self._held if self._mode.values[d] == Verdict.SEARCH]:
            self._split(direction, self._held[direction], final=False)
        return self._rows.batch()

    def leave(self, connections: Int64) -> FrameBatch:
        """Nothing more comes of these connections: what is held of them comes out as it is."""
        over = set(connections.tolist()) if self._held else set()
        return self._end([direction for direction in self._held if direction >> 1 in over])

    def finish(self) -> FrameBatch:
        """The capture ends: what is held comes out as it is."""
        return self._end(list(self._held))

    def _end(self, directions: list[int]) -> FrameBatch:
        self._decide(directions, final=True)
        for direction in directions:
            stream = self._held.get(direction)
            if stream is not None and self._mode.values[direction] in (Verdict.FRAMES, Verdict.SEARCH):
                self._split(direction, stream, final=True)
            self._held.pop(direction, None)
        return self._rows.batch()

    def ignored(self, direction: int) -> int:
        """Bytes of a direction that is not Kafka."""
        return self._ignored[direction]

    def _recognise(self, runs: RunBatch, firsts: Int64) -> None:
        """Directions that begin here with enough to tell them by are settled at once, the client's side first."""
        fresh = (self._mode.values[runs.direction[firsts]] == Verdict.UNDECIDED) & (runs.start[firsts] == 0)
        fresh &= (runs.kind[firsts] == RunKind.DATA) & (runs.size[firsts] >= LEAST_HEAD)
        rows = firsts[fresh]
        rows = rows[np.argsort(runs.packet[rows], kind="stable")]
        for row in rows.tolist():
            direction = int(runs.direction[row])
            head = bytes(self._store.read(int(runs.address[row]), min(HEAD, int(runs.size[row]))))
            if self._recogniser.verdict(direction, head, from_start=True, final=False) == Verdict.FRAMES:
                self._mode.values[direction] = Verdict.FRAMES

    def _follow(self, runs: RunBatch, lows: Int64, highs: Int64) -> list[tuple[int, int]]:
        """The common case, at once: whole frames, as far as columns can tell. Rows that are left, by direction."""
        lows = lows.copy()
        direction = runs.direction[lows]
        if self._held:
            for group in np.flatnonzero(np.isin(direction, np.fromiter(self._held, np.int64))).tolist():
                lows[group] = self._catch_up(runs, int(lows[group]), int(highs[group]))
        row = np.minimum(lows, len(runs) - 1)
        at = self._next.values[direction]
        fast = (self._mode.values[direction] == Verdict.FRAMES) & (lows < highs)
        fast &= (runs.start[row] <= at) & (at < runs.start[row] + runs.size[row])
        if self._held:
            fast &= ~np.isin(direction, np.fromiter(self._held, np.int64))
        if fast.any():
            chains = Chains(self._store, runs, PREFIX + self._limits.frame_size)
            stops = chains.follow(lows[fast], highs[fast], at[fast])
            self._rows.add_batch(chains.frames())
            lows[fast], self._next.values[direction[fast]] = np.array(stops, np.int64).T
        left = lows < highs
        return list(zip(lows[left].tolist(), highs[left].tolist(), strict=True))

    def _catch_up(self, runs: RunBatch, low: int, high: int) -> int:
        """Give a direction of which something is held what that needs, and no more: the row to go on with."""
        direction = int(runs.direction[low])
        ends = runs.start[low:high] + runs.size[low:high]
        first = low
        while low < high and self._mode.values[direction] == Verdict.FRAMES:
            stream = self._held.get(direction)
            if stream is None:
                break
            upto = min(high, max(low, first + int(np.searchsorted(ends, stream.need))) + 1)
            self._take(runs, low, upto)
            low = upto
            if direction in self._held and stream.at >= runs.start[upto - 1]:
                del self._held[direction]
                self._next.values[direction] = stream.at
                return upto - 1
        return low

    def _take(self, runs: RunBatch, low: int, high: int) -> None:
        """Rows of one direction go the careful way."""
        direction = int(runs.direction[low])
        mode = self._mode.values[direction]
        if mode == Verdict.OTHER:
            self._ignored[direction] += int(runs.size[low:high].sum())
            return
        stream = self._held.get(direction)
        if stream is None:
            stream = self._held[direction] = Stream(int(self._next.values[direction]))
        stream.extend(runs, low, high)
        if mode == Verdict.FRAMES and stream.end >= stream.need:
            self._split(direction, stream, final=False)

    def _decide(self, directions: Iterable[int], *, final: bool = False) -> None:
        """Ask what the undecided ones are; one that is decided may settle its peer."""
        waiting = [d for d in directions if self._mode.values[d] == Verdict.UNDECIDED]
        while waiting:
            settled = [direction for direction in waiting if self._decide_one(direction, final=final)]
            if not settled:
                return
            peers = {direction ^ 1 for direction in settled}
            waiting = [d for d in waiting if d in peers and self._mode.values[d] == Verdict.UNDECIDED]

    def _decide_one(self, direction: int, *, final: bool) -> bool:
        stream = self._held[direction]
        missing = stream.gap()
        head = stream.peek(self._store, HEAD, after=missing) or b""
        from_start = stream.at == missing == 0
        verdict = self._recogniser.verdict(direction, head, from_start=from_start, final=final)
        if verdict == Verdict.UNDECIDED:
            if not final and stream.end - stream.at < self._limits.undecided_bytes:
                return False
            verdict = Verdict.OTHER
        if verdict != Verdict.OTHER:
            self._skip(direction, stream, FrameKind.GAP, missing)
        self._mode.values[direction] = verdict
        if verdict == Verdict.OTHER:
            self._ignored[direction] += stream.end - stream.at
            del self._held[direction]
        elif verdict == Verdict.FRAMES:
            self._split(direction, stream, final=False)
        return True

    def _split(self, direction: int, stream: Stream, *, final: bool) -> None:
        """Cut off all frames that are there; what is left stays held."""
        if self._mode.values[direction] == Verdict.SEARCH and not self._search(direction, stream, final=final):
            return
        while stream.at < stream.end:
            self._split_run(direction, stream)
            missing = stream.gap()
            if missing:
                self._skip(direction, stream, FrameKind.GAP, missing)
                searching = True
            elif stream.at == stream.end:
                break
            else:
                size = self._frame_size(stream)
                if size == 0 and not final:
                    return
                fits = LEAST_FRAME <= size <= PREFIX + self._limits.frame_size
                searching = not fits and not (size == PREFIX and _stands_alone(stream))
                if not searching and not self._frame(direction, stream, size, final=final):
                    return
            if searching:
                self._mode.values[direction] = Verdict.SEARCH
                if not self._search(direction, stream, final=final):
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
            self._rows.add(
                direction, FrameKind.FRAME, run.start + offset, size, run.seen, [(run.address + offset, size)]
            )
            offset += size
        stream.advance(offset - first)

    def _frame_size(self, stream: Stream) -> int:
        """Of the frame that begins here, prefix included; 0 where the prefix is not all there yet, -1 if it is lost."""
        prefix = stream.peek(self._store, PREFIX) or b""
        if len(prefix) == PREFIX:
            return PREFIX + int.from_bytes(prefix, "big", signed=True)
        return 0 if stream.end - stream.at < PREFIX else -1

    def _frame(self, direction: int, stream: Stream, size: int, *, final: bool) -> bool:
        if stream.end - stream.at < size and not final:
            stream.need = stream.at + size
            return False
        pieces = stream.pieces(size)
        missing = size - sum(length for _, length in pieces)
        if missing:
            pieces.append((NOWHERE, missing))
        kind = FrameKind.FRAME if _intact(pieces) >= min(size, LEAST_HEAD) else FrameKind.UNPARSED
        self._rows.add(direction, kind, stream.at, size, stream.run().seen, pieces)
        stream.advance(size)
        return True

    def _skip(self, direction: int, stream: Stream, kind: FrameKind, size: int) -> None:
        if size:
            self._rows.add(direction, kind, stream.at, size, stream.run().seen, stream.pieces(size))
            stream.advance(size)

    def _search(self, direction: int, stream: Stream, *, final: bool) -> bool:
        """Find the next frame; whether framing can go on. Bytes passed over become `UNPARSED` rows."""
        plausible = self._recogniser.plausible(direction)
        while stream.at < stream.end:
            missing = stream.gap()
            if missing:
                self._skip(direction, stream, FrameKind.GAP, missing)
                continue
            data = stream.peek(self._store, self._limits.resync_bytes) or b""
            at = find_frame(data, plausible, self._limits.frame_size, stream.segments(len(data)))
            if at is not None:
                self._skip(direction, stream, FrameKind.UNPARSED, at)
                self._mode.values[direction] = Verdict.FRAMES
                return True
            whole = stream.end - stream.at == len(data)
            if whole and not final and len(data) < self._limits.resync_bytes:
                return False
            self._skip(direction, stream, FrameKind.UNPARSED, len(data))
        return False


def _intact(pieces: list[Piece]) -> int:
    """Bytes before the first hole."""
    return sum(size for _, size in takewhile(lambda piece: piece[0] != NOWHERE, pieces))


def _stands_alone(stream: Stream) -> bool:
    """Whether a size of 0 is all that a segment has: an empty frame, with which a broker of old ended a PLAIN login."""
    run = stream.run()
    return run.start == stream.at and run.size == PREFIX
