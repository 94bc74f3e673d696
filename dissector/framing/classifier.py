"""What directions are: each is asked about until it is known, and what is known of one tells of its peer."""

from collections.abc import Collection

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import FrameKind, RunBatch, RunKind
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.framing.detector import Classification, Detector
from dissector.framing.direction_state import DirectionState
from dissector.framing.frame_splitter import FrameSplitter
from dissector.framing.sizes import HEAD, LEAST_HEAD

_UNDECIDED, _PERHAPS, _FRAMES, _SEARCH, _OTHER = Classification
"""Bound once: members of an enum are slow to look up."""


class Classifier:
    """Asks the recogniser."""

    def __init__(
        self, store: Store, recogniser: Detector, limits: Limits, state: DirectionState, cutter: FrameSplitter
    ) -> None:
        self._store = store
        self._recogniser = recogniser
        self._limits = limits
        self._state = state
        self._cutter = cutter

    def recognise(self, runs: RunBatch, firsts: Int64) -> None:
        """Directions that begin here with enough to tell them by are settled at once, the client's side first."""
        fresh = (self._state.mode.values[runs.direction[firsts]] == _UNDECIDED) & (runs.start[firsts] == 0)
        fresh &= (runs.kind[firsts] == RunKind.DATA) & (runs.size[firsts] >= LEAST_HEAD)
        rows = firsts[fresh]
        if not len(rows):
            return
        rows = rows[np.argsort(runs.packet[rows], kind="stable")]
        heads = self._store.gather(runs.address[rows], HEAD)
        plain = self._recogniser.begin(runs.direction[rows], heads, runs.size[rows])
        taken = runs.direction[rows[plain]]
        self._state.mode.values[taken] = _FRAMES
        settled = np.isin(self._state.mode.values[taken ^ 1], (_UNDECIDED, _FRAMES)) & (not self._state.untold)
        for direction in taken[~settled].tolist():
            self.settle_peer(direction)
        for row in rows[~plain].tolist():
            direction = int(runs.direction[row])
            head = bytes(self._store.read(int(runs.address[row]), min(HEAD, int(runs.size[row]))))
            verdict = self._recogniser.verdict(direction, head, from_start=True, final=False)
            if verdict == _FRAMES:
                self._state.mode.values[direction] = _FRAMES
                self.settle_peer(direction)
            elif verdict == _OTHER:
                self._state.leave(direction)
                self._ask_again(direction ^ 1)

    def decide(self, directions: Collection[int]) -> None:
        """Ask what directions are that are undecided; one that is decided may settle its peer."""
        waiting = [d for d in directions if self._state.mode.values[d] == _UNDECIDED]
        while waiting:
            settled = [direction for direction in waiting if self._decide_one(direction)]
            if not settled:
                return
            peers = {direction ^ 1 for direction in settled}
            waiting = [d for d in peers if d in self._state.held and self._state.mode.values[d] == _UNDECIDED]

    def _decide_one(self, direction: int) -> bool:
        stream = self._state.held[direction]
        missing = stream.gap()
        head = stream.peek(self._store, HEAD, after=missing) or b""
        from_start = stream.at == missing == 0
        final = self._state.is_over(direction) or stream.end - stream.at >= self._limits.undecided_bytes
        verdict = self._recogniser.verdict(direction, head, from_start=from_start, final=final)
        if verdict == _UNDECIDED:
            if not final:
                return False
            verdict = _OTHER
        self._state.mode.values[direction] = verdict
        if verdict == _OTHER:
            self._state.leave(direction)
            self._ask_again(direction ^ 1)
        elif verdict == _FRAMES:
            self._state.skip(direction, stream, FrameKind.GAP, missing)
            self.settle_peer(direction)
            self._cutter.split(direction, stream)
        else:
            self._state.stirred.add(direction)
        return True

    def settle_peer(self, direction: int) -> None:
        """A direction is Kafka's, and so is its peer."""
        peer = direction ^ 1
        mode = int(self._state.mode.values[peer])
        if mode == _UNDECIDED and peer not in self._state.untold:
            return
        if mode == _OTHER:
            self._state.mode.values[peer] = _SEARCH
        elif self._state.untold.get(peer):
            self._state.mode.values[peer] = _SEARCH
            self._state.stirred.add(peer)
            self._state.tell(peer)
        else:
            self._ask_again(peer)

    def _ask_again(self, direction: int) -> None:
        """What a direction is, of which the peer is known now."""
        if self._state.mode.values[direction] == _PERHAPS:
            self._state.mode.values[direction] = _UNDECIDED
            self._state.searches.pop(direction, None)
            if direction in self._state.held:
                self.decide([direction])
