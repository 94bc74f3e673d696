"""What is counted of the exchanges of each label set of a dimension, as arrays.

They become the library's objects when they are scraped: an exchange adds to some 50 numbers.

Invariant: the sums are exact, and do not overflow: those of times are seconds and nanoseconds apart.
"""

from typing import Final, NamedTuple

import numpy as np
from prometheus_client.utils import floatToGoString

from dissector.core.arrays import Bool, Int64
from dissector.core.grouping import begins, expanded, owners
from dissector.core.times import SECOND
from dissector.index.index_columns import IndexColumns

BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Seconds. A Fetch waits for half a second by default, a JoinGroup for minutes."""
PARTS: Final = ("request", "wait", "response")
_BOUNDS: Final = np.array([round(each * SECOND) for each in BUCKETS], np.int64)
_NAMES: Final = (*map(floatToGoString, BUCKETS), "+Inf")
_TOGETHER: Final = 1 << 16
"""Exchanges that are added at once, each as often as it has label sets."""


class _Times(NamedTuple):
    """Durations of those of some exchanges that have one."""

    there: Bool
    """Which ones these are, `(n,)`."""
    bucket: Int64
    seconds: Int64
    nanoseconds: Int64

    @classmethod
    def of(cls, times_ns: Int64, there: Bool) -> "_Times":
        return cls(there, np.searchsorted(_BOUNDS, times_ns), *np.divmod(times_ns, SECOND))


class Measures(NamedTuple):
    """What is counted of exchanges, `(n,)` each."""

    totals: tuple[Int64 | Bool, ...]
    """One each, bytes of the request and the response, and whether there is an error."""
    times: tuple[_Times, ...]
    """The latency, and its parts."""

    @classmethod
    def of(cls, exchanges: IndexColumns, failed: Bool) -> "Measures":
        """Those of exchanges, of which some failed."""
        asked, answered = exchanges.request_size, exchanges.response_size
        times = (
            _Times.of(exchanges.latency_ns, exchanges.has_latency),
            _Times.of(exchanges.request_transfer_ns, asked >= 0),
            _Times.of(exchanges.wait_ns, exchanges.has_latency),
            _Times.of(exchanges.response_transfer_ns, answered >= 0),
        )
        return cls((np.ones(len(failed), np.bool_), np.maximum(asked, 0), np.maximum(answered, 0), failed), times)


class ScrapedTimes(NamedTuple):
    """Durations as they are scraped."""

    buckets: list[tuple[str, float]]
    """How many are not longer than each bound."""
    sum: float
    """Seconds."""


class Sums(NamedTuple):
    """What is counted of one label set."""

    exchanges: int
    request_bytes: int
    response_bytes: int
    errors: int
    latency: ScrapedTimes
    parts: list[ScrapedTimes]


class Series:
    """So many label sets, by number from 0."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._totals = np.zeros((4, count), np.int64)
        self._buckets = np.zeros((1 + len(PARTS), count, len(_NAMES)), np.int64)
        self._seconds = np.zeros((1 + len(PARTS), count), np.int64)
        self._nanoseconds = np.zeros((1 + len(PARTS), count), np.int64)

    def add(self, measures: Measures, which: Int64, series: list[list[int]]) -> None:
        """Add exchanges, each to the label sets of a list, each set once; `which` is the number of the list, `(n,)`."""
        counts = np.array([len(each) for each in series], np.int64)
        every = np.array([number for each in series for number in each], np.int64)
        of_row = counts[which]
        rows, numbers = owners(of_row), every[expanded(begins(counts)[which], of_row)]
        for first in range(0, len(rows), _TOGETHER):
            some = slice(first, first + _TOGETHER)
            self._add(measures, rows[some], numbers[some])
        self._seconds += self._nanoseconds // SECOND
        self._nanoseconds %= SECOND

    def _add(self, measures: Measures, rows: Int64, numbers: Int64) -> None:
        for total, values in zip(self._totals, measures.totals, strict=True):
            total += self._sums(numbers, values[rows])
        for at, times in enumerate(measures.times):
            there = times.there[rows]
            row, number = rows[there], numbers[there]
            places = number * len(_NAMES) + times.bucket[row]
            self._buckets[at] += np.bincount(places, minlength=self._buckets[at].size).reshape(self._count, -1)
            self._seconds[at] += self._sums(number, times.seconds[row])
            self._nanoseconds[at] += self._sums(number, times.nanoseconds[row])

    def _sums(self, numbers: Int64, values: Int64 | Bool) -> Int64:
        """The sums of values by number: exact, as those of so few are less than 2**53."""
        return np.bincount(numbers, values, self._count).astype(np.int64)

    def of(self, number: int) -> Sums:
        """What was counted of a label set."""
        latency, *parts = (self._histogram(at, number) for at in range(1 + len(PARTS)))
        exchanges, asked, answered, errors = self._totals[:, number].tolist()
        return Sums(exchanges, asked, answered, errors, latency, parts)

    def _histogram(self, at: int, number: int) -> ScrapedTimes:
        counts = map(float, np.cumsum(self._buckets[at, number]).tolist())
        whole_ns = int(self._seconds[at, number]) * SECOND + int(self._nanoseconds[at, number])
        return ScrapedTimes(list(zip(_NAMES, counts, strict=True)), whole_ns / SECOND)
