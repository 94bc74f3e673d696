"""Classifies directions: Kafka or not. A direction is classified again until it is known; its peer is evidence."""

from collections.abc import Collection

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import FrameKind, RunBatch, RunKind
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.framing.detector import HEAD, LEAST_HEAD, Classification, ProtocolDetector
from dissector.framing.direction_state import DirectionState
from dissector.framing.frame_splitter import FrameSplitter

_UNDECIDED, _POSSIBLE, _FRAMES, _SEARCH, _OTHER = map(int, Classification)
"""Plain numbers: numpy compares its own with members of an enum slowly."""


class Classifier:
    """Classifies directions with the help of a detector, and records the result in their state."""

    def __init__(
        self, store: Store, detector: ProtocolDetector, limits: Limits, state: DirectionState, splitter: FrameSplitter
    ) -> None:
        self._store = store
        self._detector = detector
        self._limits = limits
        self._state = state
        self._splitter = splitter

    def classify_starts(self, runs: RunBatch, firsts: Int64) -> None:
        """Classify directions whose first bytes are in this batch and suffice, in the order of their packets."""
        fresh = (self._state.mode.values[runs.direction[firsts]] == _UNDECIDED) & (runs.start[firsts] == 0)
        fresh &= (runs.kind[firsts] == RunKind.DATA) & (runs.size[firsts] >= LEAST_HEAD)
        rows = firsts[fresh]
        if not len(rows):
            return
        rows = rows[np.argsort(runs.packet[rows], kind="stable")]
        heads = self._store.gather(runs.address[rows], HEAD)
        plain = self._detector.classify_starts(runs.direction[rows], heads, runs.size[rows])
        taken = runs.direction[rows[plain]]
        self._state.mode.values[taken] = _FRAMES
        consistent = np.isin(self._state.mode.values[taken ^ 1], (_UNDECIDED, _FRAMES)) & (not self._state.pending_rows)
        for direction in taken[~consistent].tolist():
            self.classify_peer(direction)
        for row in rows[~plain].tolist():
            direction = int(runs.direction[row])
            head = bytes(self._store.read(int(runs.address[row]), min(HEAD, int(runs.size[row]))))
            mode = self._detector.classify(direction, head, from_start=True, final=False)
            if mode == _FRAMES:
                self._state.mode.values[direction] = _FRAMES
                self.classify_peer(direction)
            elif mode == _OTHER:
                self._state.reject(direction)
                self._reconsider(direction ^ 1)

    def classify(self, directions: Collection[int]) -> None:
        """Classify directions that are undecided. One that is decided may decide its peer."""
        waiting = [d for d in directions if self._state.mode.values[d] == _UNDECIDED]
        while waiting:
            decided = [direction for direction in waiting if self._classify_one(direction)]
            if not decided:
                return
            peers = {direction ^ 1 for direction in decided}
            waiting = [d for d in peers if d in self._state.held and self._state.mode.values[d] == _UNDECIDED]

    def _classify_one(self, direction: int) -> bool:
        stream = self._state.held[direction]
        missing = stream.gap()
        head = stream.peek(self._store, HEAD, after=missing) or b""
        from_start = stream.at == missing == 0
        final = self._state.has_ended(direction) or stream.end - stream.at >= self._limits.undecided_bytes
        mode = int(self._detector.classify(direction, head, from_start=from_start, final=final))
        if mode == _UNDECIDED:
            if not final:
                return False
            mode = _OTHER
        self._state.mode.values[direction] = mode
        if mode in (_FRAMES, _SEARCH):
            self._state.emit_pending_rows(direction)
        if mode == _OTHER:
            self._state.reject(direction)
            self._reconsider(direction ^ 1)
        elif mode == _FRAMES:
            self._state.skip(direction, stream, FrameKind.GAP, missing)
            self.classify_peer(direction)
            self._splitter.split(direction, stream)
        else:
            self._state.needs_search.add(direction)
        return True

    def classify_peer(self, direction: int) -> None:
        """Take the peer of a direction that is Kafka for Kafka, too."""
        peer = direction ^ 1
        mode = int(self._state.mode.values[peer])
        if mode == _UNDECIDED and peer not in self._state.pending_rows:
            return
        if mode == _OTHER:
            self._state.mode.values[peer] = _SEARCH
        elif self._state.pending_rows.get(peer):
            self._state.mode.values[peer] = _SEARCH
            self._state.needs_search.add(peer)
            self._state.emit_pending_rows(peer)
        else:
            self._reconsider(peer)

    def _reconsider(self, direction: int) -> None:
        """Classify a direction that was only possibly Kafka again: its peer is known now."""
        if self._state.mode.values[direction] == _POSSIBLE:
            self._state.mode.values[direction] = _UNDECIDED
            self._state.searches.pop(direction, None)
            if direction in self._state.held:
                self.classify([direction])
