"""Searches directions for their next frame, window by window: after a gap, or while they are only possibly Kafka."""

from collections.abc import Iterator
from typing import Final

from dissector.core.batches import NOWHERE, FrameKind
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.framing.classifier import Classifier
from dissector.framing.detector import (
    HEAD,
    LEAST_FRAME,
    PREFIX,
    Classification,
    FoundFrame,
    FrameHeuristics,
    ProtocolDetector,
)
from dissector.framing.direction_state import DirectionState
from dissector.framing.frame_search import FrameSearch
from dissector.framing.frame_splitter import FrameSplitter
from dissector.framing.pending_stream import PendingStream

_UNDECIDED, _POSSIBLE, _FRAMES, _SEARCH, _ = map(int, Classification)
"""Plain numbers: numpy compares its own with members of an enum slowly."""
_FOUND: Final = -1


class Resynchronizer:
    """Finds the next frame of a direction, and has it split from there on."""

    def __init__(
        self,
        store: Store,
        detector: ProtocolDetector,
        limits: Limits,
        state: DirectionState,
        splitter: FrameSplitter,
        classifier: Classifier,
    ) -> None:
        self._store = store
        self._detector = detector
        self._limits = limits
        self._state = state
        self._splitter = splitter
        self._classifier = classifier

    def resynchronize(self, direction: int) -> None:
        """Find the next frame of a direction, and split off those that follow; and again, where their place is lost
        again and what was found does not change how frames begin. Skipped bytes become rows."""
        possible = self._state.mode.values[direction] == _POSSIBLE
        stream = self._state.held.get(direction)
        if stream is not None and (possible or self._state.mode.values[direction] == _SEARCH):
            heads = self._detector.heuristics(direction)
            while stream.at < stream.end:
                self._state.skip(direction, stream, FrameKind.GAP, stream.gap())
                if stream.at == stream.end:
                    break  # nothing behind the gap to search, and nothing to wait for
                mark = self._state.rows.count
                skipped = self._search(direction, stream, heads)
                if skipped == _FOUND and not possible and self._goes_on(direction, heads, mark):
                    continue
                if skipped <= 0:
                    return
                if (
                    possible
                    and skipped == self._limits.resync_bytes
                    and not self._detector.is_probably_kafka(direction)
                ):
                    self._state.reject(direction)
                    return
                self._state.skip(direction, stream, FrameKind.UNPARSED, skipped)
            self._state.held.pop(direction, None)
        undecided = self._state.mode.values[direction] in (_POSSIBLE, _UNDECIDED)
        if undecided and self._state.has_ended(direction):
            self._state.reject(direction)

    def _search(self, direction: int, stream: PendingStream, heads: FrameHeuristics) -> int:
        """Search up to the next gap, or in two windows, and return how many bytes to skip.

        `_FOUND`: a frame was found, and the stream is split from there on. 0: more bytes are needed."""
        window = self._limits.resync_bytes
        end, gap = stream.intact(stream.at + 2 * window)
        closed = gap or (self._state.has_ended(direction) and end == stream.end)
        search = self._state.searches.setdefault(direction, FrameSearch(stream.at))
        at = search.find(stream, self._store, heads, self._limits, end=end, closed=closed)
        if at is not None:
            self._found(direction, stream, at)
            return _FOUND
        if closed:
            del self._state.searches[direction]
            return end - stream.at
        return window if end - stream.at == 2 * window else 0

    def _goes_on(self, direction: int, heads: FrameHeuristics, mark: int) -> bool:
        """Whether the place is lost again, and frames begin as before now that the rows from `mark` on are found."""
        if self._state.mode.values[direction] != _SEARCH or not heads.follow(self._identifiers(mark)):
            return False
        self._state.needs_search.discard(direction)
        return True

    def _identifiers(self, mark: int) -> Iterator[FoundFrame]:
        """Yield the frames among the rows from `mark` on, by the word behind the size prefix."""
        for packet, pieces in self._state.rows.frames_from(mark):
            head = b""
            for address, size in pieces:
                if address == NOWHERE or len(head) >= LEAST_FRAME:
                    break
                head += self._store.read(address, min(size, LEAST_FRAME))
            yield FoundFrame(int.from_bytes(head[PREFIX:LEAST_FRAME], "big", signed=True), packet)

    def _found(self, direction: int, stream: PendingStream, at: int) -> None:
        del self._state.searches[direction]
        was_possible = self._state.mode.values[direction] == _POSSIBLE
        self._state.mode.values[direction] = _FRAMES  # before the peer, which would have it classified again
        if was_possible:
            self._detector.confirm(direction, stream.peek(self._store, HEAD, at - stream.at) or b"")
            self._state.emit_pending_rows(direction)
            self._classifier.classify_peer(direction)
        self._state.skip(direction, stream, FrameKind.UNPARSED, at - stream.at)
        self._splitter.split(direction, stream)
