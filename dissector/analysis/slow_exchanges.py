"""Find exchanges that took longer than comparable ones, from the columns of the index, without decoding.

Comparable are exchanges of one API on one connection if there are enough of them; else all of that API.
"""

from typing import Final

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Int64

MIN_EXCHANGES: Final = 100
"""The smallest group that has a 99th percentile."""
QUANTILE: Final = 0.99


def slow_rows(capture: Capture) -> Int64:
    """Return the rows, from 0 and ascending, whose latency is above the 99th percentile of their group."""
    index_columns = capture.index.numbers(np.arange(len(capture)))
    rows = np.flatnonzero(index_columns.has_latency)
    latency = index_columns.latency_ns[rows]
    of_api = _limits(index_columns.api_key[rows], latency)
    # A connection's number and an API's key, which is an int16, as one number.
    of_connection = _limits((index_columns.connection[rows] << 16) + index_columns.api_key[rows], latency)
    limit = np.where(of_connection >= 0, of_connection, of_api)
    return rows[(limit >= 0) & (latency > limit)]


def _limits(group: Int64, latency: Int64) -> Int64:
    """Return for each row the 99th percentile of its group (nearest rank), `(n,)`; -1 for a group that is too small."""
    order = np.lexsort((latency, group))
    sizes = np.unique(group, return_counts=True)[1]
    last = np.cumsum(sizes) - 1
    at = last - sizes + 1 + np.ceil(sizes * QUANTILE).astype(np.int64) - 1
    limit = np.where(sizes >= MIN_EXCHANGES, latency[order][at], -1) if len(group) else group
    result = np.empty_like(latency)
    result[order] = np.repeat(limit, sizes)
    return result
