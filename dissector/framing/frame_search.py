"""Finds the next frame by content, in bytes whose frame boundaries are unknown.

A candidate is an offset with a plausible size prefix, followed by what reads as a frame's head. Its chain - the frames
that follow it, each beginning where the one before it ends - must then reach the end of a segment, where nearly every
sender ends a frame, or have so many heads that chance is ruled out. What is enough depends on how strong the heads are
(`FrameEvidence`) and on whether the chain begins where a segment begins.

Better to skip a frame than to invent one. The candidate whose chain is certain at the lowest offset wins, so it makes
no difference in which batches the bytes came.

Chains that meet go the same way: each frame is followed a few times, not once for every candidate before it.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64, UInt8, UInt32
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.framing.detector import HEAD, LEAST_FRAME, FrameEvidence, FrameHeuristics
from dissector.framing.pending_stream import PendingStream

_CHAIN: Final = 3
"""Strong heads in a row that suffice without the end of a segment."""
_BOUNDARIES: Final = 2
"""Ends of segments that suffice for a chain that does not end with the segment in which it began."""
_NEVER: Final = -1
_LATER: Final = -2
_CUT: Final = -3
"""The last frame of a chain goes on behind the end."""
_NOWHERE: Final[Int64] = np.zeros((2, 0), np.int64)


_NONE, _STRONG = FrameEvidence.NONE, FrameEvidence.STRONG
"""Bound once: members of an enum are slow to look up."""


class _ChainEnd(NamedTuple):
    """Where a chain is decided, or its bytes end."""

    outcome: int
    """The offset at which it is certain; `_NEVER`, `_LATER` or `_CUT`, and then ..."""
    here: int = 0
    """... where the last frame ends, ..."""
    strong: bool = False
    """... whether all heads are strong, ..."""
    fits: bool = False
    """... and whether the frames begin and end with segments and are consistent."""


class FrameSearch:
    """The search in one direction. Bytes are scanned once; candidates are kept until they are decided."""

    def __init__(self, at: int) -> None:
        self._scanned = at
        """The stream offset up to which bytes are scanned."""
        self._candidates = _NOWHERE
        """Offsets of undecided candidates, ascending; and the offsets that must be reached to decide them: `(2, n)`."""

    def find(
        self, stream: PendingStream, store: Store, heads: FrameHeuristics, limits: Limits, *, end: int, closed: bool
    ) -> int | None:
        """Return the stream offset of a frame before `end`, or None where there is none yet. `closed`: nothing follows
        `end`."""
        window = _Window(stream, store, heads, limits, end=end, closed=closed)
        upto = end - LEAST_FRAME + 1
        candidates = self._candidates[:, np.searchsorted(self._candidates[0], stream.at) :]
        if upto > self._scanned:
            candidates = np.hstack((candidates, window.candidates(max(self._scanned, stream.at), upto)))
            self._scanned = upto
        best: tuple[int, int] | None = None
        waiting = candidates[1] > end
        for n in np.flatnonzero(~waiting).tolist():
            at = int(candidates[0, n])
            if best is not None and at >= best[0]:
                break  # it can be certain only later
            sure = window.resolve(at)
            if sure == _LATER:
                waiting[n] = True
            elif sure != _NEVER and (best is None or (sure, at) < best):
                best = sure, at
        self._candidates = candidates[:, waiting]
        return best[1] if best else None


class _Window:
    """The bytes of a stream up to `end`, as far as they are there now."""

    def __init__(
        self, stream: PendingStream, store: Store, heads: FrameHeuristics, limits: Limits, *, end: int, closed: bool
    ) -> None:
        self._stream = stream
        self._store = store
        self._heads = heads
        self._limits = limits
        self._end = end
        self._closed = closed
        self._ends: dict[tuple[int, ...], _ChainEnd] = {}
        """Where chains end, by their states on the way."""

    def candidates(self, low: int, high: int) -> Int64:
        """Offsets from `low` on and before `high` where a frame may begin, by size prefix and the word behind it; and
        the offsets that must be reached to decide them, `(2, n)`. Inside a segment that is the frame's end."""
        starts, sizes = self._stream.segments(low, high)
        starts = starts[sizes >= LEAST_FRAME]
        data = (
            self._stream.peek(self._store, min(high + LEAST_FRAME - 1, self._end) - low, low - self._stream.at) or b""
        )
        if len(data) < LEAST_FRAME:
            return _NOWHERE
        raw = np.frombuffer(data, np.uint8)
        starts = starts[starts - low <= len(data) - LEAST_FRAME]
        if not self._heads.within_segments:
            prefixes = _word(raw, starts - low)
            fits = (prefixes >= LEAST_FRAME - 4) & (prefixes <= self._limits.frame_size)
            return np.stack((starts[fits], starts[fits]))
        aligned = np.zeros(len(data) - LEAST_FRAME + 1, np.bool_)
        aligned[starts - low] = True
        offsets = np.arange(len(aligned))
        offsets = offsets[raw[offsets] <= self._limits.frame_size >> 24]
        prefixes = _word(raw, offsets)
        fits = (prefixes >= LEAST_FRAME - 4) & (prefixes <= self._limits.frame_size)
        offsets, prefixes = offsets[fits], prefixes[fits]
        at_12 = np.minimum(offsets + 12, len(raw) - 4)
        lengths = np.where(at_12 == offsets + 12, _word(raw, at_12) >> 16, 1)
        here = self._heads.strong(_word(raw, offsets + 4), lengths) | aligned[offsets]
        at = offsets[here] + low
        return np.stack((at, np.where(aligned[offsets[here]], at, at + 4 + prefixes[here])))

    def resolve(self, at: int) -> int:
        """The offset at which a candidate's chain is certain; `_NEVER`, or `_LATER` where more bytes are needed."""
        first = self._stream.run(at - self._stream.at)
        aligned = first.start == at and first.size >= LEAST_FRAME
        end = self._follow(at, first.start + first.size, aligned=aligned)
        if end.outcome != _CUT:
            return end.outcome
        head, one_is_enough = self._head(at), self._heads.one_is_enough
        several = end.here > at + 4 + int.from_bytes(head[:4], "big")
        good = end.strong and (aligned or (several and one_is_enough))
        # One head without the end of its frame is weak: small integers and zeros read as ids below 256.
        good &= one_is_enough or several or head[4:7] != bytes(3)
        return self._cut(end.here - at, at, good=good or end.fits)

    def _follow(self, at: int, segment_end: int, *, aligned: bool) -> _ChainEnd:
        """Follow a candidate's chain to where it is decided, or meets one that was followed before.

        What becomes of a chain behind the segment in which it began depends on no more than its state there."""
        here, count, boundaries, strong = at, 0, 0, True
        series = self._heads.series()
        states: list[tuple[int, ...]] = []
        while True:
            if here > self._end:
                fits = aligned and self._closed and self._ends_segment(here) and series.is_consistent(boundaries + 1)
                end = _ChainEnd(_CUT, here, strong=strong, fits=fits)
                break
            if count and self._ends_segment(here):
                boundaries += 1
                exact = segment_end == here
                fitting = aligned and (exact or boundaries >= _BOUNDARIES) and series.is_consistent(boundaries)
                if fitting or (strong and (aligned or self._heads.one_is_enough)):
                    end = _ChainEnd(here)
                    break
            head = self._head(here)
            evidence = self._judge(head, here)
            if evidence is _NONE:
                end = _ChainEnd(_LATER if self._end - here < HEAD and not self._closed else _NEVER)
                break
            count += 1
            strong &= evidence is _STRONG
            possible = series.add(head)
            if not strong and not (aligned and possible):
                end = _ChainEnd(_NEVER)
                break
            if count == _CHAIN and strong and series.is_consistent(boundaries):
                end = _ChainEnd(here + LEAST_FRAME)
                break
            if count >= _CHAIN and not aligned and not self._heads.one_is_enough:
                end = _ChainEnd(_NEVER)  # nothing that follows would be enough
                break
            if aligned and here >= segment_end:
                state = here, strong, min(count, _CHAIN), min(boundaries, _BOUNDARIES), series.state
                known = self._ends.get(state)
                if known is not None:
                    end = known
                    break
                states.append(state)
            here += 4 + int.from_bytes(head[:4], "big")
        self._ends.update(dict.fromkeys(states, end))
        return end

    def _cut(self, size: int, at: int, *, good: bool) -> int:
        """Judge a chain whose last frame goes on behind `end`. A large size is believed only with many contiguous bytes
        behind it: among few, zeros read as one."""
        large = size > self._limits.resync_bytes
        if self._closed:
            return self._end if good and not large else _NEVER
        return at + LEAST_FRAME if good and large and self._end - at > self._limits.resync_bytes else _LATER

    def _ends_segment(self, offset: int) -> bool:
        """Whether a segment ends right before an offset. Tiny ones do not count, unless the bytes end with them."""
        run = self._stream.run(offset - 1 - self._stream.at)
        large = run.size >= LEAST_FRAME or (self._closed and offset == self._end)
        return run.start + run.size == offset and large

    def _head(self, at: int) -> bytes:
        return self._stream.peek(self._store, min(HEAD, self._end - at), at - self._stream.at) or b""

    def _judge(self, head: bytes, at: int) -> FrameEvidence:
        if len(head) < LEAST_FRAME or not LEAST_FRAME - 4 <= int.from_bytes(head[:4], "big") <= self._limits.frame_size:
            return _NONE
        return self._heads.judge(head, self._stream.run(at - self._stream.at).seen[1])


def _word(raw: UInt8, offsets: Int64) -> Int64:
    """The four bytes at each offset, as a number."""
    words: UInt32 = np.ndarray((len(raw) - 3,), ">u4", raw, strides=(1,))
    return words[offsets].astype(np.int64)
