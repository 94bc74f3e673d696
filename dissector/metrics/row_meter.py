"""Counts the rows of a growing capture as they complete, beside whoever reads and shows them.

A thread does it, which rests as long as it has worked: the screen and the rows of `--text` go first. A row is counted
when it is complete, or when so many wait for their response that it is given up, as printed rows are.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

import numpy as np

from dissector.capture.live import Recording
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.metrics.live_metrics import LiveMetrics, ReadingState
from dissector.metrics.look import Looking

SECONDS: Final = 1
"""Between two looks, at least: it takes a while for each kind of message that there is, however few there are of it."""
STEP: Final = 1 << 13
"""Rows that are counted at once, ..."""
STEP_BYTES: Final = 1 << 24
"""... and bytes of their frames, but for the last one."""
LONGEST_SECONDS: Final = 0.1
"""That it works without a rest, where rows have to be decoded or examined."""
END_SECONDS: Final = 5

Step = TypeVar("Step")


class _ClosedError(Exception):
    """The capture will be closed."""


class RowMeter:
    """Counts until the capture is closed."""

    def __init__(
        self, capture: Capture, recording: Recording | None, metrics: LiveMetrics, before: ReadingState | None = None
    ) -> None:
        """`before` is how far the capture came that this one continues, where its rows were counted."""
        self._capture = capture
        self._recording = recording
        self._metrics = metrics
        self._seen = capture.incremental.known_rows
        """Rows before this one were looked at."""
        self._waiting: Int64 = capture.incremental.pending_rows
        """Those of them that are not counted; so few that a look takes no longer where counting is behind."""
        self.state = before or ReadingState()
        """How far reading has come, as it is counted."""
        self._looking = Looking(capture)
        self._rested = time.thread_time()
        """When it last did, in seconds that its thread has worked."""
        self._is_behind = False
        """Whether the last look left out rows that were complete."""
        self._is_closed = False
        self._hurries = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def __enter__(self) -> "RowMeter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        self._hurries.set()
        self._thread.join(END_SECONDS)

    def _run(self) -> None:
        self._rest(SECONDS)
        while not self._is_closed:
            hurries, some = self._hurries.is_set(), self.look()
            if hurries and not some:
                return
            self._rest(0 if self._is_behind else SECONDS)

    def _rest(self, least: float = 0) -> None:
        """Rest as long as it has worked, and at least so many seconds. While it waits for its turn, others work."""
        self._hurries.wait(max(least, time.thread_time() - self._rested))
        self._rested = time.thread_time()

    def has_counted_all(self) -> bool:
        """Whether all rows that are complete are counted, where no others come: from now on it does not rest."""
        self._hurries.set()
        return not self._thread.is_alive()

    def look(self) -> int:
        """Count rows that have completed, at most `STEP` with about `STEP_BYTES`; return how many."""
        capture = self._capture
        seen = min(len(capture), self._seen + capture.limits.pending_requests + STEP - len(self._waiting))
        self._waiting = np.concatenate([self._waiting, np.arange(self._seen, seen)])
        self._seen = seen
        complete = np.flatnonzero(self._may_be_counted())
        rows = self._waiting[complete[:STEP]]
        rows = rows[: int(np.searchsorted(np.cumsum(capture.index.sizes(rows)), STEP_BYTES)) + 1]
        self._is_behind = len(rows) < len(complete)
        self._waiting = np.delete(self._waiting, complete[: len(rows)])
        if len(rows):
            try:
                self._count(rows)
            except _ClosedError:
                return 0
        self._note_state()
        return len(rows)

    def _count(self, rows: Int64) -> None:
        """Raises `_ClosedError` where the capture will be closed, whether all are counted or not."""
        findings = self._capture.findings
        for _ in self._paced(findings.examine()):
            pass
        for _ in self._paced(findings.examine_messages(rows)):
            pass
        self._metrics.add(self._looking.at(rows, self._paced))

    def _paced(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield steps, with rests between them."""
        for step in steps:
            if self._is_closed:
                raise _ClosedError
            yield step
            if time.thread_time() - self._rested > LONGEST_SECONDS:
                self._rest()

    def _may_be_counted(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        complete = self._capture.index.is_complete(self._waiting)
        complete[: -self._capture.limits.pending_requests] = True
        return complete

    def _note_state(self) -> None:
        recording, read = self._recording, self._capture.packets
        captured, dropped = (recording.captured, recording.dropped) if recording is not None else (read, 0)
        now = ReadingState(max(captured, read), dropped, read, len(self._capture.connections))
        uncounted = len(self._waiting) + len(self._capture) - self._seen
        self._metrics.came_from(self.state, now, uncounted)
        self.state = now
