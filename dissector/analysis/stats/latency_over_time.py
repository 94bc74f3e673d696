"""Latencies over time: a histogram for each of `SLOTS` intervals of equal length."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from dissector.analysis.stats.histogram import Histogram
from dissector.core.arrays import Int64

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
