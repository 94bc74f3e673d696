"""Counts the rows of a growing capture as they complete, beside whoever reads and shows them.

A thread does it, which rests as long as it has worked: the screen and the rows of `--text` go first. A row is counted
when it is complete, or when so many wait for their response that it is given up, as printed rows are.
"""

import threading
import time
from typing import Final

import numpy as np

from dissector.capture.live import Recording
from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.metrics.live_metrics import LiveMetrics, ReadingState

SECONDS: Final = 0.25
"""Between two looks, at least."""
STEP: Final = 256
"""Rows that are counted before it rests."""
END_SECONDS: Final = 5


class RowMeter:
    """Counts until the capture is closed."""

    def __init__(self, capture: Capture, recording: Recording | None, metrics: LiveMetrics) -> None:
        self._capture = capture
        self._recording = recording
        self._metrics = metrics
        self._known = 0
        """Rows before this one were seen."""
        self._waiting: Int64 = np.zeros(0, np.int64)
        """Rows that were seen and are not counted."""
        self._state = ReadingState()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def __enter__(self) -> "RowMeter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join(END_SECONDS)

    def _run(self) -> None:
        rest = SECONDS
        while not self._closed.wait(rest):
            begun = time.monotonic()
            some = self.look()
            took = time.monotonic() - begun
            rest = took if some == STEP else max(SECONDS, took)

    def look(self) -> int:
        """Count rows that have completed, at most `STEP`; return how many."""
        capture = self._capture
        count = len(capture)
        self._waiting = np.concatenate([self._waiting, np.arange(self._known, count)])
        self._known = count
        complete = np.flatnonzero(self._may_be_counted())[:STEP]
        rows = self._waiting[complete]
        self._waiting = np.delete(self._waiting, complete)
        if len(rows):
            for _ in capture.findings.examine():
                pass
        for exchange in capture.at(rows):
            self._metrics.add(exchange, capture.connections.software(exchange.fields.connection))
        self._note_state()
        return len(rows)

    def _may_be_counted(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        complete = self._capture.index.is_complete(self._waiting)
        complete[: -self._capture.limits.pending_requests] = True
        return complete

    def _note_state(self) -> None:
        recording, read = self._recording, self._capture.packets
        captured, dropped = (recording.captured, recording.dropped) if recording is not None else (read, 0)
        now = ReadingState(max(captured, read), dropped, read, len(self._capture.connections))
        self._metrics.came_from(self._state, now, len(self._waiting))
        self._state = now
