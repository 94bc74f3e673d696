"""Count rows of the index by group, in columns.

Invariant: the counts of all groups add up to the counts of all rows.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.stats.counts import CountsByKey, ExchangeCounts, GroupKey
from dissector.analysis.stats.histogram import BUCKETS, Histogram, buckets_of
from dissector.core.arrays import Bool, Int64
from dissector.index.exchange_table import Flag
from dissector.index.index_columns import IndexColumns
from dissector.protocol.schema.waiting import WAITING

WAITING_KEYS: Final = np.array(sorted(WAITING), np.int64)


def count_by_group(groups: Int64, rows: IndexColumns) -> Iterator[tuple[int, ExchangeCounts]]:
    """Yield each group's number and the counts of its rows; `groups` is `(n,)`."""
    keys, group = np.unique(groups, return_inverse=True)
    has_request, has_response = rows.request_size >= 0, rows.response_size >= 0
    unanswered = has_request & ~has_response & (rows.flags & Flag.NO_RESPONSE_EXPECTED == 0)
    sums = [
        _sums(group, len(keys), values)
        for values in (np.ones(len(group), np.int64), np.where(has_request, rows.request_size, 0),
                       np.where(has_response, rows.response_size, 0), unanswered)
    ]  # fmt: skip
    may_wait, latency = np.isin(rows.api_key, WAITING_KEYS), rows.latency_ns
    latencies = _histograms(group, len(keys), latency, rows.has_latency & ~may_wait)
    waits = _histograms(group, len(keys), latency, rows.has_latency & may_wait)
    for at, key in enumerate(keys.tolist()):
        exchanges, bytes_out, bytes_in, missing = (column[at] for column in sums)
        yield key, ExchangeCounts(exchanges, bytes_out, bytes_in, 0, missing, latencies[at], waits[at])


class MeasureColumns(NamedTuple):
    """`RowMeasures` of many rows, `(n,)` each."""

    out: Int64
    """Bytes from the client to the server."""
    back: Int64
    error: Bool
    latency_ns: Int64
    has_latency: Bool
    may_wait: Bool

    @classmethod
    def of(cls, rows: IndexColumns, at: Int64) -> "MeasureColumns":
        """Return those of the rows at some places, without errors."""
        no_error = np.zeros(len(rows.kind), np.bool_)
        return cls(
            np.maximum(rows.request_size, 0), np.maximum(rows.response_size, 0), no_error,
            rows.latency_ns, rows.has_latency, np.isin(rows.api_key, WAITING_KEYS),
        ).where(at)  # fmt: skip

    def where(self, chosen: Bool | Int64) -> "MeasureColumns":
        """Those of some of the rows."""
        return MeasureColumns(
            self.out[chosen], self.back[chosen], self.error[chosen], self.latency_ns[chosen],
            self.has_latency[chosen], self.may_wait[chosen],
        )  # fmt: skip


def add_by_key(counts: CountsByKey[GroupKey], keys: Sequence[GroupKey], numbers: Int64, rows: MeasureColumns) -> None:
    """Count rows under keys, by the number of each row's key; keys come in the order of their first rows."""
    different, first, group = np.unique(numbers, return_index=True, return_inverse=True)
    sums = [
        _sums(group, len(different), each) for each in (np.ones(len(group), np.int64), rows.out, rows.back, rows.error)
    ]
    latencies = _histograms(group, len(different), rows.latency_ns, rows.has_latency & ~rows.may_wait)
    waits = _histograms(group, len(different), rows.latency_ns, rows.has_latency & rows.may_wait)
    for at in np.argsort(first).tolist():
        exchanges, bytes_out, bytes_in, errors = (column[at] for column in sums)
        counts.of(keys[int(different[at])]).merge(
            ExchangeCounts(exchanges, bytes_out, bytes_in, errors, 0, latencies[at], waits[at])
        )


def _sums(group: Int64, count: int, values: Int64 | Bool) -> list[int]:
    """Return the sum of each group; exact, as a step's rows have fewer than 2**53 bytes."""
    sums: list[int] = np.bincount(group, values, count).astype(np.int64).tolist()
    return sums


def _histograms(group: Int64, count: int, latency_ns: Int64, which: Bool) -> list[Histogram]:
    """Return the histogram of each group, of the chosen rows."""
    histograms = [Histogram() for _ in range(count)]
    latency, group = latency_ns[which], group[which]
    if not len(latency):
        return histograms
    order = np.lexsort((latency, group))
    latency, group = latency[order], group[order]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    ends = np.append(starts[1:], len(group))
    found, counts = np.unique(group * BUCKETS + buckets_of(latency), return_counts=True)
    edges = np.searchsorted(found, np.append(group[starts], count) * BUCKETS)
    for n, at in enumerate(group[starts].tolist()):
        low, high = edges[n], edges[n + 1]
        histograms[at].add_counts(
            dict(zip((found[low:high] % BUCKETS).tolist(), counts[low:high].tolist(), strict=True)),
            int(latency[starts[n]]),
            int(latency[ends[n] - 1]),
        )
    return histograms
