"""Exchanges, bytes, latencies and errors over time, in slots of equal length, from columns of the index.

Rows are read once (`graph_rows`), then put into as many slots as there is room for (`IoGraph.of`), again and again as
somebody zooms. Latencies are those without long polls, unless there are no others. Percentiles come from histograms
with the buckets of `stats.histogram`: within 0.8 %.

Invariants:
  * every row with a time between `begin_ns` and `end_ns` is in one slot, and no other is;
  * no Python object is made for a row.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.stats.histogram import BUCKETS, buckets_of, middle_of
from dissector.analysis.stats.statistics_pass import StatisticsPass
from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.exchange.row_fields import ROW_FIELDS
from dissector.protocol.schema.api_groups import WAITING

ROWS_AT_ONCE: Final = 1 << 18
"""Rows whose columns are read at once: some 20 MB."""
NO_BUCKET: Final = -1


class GraphRows(NamedTuple):
    """Rows that have a time, `(n,)` each."""

    rows: Int64
    """Their numbers, from 0, ascending."""
    time_ns: Int64
    """Of the request; of the response where the request is missing."""
    bytes: Int64
    """Of both messages."""
    bucket: Int64
    """The bucket of the latency; `NO_BUCKET` for none, or for one that is not counted."""
    is_error: Bool
    """Filled by `mark_errors`."""


def graph_rows(capture: Capture, rows: Int64) -> GraphRows:
    """Return what is drawn of some rows, ascending."""
    parts = [_part(capture, rows[at : at + ROWS_AT_ONCE]) for at in range(0, max(1, len(rows)), ROWS_AT_ONCE)]
    numbers, time_ns, carried, latency_ns, waits = (np.concatenate(column) for column in zip(*parts, strict=True))
    has_latency = latency_ns >= 0
    if (has_latency & ~waits).any():
        has_latency &= ~waits
    bucket = np.full(len(numbers), NO_BUCKET, np.int64)
    bucket[has_latency] = buckets_of(latency_ns[has_latency])
    return GraphRows(numbers, time_ns, carried, bucket, np.zeros(len(numbers), np.bool_))


def _part(capture: Capture, rows: Int64) -> tuple[Int64, Int64, Int64, Int64, Bool]:
    columns = capture.index.numbers(rows)
    time_ns = np.where(columns.request_time_ns > 0, columns.request_time_ns, columns.response_time_ns)
    carried = np.maximum(columns.request_size, 0) + np.maximum(columns.response_size, 0)
    latency_ns = np.where(columns.has_latency, np.maximum(columns.latency_ns, 0), -1)
    waits = np.isin(columns.api_key, np.array(list(WAITING), np.int64))
    there = time_ns > 0
    return rows[there], time_ns[there], carried[there], latency_ns[there], waits[there]


def mark_errors(capture: Capture, found: GraphRows) -> Iterator[int]:
    """Mark the rows whose response has an error; yield after each step how many rows of the capture are looked at."""
    from dissector.filter import parse  # few need the parser of filters

    if not len(found.rows):
        return
    for step in capture.select(parse("error"), int(found.rows[0]), int(found.rows[-1]) + 1):
        failed = np.asarray(step.rows, np.int64)
        at = np.minimum(np.searchsorted(found.rows, failed), len(found.rows) - 1)
        found.is_error[at[found.rows[at] == failed]] = True
        yield step.upto


def most_frequent(capture: Capture, name: str, rows: Int64, most: int) -> list[tuple[str, int]]:
    """Return the values of a row field that most of these rows have, and how many have each: of a field of the index,
    which is counted in columns, or of `topic`, for which messages are read."""
    field = ROW_FIELDS[name]
    found = Counter[str]()
    if field.is_indexed:
        _, columns = capture.index.field_columns(rows)
        for read in field.from_index:
            column = read(columns)
            show = column.texts or field.show or str
            numbers, counts = np.unique(column.values[column.present], return_counts=True)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
                value = show(number)
                found[str(value)] += count if value is not None else 0
    else:
        counting = StatisticsPass(capture, rows)
        for _ in counting.steps():
            pass
        found.update({topic: counts.exchanges for topic, counts in counting.statistics.topics.ranked(most)})
    return [(value, count) for value, count in found.most_common(most) if count]


class IoGraph(NamedTuple):
    """A graph from `begin_ns` on; columns of slots, `(n,)`."""

    begin_ns: int
    slot_ns: int
    exchanges: Int64
    bytes: Int64
    errors: Int64
    cumulated: Int64
    """Of each slot how many latencies are in a bucket or in one below: `(n, BUCKETS)`."""

    @classmethod
    def of(cls, found: GraphRows, begin_ns: int, end_ns: int, slots: int) -> "IoGraph":
        """Put rows from `begin_ns` to `end_ns`, both included, into slots."""
        slot_ns = max(1, -((begin_ns - end_ns - 1) // slots))
        is_within = (found.time_ns >= begin_ns) & (found.time_ns <= end_ns)
        slot = (found.time_ns[is_within] - begin_ns) // slot_ns
        bucket = found.bucket[is_within]
        counted = bucket != NO_BUCKET
        cells = np.bincount(slot[counted] * BUCKETS + bucket[counted], minlength=slots * BUCKETS)
        return cls(
            begin_ns, slot_ns, np.bincount(slot, minlength=slots),
            np.bincount(slot, weights=found.bytes[is_within], minlength=slots).astype(np.int64),
            np.bincount(slot[found.is_error[is_within]], minlength=slots),
            np.cumsum(cells.reshape(slots, BUCKETS), axis=1),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.exchanges)

    def percentile(self, percent: float) -> Int64:
        """A percentile of the latency of each slot in nanoseconds, `(n,)`; -1 for none."""
        return np.array([_percentile(counts, percent) for counts in self.cumulated], np.int64)

    def percentile_of(self, slots: range, percent: float) -> int | None:
        """A percentile of the latencies of some slots, nanoseconds; None for none."""
        found = _percentile(self.cumulated[slots.start : slots.stop].sum(axis=0), percent)
        return None if found < 0 else found

    def span(self, slots: range) -> tuple[int, int]:
        """Where some slots begin, and where the next one would: nanoseconds since 1970."""
        return self.begin_ns + slots.start * self.slot_ns, self.begin_ns + slots.stop * self.slot_ns


def _percentile(cumulated: Int64, percent: float) -> int:
    """The middle of the bucket that has the percentile; -1 where there is none."""
    count = int(cumulated[-1])
    if not count:
        return -1
    rank = max(1, -int(-percent * count // 100))
    return middle_of(int(np.searchsorted(cumulated, rank)))


def bounds(found: GraphRows) -> tuple[int, int] | None:
    """The first and the last time, nanoseconds since 1970; None without rows."""
    return (int(found.time_ns.min()), int(found.time_ns.max())) if len(found.time_ns) else None
