"""A small, mergeable histogram of durations: percentiles of a million rows from a few hundred counts; and latencies
over time, a histogram for each of `SLOTS` intervals of equal length.

Each power of two has `STEPS` buckets of equal width. What `percentile` returns is the middle of a bucket, clipped to
the smallest and the largest value seen: within `RELATIVE_ERROR`, 1/128 or 0.8 %, of the value with that rank, from 0 to
2**53 ns (104 days); `least` and `most` are exact. A negative duration, possible in merged captures with different
clocks, counts as 0.

Invariant: merging is addition, so it is commutative and associative.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Self

import numpy as np

from dissector.core.arrays import Bool, Int64

STEPS: Final = 64
RELATIVE_ERROR: Final = 1 / (2 * STEPS)
BUCKETS: Final = 65 * STEPS
"""Every bucket's number is below this."""
PERCENTILES: Final = (50, 90, 99)
"""Those that are shown."""
_NUMBERS: Final = np.arange(BUCKETS).astype(np.object_)
"""Of the buckets: one object each, however many histograms have it."""
_EXACT: Final = STEPS.bit_length()
"""From this exponent on, a bucket is at least a nanosecond wide."""


def buckets_of(values: Int64) -> Int64:
    """Return the bucket of each duration in nanoseconds: `(n,)`."""
    mantissa, exponent = np.frexp(np.maximum(values, 0).astype(np.float64))
    steps: Int64 = exponent.astype(np.int64) * STEPS + np.maximum((mantissa * 2 - 1) * STEPS, 0).astype(np.int64)
    return steps


def middle_of(bucket: int) -> int:
    """Return the duration in the middle of a bucket, nanoseconds."""
    exponent, step = divmod(bucket, STEPS)
    if exponent < _EXACT:
        return (STEPS + step) >> (_EXACT - exponent) if exponent else 0
    width = 1 << (exponent - _EXACT)
    return (STEPS + step) * width + (width - 1) // 2


@dataclass(slots=True)
class Histogram:
    """Counts by bucket; durations in nanoseconds."""

    counts: dict[int, int] = field(default_factory=dict)
    least: int | None = None
    most: int | None = None

    @classmethod
    def of(cls, values: Int64) -> Self:
        """Return the histogram of durations."""
        histogram = cls()
        if len(values):
            buckets, counts = np.unique(buckets_of(values), return_counts=True)
            histogram.add_counts(
                dict(zip(buckets.tolist(), counts.tolist(), strict=True)), int(values.min()), int(values.max())
            )
        return histogram

    @staticmethod
    def power(bucket: int) -> int:
        """Return the smallest exponent of two that the durations of a bucket are below."""
        return bucket // STEPS

    def powers(self) -> dict[int, int]:
        """Return the number of durations between each power of two, by its exponent, and the one before."""
        found: dict[int, int] = {}
        for bucket, count in self.counts.items():
            power = self.power(bucket)
            found[power] = found.get(power, 0) + count
        return found

    def add_counts(self, counts: dict[int, int], least: int, most: int) -> None:
        """Add counts by bucket, with their smallest and largest duration."""
        if self.counts:
            for bucket, count in counts.items():
                self.counts[bucket] = self.counts.get(bucket, 0) + count
        else:
            self.counts = dict(counts)
        self.least = max(0, least) if self.least is None else min(self.least, max(0, least))
        self.most = max(0, most) if self.most is None else max(self.most, most)

    def merge(self, other: "Histogram") -> None:
        """Add the counts of another one."""
        if other.least is not None and other.most is not None:
            self.add_counts(other.counts, other.least, other.most)

    def merged(self, other: "Histogram") -> "Histogram":
        """Return the counts of both; one of the two where the other is empty. Neither is changed."""
        if other.least is None:
            return self
        if self.least is None:
            return other
        both = Histogram(dict(self.counts), self.least, self.most)
        both.merge(other)
        return both

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self.counts.values())

    def percentile(self, percent: float) -> int | None:
        """Return the approximate duration that so many percent do not exceed; None for an empty histogram."""
        if self.least is None or self.most is None:
            return None
        rank = max(1, -int(-percent * self.count // 100))
        seen = 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= rank:
                return max(self.least, min(self.most, middle_of(bucket)))
        return self.most

    def summary(self) -> dict[str, int | None]:
        """Return the least and the largest duration and some percentiles, by the names in JSON."""
        percentiles = {f"p{percent}": self.percentile(percent) for percent in PERCENTILES}
        return {"min": self.least} | percentiles | {"max": self.most}


EMPTY: Final = Histogram()
"""Never changed: many counts share it."""
SLOTS: Final = 64
"""Intervals: as many as a terminal has room for."""


@dataclass(frozen=True)
class LatencyOverTime:
    """Latencies of exchanges by the time of the request: nanoseconds since 1970, both ends included."""

    begin_ns: int
    end_ns: int
    slots: tuple[Histogram, ...]

    @property
    def slot_ns(self) -> int:
        """The length of an interval."""
        return slot_ns(self.begin_ns, self.end_ns)

    @classmethod
    def of(cls, times_ns: Int64, latency_ns: Int64) -> "LatencyOverTime | None":
        """Return the histograms of exchanges, columns of `(n,)`; None without any."""
        if not len(times_ns):
            return None
        begin, end = int(times_ns.min()), int(times_ns.max())
        slot = (times_ns - begin) // slot_ns(begin, end)
        order = np.argsort(slot, kind="stable")
        edges = np.searchsorted(slot[order], np.arange(SLOTS + 1))
        return cls(begin, end, tuple(
            Histogram.of(latency_ns[order[low:high]]) for low, high in pairwise(edges)
        ))  # fmt: skip


def slot_ns(begin_ns: int, end_ns: int) -> int:
    """Return the length of each interval, in nanoseconds."""
    return (end_ns - begin_ns) // SLOTS + 1


def histograms_by_number(group: Int64, count: int, durations: Int64, which: Bool) -> list[Histogram]:
    """Return the histogram of each group, of the numbers from 0 to `count`, of the chosen rows. Groups without any
    share one."""
    histograms = [EMPTY] * count
    latency, group = durations[which], group[which]
    if not len(latency):
        return histograms
    order = np.lexsort((latency, group))
    latency, group = latency[order], group[order]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(starts[1:], len(group))
    found, counts = np.unique(group * BUCKETS + buckets_of(latency), return_counts=True)
    edges = np.searchsorted(found, np.append(group[starts], count) * BUCKETS).tolist()
    columns = (_NUMBERS[found % BUCKETS], counts, group[starts], latency[starts], latency[ends - 1])
    buckets, frequencies, groups, least, most = (column.tolist() for column in columns)
    for n, at in enumerate(groups):
        low, high = edges[n], edges[n + 1]
        histograms[at] = Histogram()
        histograms[at].add_counts(dict(zip(buckets[low:high], frequencies[low:high], strict=True)), least[n], most[n])
    return histograms
