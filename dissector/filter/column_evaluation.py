"""Evaluate a predicate on a column of the index: 0 for no, 2 for yes, 1 (open) for a row that must be decoded.

With these numbers `and` is the minimum, `or` the maximum, and `not` is 2 minus the result (Kleene's three-valued
logic).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.grouping import by_distinct
from dissector.exchange.index_rows import RowValues, RowValueSets
from dissector.filter.predicates import Intervals, Predicate

NO, OPEN, YES = 0, 1, 2
_KEYS: Final = 1 << 15
"""API keys are INT16 and not negative."""


def evaluate_column(column: RowValues | RowValueSets, predicate: Predicate | None) -> UInt8:
    """Evaluate a predicate, `(n,)`; without a predicate, whether there is a value."""
    if isinstance(column, RowValueSets):
        return _evaluate_sets(column, _is_set if predicate is None else predicate)
    if predicate is None:
        hits = column.present
        if column.texts is not None:
            hits = hits & _per_distinct(column, lambda value: value is not None)
    elif column.texts is None and isinstance(predicate, Intervals):
        hits = column.present & predicate.of_column(column.values)
    else:
        hits = column.present & _per_distinct(column, predicate)
    return _results(hits, column.unclear)


def _per_distinct(column: RowValues, predicate: Predicate) -> Bool:
    """Return the predicate of every row, evaluated once for each distinct value."""
    convert = column.texts or int
    return by_distinct(column.values, lambda value: predicate(convert(value)), np.bool_)


def _is_set(value: object) -> bool:
    """An error code of 0 means that there is no error."""
    return value != 0


def _evaluate_sets(column: RowValueSets, predicate: Predicate) -> UInt8:
    hits = np.zeros(len(column.unclear), np.bool_)
    for numbers, sets in column.sources:
        distinct, inverse = np.unique(numbers, return_inverse=True)
        hits |= np.array([any(map(predicate, sets[number])) for number in distinct.tolist()], np.bool_)[inverse]
    return _results(hits, column.unclear)


def _results(hits: Bool, unclear: Bool | None) -> UInt8:
    results = hits.astype(np.uint8) * np.uint8(YES)
    if unclear is not None:
        results[unclear] = OPEN
    return results


def has_any(keys: Int64, api_keys: Sequence[int]) -> Bool:
    """Return which keys are those of some APIs, `(n,)`."""
    known = np.zeros(_KEYS, np.bool_)
    known[[key for key in api_keys if 0 <= key < _KEYS]] = True
    found: Bool = known[np.clip(keys, -1, _KEYS - 1)] & (keys >= 0) & (keys < _KEYS)
    return found
