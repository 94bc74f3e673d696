"""Count rows of the index by group, in columns.

Invariant: the counts of all groups add up to the counts of all rows.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.analysis.stats.counts import CountsByKey, ExchangeCounts, GroupKey
from dissector.analysis.stats.histogram import histograms_by_number
from dissector.core.arrays import Bool, Int64
from dissector.exchange.finding_words import ERROR_RESPONSE
from dissector.exchange.model import Exchange
from dissector.exchange.row_findings import ACKS_0
from dissector.index.exchange_table import Flag
from dissector.index.index_columns import IndexColumns
from dissector.protocol.schema.api_groups import WAITING

WAITING_KEYS: Final = np.array(sorted(WAITING), np.int64)


def count_by_group(groups: Int64, rows: IndexColumns) -> Iterator[tuple[int, ExchangeCounts]]:
    """Yield each group's number and the counts of its rows, without errors; `groups` is `(n,)`."""
    keys, group = np.unique(groups, return_inverse=True)
    measures = MeasureColumns.of(rows)._replace(unanswered=are_unanswered(rows))
    yield from zip(keys.tolist(), counts_by_number(group, len(keys), measures), strict=True)


def are_unanswered(rows: IndexColumns) -> Bool:
    """Which rows, all of them exchanges, lack the response that their request expects, `(n,)`."""
    is_expected = rows.flags & Flag.NO_RESPONSE_EXPECTED == 0
    unanswered: Bool = (rows.request_size >= 0) & (rows.response_size < 0) & is_expected
    return unanswered


class RowMeasures(NamedTuple):
    """What is counted of a row: bytes, whether the response has an error or is missing, latency in nanoseconds, and
    whether its API may wait on purpose."""

    bytes_out: int
    bytes_in: int
    has_error: bool
    is_unanswered: bool
    latency_ns: int | None
    may_wait: bool

    @classmethod
    def of(cls, exchange: Exchange) -> "RowMeasures":
        """The measures of one row."""
        row = exchange.fields
        codes = {finding.code for finding in exchange.row_findings}
        is_missing = row.kind == "exchange" and row.request_size is not None and row.response_size is None
        return cls(
            row.request_size or 0, row.response_size or 0, ERROR_RESPONSE in codes,
            is_missing and ACKS_0.code not in codes, row.latency_ns, exchange.api_key in WAITING,
        )  # fmt: skip


class MeasureColumns(NamedTuple):
    """`RowMeasures` of many rows, `(n,)` each, and which of them count as exchanges."""

    counted: Bool

    out: Int64
    """Bytes from the client to the server."""
    back: Int64
    error: Bool
    unanswered: Bool
    latency_ns: Int64
    has_latency: Bool
    may_wait: Bool

    @classmethod
    def of(cls, rows: IndexColumns) -> "MeasureColumns":
        """Those of rows, none with an error or unanswered."""
        none = np.zeros(len(rows.kind), np.bool_)
        return cls(
            ~none, np.maximum(rows.request_size, 0), np.maximum(rows.response_size, 0), none, none,
            rows.latency_ns, rows.has_latency, np.isin(rows.api_key, WAITING_KEYS),
        )  # fmt: skip

    def where(self, chosen: Bool | Int64) -> "MeasureColumns":
        """Those of some of the rows."""
        return MeasureColumns(
            self.counted[chosen], self.out[chosen], self.back[chosen], self.error[chosen], self.unanswered[chosen],
            self.latency_ns[chosen], self.has_latency[chosen], self.may_wait[chosen],
        )  # fmt: skip

    def set(self, at: int, row: RowMeasures) -> None:
        """Set those of one row."""
        latency = row.latency_ns is not None, row.latency_ns or 0
        measures = (
            True, row.bytes_out, row.bytes_in, row.has_error, row.is_unanswered, latency[1], latency[0], row.may_wait,
        )  # fmt: skip
        for column, value in zip(self, measures, strict=True):
            column[at] = value


def add_by_key(counts: CountsByKey[GroupKey], keys: Sequence[GroupKey], numbers: Int64, rows: MeasureColumns) -> None:
    """Count rows under keys, by the number of each row's key; keys come in the order of their first rows."""
    for _, key, found in counts_by_key(keys, numbers, rows):
        counts.add(key, found)


def counts_by_key(
    keys: Sequence[GroupKey], numbers: Int64, rows: MeasureColumns
) -> Iterator[tuple[int, GroupKey, ExchangeCounts]]:
    """Yield, ascending, the place of each key's first row, the key, and the counts of its rows."""
    different, first, group = np.unique(numbers, return_index=True, return_inverse=True)
    found = counts_by_number(group, len(different), rows)
    for at in np.argsort(first).tolist():
        yield int(first[at]), keys[int(different[at])], found[at]


def counts_by_number(group: Int64, count: int, rows: MeasureColumns) -> list[ExchangeCounts]:
    """Return the counts of each group, of the numbers from 0 to `count`."""
    sums = [_sums(group, count, each) for each in (rows.counted, rows.out, rows.back, rows.error, rows.unanswered)]
    timed = rows.has_latency & rows.counted
    latencies = histograms_by_number(group, count, rows.latency_ns, timed & ~rows.may_wait)
    waits = histograms_by_number(group, count, rows.latency_ns, timed & rows.may_wait)
    return list(map(ExchangeCounts, *sums, latencies, waits))


def _sums(group: Int64, count: int, values: Int64 | Bool) -> list[int]:
    """Return the sum of each group; exact, as a step's rows have fewer than 2**53 bytes."""
    sums: list[int] = np.bincount(group, values, count).astype(np.int64).tolist()
    return sums
