"""Counts exchanges one by one, as the columns of the program have to."""

import numpy as np

from dissector.analysis.stats.counts import ExchangeCounts
from dissector.analysis.stats.histogram import Histogram


def count(counts: ExchangeCounts, out: int, back: int, error: bool, latency_ns: int | None, *, waits: bool) -> None:
    """Count one more exchange; `waits`: of an API whose response may wait on purpose."""
    one = ExchangeCounts(1, out, back, int(error))
    if latency_ns is not None:
        (one.waits if waits else one.latency).merge(Histogram.of(np.array([latency_ns], np.int64)))
    counts.merge(one)
