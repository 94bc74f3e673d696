"""Whether a limit of their size ends batches, rather than the time for which a producer lets records wait.

A batch that is full is sent when the next record comes, which has no room in it. Java sends what it has for other
partitions of a broker with it, so that of the batches of a request one need be full.
"""

from array import array
from typing import Final

import numpy as np

from dissector.analysis.diff.batching import MIN_BATCHES, ProducedBatches
from dissector.analysis.diff.kept_numbers import as_column, median_of

LEAST_LIMIT: Final = 4_096
"""Bytes. No client has a smaller largest size of batches by default."""
FULL, MANY_FULL, MOSTLY_FULL = 0.8, 0.25, 0.6
"""A batch of this share of the largest one is full; where this share of batches is full, a limit made them so; where
most are, so many records came that their lingers were cut short."""
REGULAR, NEAR, NEAR_MS = 0.75, 0.25, 5
"""Of lingers that are not: this share is near the median, within a share of it or some milliseconds."""
AT_LIMIT, OVERTAKEN = 0.75, 0.6
"""Where a limit ends batches, this share of those that were sent when the next record came have no room for it, and
there are so many of them for each request."""
SLOW_MS, MANY_RECORDS = 4, 20
"""Records that come faster are there whenever a batch is sent; so many of them never happen to fill batches alike."""
BY_CHANCE: Final = 7
"""If so many larger batches are expected, none is there once in a thousand runs."""


def are_cut_short(batches: ProducedBatches) -> bool:
    """Return whether a producer sends most batches because they are full, before it has lingered as long as it would:
    a limit ends them, or they have several records, and wait differently long."""
    if not batches.lingers_ms or not batches.records or median_of(batches.records) <= 1:
        return False
    if _limit(batches):
        return True
    is_full = are_often_full(batches.sizes, MOSTLY_FULL) or _have_equal_counts(batches)
    return is_full and regularity(batches.lingers_ms) < REGULAR


def regularity(lingers_ms: "array[int]") -> float:
    """Return the share of lingers that are near their median."""
    median_ms = median_of(lingers_ms)
    return float((np.abs(as_column(lingers_ms) - median_ms) <= max(NEAR_MS, NEAR * median_ms)).mean())


def is_limited_by_number(batches: ProducedBatches) -> bool:
    """Return whether a producer sends most batches because they have as many records as it allows itself, where their
    sizes say nothing."""
    return _have_equal_counts(batches) and are_cut_short(batches) and not are_often_full(batches.sizes, MOSTLY_FULL)


def _have_equal_counts(batches: ProducedBatches) -> bool:
    records = as_column(batches.records)
    return bool((records == records.max()).mean() >= AT_LIMIT)


def are_often_full(sizes: "array[int]", share: float = MANY_FULL) -> bool:
    """Return whether many batches are about as large as any."""
    column = as_column(sizes)
    largest = int(column.max())
    return largest >= LEAST_LIMIT and int((column >= FULL * largest).sum()) >= share * len(column)


def have_other_limits(a: ProducedBatches, b: ProducedBatches) -> bool:
    """Return whether a limit ends the batches of one side, and the other one has larger ones. The largest of the first
    side leaves less room than half a record needs."""
    for limited, other in ((a, b), (b, a)):
        limit = _limit(limited)
        is_larger = as_column(other.sizes) > limit + _record_bytes(limited) / 2
        if limit and is_larger.mean() * len(limited.overtaken) >= BY_CHANCE:
            return True
    return False


def _limit(batches: ProducedBatches) -> int:
    """Return the bytes of the largest batch if a limit ends batches; 0 if it does not."""
    overtaken = as_column(batches.overtaken)
    records = median_of(batches.records) if batches.records else 0
    if len(overtaken) < max(MIN_BATCHES, OVERTAKEN * len(batches.per_request)) or records <= 1:
        return 0
    if records < MANY_RECORDS and median_of(batches.waits_ms) < SLOW_MS * records:
        return 0
    largest = max(batches.sizes)
    is_full = overtaken > largest - _record_bytes(batches)
    return largest if is_full.mean() >= AT_LIMIT else 0


def _record_bytes(batches: ProducedBatches) -> float:
    return median_of(batches.sizes) / median_of(batches.records)
