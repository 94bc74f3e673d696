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

    def __init__(
        self, capture: Capture, recording: Recording | None, metrics: LiveMetrics, before: "RowMeter | None" = None
    ) -> None:
        """`before` counted the rows of the capture that this one continues."""
        self._capture = capture
        self._recording = recording
        self._metrics = metrics
        self._seen = capture.incremental.known_rows
        """Rows before this one were looked at."""
        self._waiting: Int64 = capture.incremental.pending_rows
        """Those of them that are not counted; so few that a look takes no longer where counting is behind."""
        self._state: ReadingState = ReadingState() if before is None else before._state
        self._hurries = False
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
            hurries, some = self._hurries, self.look()
            if hurries and not some:
                return
            took = 0 if hurries else time.monotonic() - begun
            rest = took if hurries or some == STEP else max(SECONDS, took)

    def has_counted_all(self) -> bool:
        """Whether all rows that are complete are counted, where no others come: from now on it does not rest."""
        self._hurries = True
        return not self._thread.is_alive()

    def look(self) -> int:
        """Count rows that have completed, at most `STEP`; return how many."""
        capture = self._capture
        seen = min(len(capture), self._seen + capture.limits.pending_requests + STEP - len(self._waiting))
        self._waiting = np.concatenate([self._waiting, np.arange(self._seen, seen)])
        self._seen = seen
        complete = np.flatnonzero(self._may_be_counted())[:STEP]
        rows = self._waiting[complete]
        self._waiting = np.delete(self._waiting, complete)
        if len(rows):
            for _ in capture.findings.examine():
                if self._closed.is_set():
                    return 0
        for exchange in capture.at(rows):
            if self._closed.is_set():  # and the capture will be, whether all are counted or not
                return 0
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
        uncounted = len(self._waiting) + len(self._capture) - self._seen
        self._metrics.came_from(self._state, now, uncounted)
        self._state = now
