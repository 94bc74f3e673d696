"""Searches directions for their next frame, window by window: after a gap, or while they are only possibly Kafka."""

from dissector.core.batches import FrameKind
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.framing.classifier import Classifier
from dissector.framing.detector import Classification, ProtocolDetector
from dissector.framing.direction_state import DirectionState
from dissector.framing.frame_search import FrameSearch
from dissector.framing.frame_splitter import FrameSplitter
from dissector.framing.pending_stream import PendingStream
from dissector.framing.sizes import HEAD

_POSSIBLE, _FRAMES, _SEARCH = Classification.POSSIBLE, Classification.FRAMES, Classification.SEARCH
"""Bound once: members of an enum are slow to look up."""


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
        """Find the next frame of a direction, and split off those that follow. Skipped bytes become a row."""
        possible = self._state.mode.values[direction] == _POSSIBLE
        stream = self._state.held.get(direction)
        if stream is not None and (possible or self._state.mode.values[direction] == _SEARCH):
            while stream.at < stream.end:
                self._state.skip(direction, stream, FrameKind.GAP, stream.gap())
                if stream.at == stream.end:
                    break  # nothing behind the gap to search, and nothing to wait for
                skipped = self._search(direction, stream)
                if skipped == 0:
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
        if possible and self._state.has_ended(direction):
            self._state.reject(direction)

    def _search(self, direction: int, stream: PendingStream) -> int:
        """Search up to the next gap, or in two windows, and return how many bytes to skip.

        0: a frame was found, and the stream is split from there on; or more bytes are needed."""
        window = self._limits.resync_bytes
        end, gap = stream.intact(stream.at + 2 * window)
        closed = gap or (self._state.has_ended(direction) and end == stream.end)
        search = self._state.searches.setdefault(direction, FrameSearch(stream.at))
        at = search.find(
            stream, self._store, self._detector.heuristics(direction), self._limits, end=end, closed=closed
        )
        if at is not None:
            self._found(direction, stream, at)
            return 0
        if closed:
            del self._state.searches[direction]
            return end - stream.at
        return window if end - stream.at == 2 * window else 0

    def _found(self, direction: int, stream: PendingStream, at: int) -> None:
        del self._state.searches[direction]
        if self._state.mode.values[direction] == _POSSIBLE:
            self._detector.confirm(direction, stream.peek(self._store, HEAD, at - stream.at) or b"")
            self._state.emit_pending_rows(direction)
            self._classifier.classify_peer(direction)
        self._state.mode.values[direction] = _FRAMES
        self._state.skip(direction, stream, FrameKind.UNPARSED, at - stream.at)
        self._splitter.split(direction, stream)
