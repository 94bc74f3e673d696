"""Statistics of the last seconds of a live capture. They come from columns of the index, so that no frame is decoded;
but for errors, which are in responses: each is decoded once, in a thread.

Of a busy capture only the newest `MOST` rows count: they are enough for a percentile, and their cost is constant.
"""

from collections import deque
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.text import byte_size, counted, duration
from dissector.protocol.schema.api_groups import WAITING

SECONDS: Final = 5
"""The seconds that the statistics cover."""
MOST: Final = 2048
"""Rows that are read."""
_COLUMNS: Final = ("time_ns", "latency_ns", "request.size", "response.size", "api_key")


class LiveStats(NamedTuple):
    """Rates per second; times in nanoseconds, None if there are no exchanges for them."""

    exchanges: float = 0.0
    bytes: float = 0.0
    p50_ns: int | None = None
    """Of the responses that do not wait on purpose, as `p99_ns`."""
    p99_ns: int | None = None
    in_flight: int = 0
    oldest_ns: int | None = None
    """How long the oldest pending request has been waiting."""
    errors: int = 0
    """Responses with an error."""

    def words(self) -> list[str]:
        """Return the statistics as text, the most important first."""
        parts = [f"{self.exchanges:,.0f}/s", f"{byte_size(round(self.bytes))}/s"]
        parts.append(f"{counted(self.errors, 'error')} in {SECONDS} s")
        if self.p50_ns is not None and self.p99_ns is not None:
            parts.append(f"p50 {duration(self.p50_ns)}, p99 {duration(self.p99_ns)}")
        waits = "" if self.oldest_ns is None else f", oldest {duration(self.oldest_ns)}"
        return [*parts, f"{self.in_flight:,} in flight{waits}"]


class ErrorTimes:
    """When responses with an error came."""

    def __init__(self) -> None:
        self._upto = 0
        """Rows before this one are read, but for those that wait for their response."""
        self._waiting: Int64 = np.zeros(0, np.int64)
        self._times: deque[int] = deque(maxlen=MOST)

    def look(self, capture: Capture) -> None:
        """Count the errors that came since the last call; of more than `MOST` rows the newest."""
        from dissector.filter import parse

        upto = len(capture)
        oldest = max(0, upto - MOST)
        rows = np.concatenate([self._waiting[self._waiting >= oldest], np.arange(max(self._upto, oldest), upto)])
        complete = capture.index.is_complete(rows)
        self._upto, self._waiting = upto, rows[~complete]
        failed = capture.matching(parse("error"), rows[complete])
        self._times.extend(sorted(capture.index.numbers(failed).response_time_ns.tolist()))

    def since(self, time_ns: int) -> int:
        """Return how many errors came since a time, as far as they are known."""
        return sum(each >= time_ns for each in self._times.copy())


def live_stats(capture: Capture, now_ns: int, errors: ErrorTimes) -> LiveStats:
    """Return the statistics at a time, in the clock of the capture."""
    count = len(capture)
    first = max(0, count - MOST)
    times, latencies, request_sizes, response_sizes, keys = capture.index.columns(_COLUMNS, range(first, count))
    time_ns = np.array(times, np.int64)
    waits = ~capture.index.is_complete(np.arange(first, count))
    since = now_ns - SECONDS * 10**9
    failed = errors.since(since)
    if count and first and time_ns[0] > since:
        since = int(time_ns[0])  # more came than is read
    recent = np.flatnonzero(time_ns >= since)
    seconds = max((now_ns - since) / 1e9, 0.1)
    carried = sum(int(column[row] or 0) for row in recent.tolist() for column in (request_sizes, response_sizes))
    prompt = (row for row in recent.tolist() if keys[row] not in WAITING)
    took = [int(latencies[row] or 0) for row in prompt if latencies[row] is not None]
    p50, p99 = (int(each) for each in np.percentile(took, (50, 99))) if took else (None, None)
    oldest = max(0, now_ns - int(time_ns[waits].min())) if waits.any() else None
    return LiveStats(len(recent) / seconds, carried / seconds, p50, p99, int(waits.sum()), oldest, failed)
