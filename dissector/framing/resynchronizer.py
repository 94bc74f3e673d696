"""Directions that lost their place, or are perhaps Kafka's: looked through for the next frame, window by window."""

from dissector.core.batches import FrameKind
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.framing.classifier import Classifier
from dissector.framing.detector import Classification, Detector
from dissector.framing.direction_state import DirectionState
from dissector.framing.frame_search import FrameSearch
from dissector.framing.frame_splitter import FrameSplitter
from dissector.framing.pending_stream import PendingStream
from dissector.framing.sizes import HEAD

_PERHAPS, _FRAMES, _SEARCH = Classification.PERHAPS, Classification.FRAMES, Classification.SEARCH
"""Bound once: members of an enum are slow to look up."""


class Resynchronizer:
    """Finds the next frame of a direction."""

    def __init__(
        self,
        store: Store,
        recogniser: Detector,
        limits: Limits,
        state: DirectionState,
        cutter: FrameSplitter,
        decider: Classifier,
    ) -> None:
        self._store = store
        self._recogniser = recogniser
        self._limits = limits
        self._state = state
        self._cutter = cutter
        self._decider = decider

    def seek(self, direction: int) -> None:
        """Find the next frame of a direction, and cut off those that follow. What is passed over becomes a row."""
        perhaps = self._state.mode.values[direction] == _PERHAPS
        stream = self._state.held.get(direction)
        if stream is not None and (perhaps or self._state.mode.values[direction] == _SEARCH):
            while stream.at < stream.end:
                self._state.skip(direction, stream, FrameKind.GAP, stream.gap())
                if stream.at == stream.end:
                    break  # nothing behind the gap to look at, and nothing to wait for
                passed = self._look(direction, stream)
                if passed == 0:
                    return
                if perhaps and passed == self._limits.resync_bytes and not self._recogniser.expects(direction):
                    self._state.leave(direction)
                    return
                self._state.skip(direction, stream, FrameKind.UNPARSED, passed)
            self._state.held.pop(direction, None)
        if perhaps and self._state.is_over(direction):
            self._state.leave(direction)

    def _look(self, direction: int, stream: PendingStream) -> int:
        """Look for a frame up to the next gap, or in two windows; how many bytes to pass over. 0: one was found and the
        stream is split from there on, or more bytes must tell."""
        window = self._limits.resync_bytes
        end, gap = stream.intact(stream.at + 2 * window)
        closed = gap or (self._state.is_over(direction) and end == stream.end)
        search = self._state.searches.setdefault(direction, FrameSearch(stream.at))
        at = search.find(stream, self._store, self._recogniser.heads(direction), self._limits, end=end, closed=closed)
        if at is not None:
            self._found(direction, stream, at)
            return 0
        if closed:
            del self._state.searches[direction]
            return end - stream.at
        return window if end - stream.at == 2 * window else 0

    def _found(self, direction: int, stream: PendingStream, at: int) -> None:
        del self._state.searches[direction]
        if self._state.mode.values[direction] == _PERHAPS:
            self._recogniser.found(direction, stream.peek(self._store, HEAD, at - stream.at) or b"")
            self._state.tell(direction)
            self._decider.settle_peer(direction)
        self._state.mode.values[direction] = _FRAMES
        self._state.skip(direction, stream, FrameKind.UNPARSED, at - stream.at)
        self._cutter.split(direction, stream)
