"""Latencies in the order of time: a histogram for each of some stretches of the same length."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from dissector.analysis.stats.histogram import Histogram
from dissector.core.arrays import Int64

SLOTS: Final = 64
"""Stretches that a time is parted into: as many as a terminal has room for."""


@dataclass(frozen=True)
class LatencyOverTime:
    """Requests that were answered, by when they were sent: nanoseconds since 1970, both ends included."""

    begin_ns: int
    end_ns: int
    slots: tuple[Histogram, ...]

    @property
    def slot_ns(self) -> int:
        """How long a stretch is."""
        return slot_ns(self.begin_ns, self.end_ns)

    @classmethod
    def of(cls, times_ns: Int64, latency_ns: Int64) -> "LatencyOverTime | None":
        """Of some exchanges, columns of `(n,)`; None where there are none."""
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
    """How long each stretch of such a time is."""
    return (end_ns - begin_ns) // SLOTS + 1
