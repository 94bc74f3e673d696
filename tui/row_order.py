"""The order of a capture's rows by what the index has of them. Without a screen; no frame is decoded for it.

Invariant: what has no value stands last, whichever way the others go.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session import Capture
from dissector.core.arrays import Bool, Int64
from dissector.exchange.row_fields import Value

TOGETHER: Final = 1 << 13
"""Rows that are looked up at once: the screen waits no longer for its turn than that takes."""


class SortOrder(NamedTuple):
    """A column, by its name in the list, and whether the largest is first."""

    column: str
    descending: bool = False

    @property
    def arrow(self) -> str:
        """The sign in the column's head."""
        return "▼" if self.descending else "▲"


def sorted_rows(capture: Capture, fact: str, count: int, stopped: Callable[[], bool]) -> tuple[Int64, int] | None:
    """The first `count` rows by a fact of the index, ascending, and how many of them have it: the others are behind.
    None where it was stopped."""
    keys, words = np.zeros(count, np.int64), dict[str, int]()
    missing = np.zeros(count, np.bool_)
    for start in range(0, count, TOGETHER):
        if stopped():
            return None
        stop = min(count, start + TOGETHER)
        [values] = capture.columns([fact], range(start, stop))
        keys[start:stop], missing[start:stop] = _keys(values, words)
    if words:
        ranks = np.zeros(len(words), np.int64)
        ranks[[words[word] for word in sorted(words)]] = np.arange(len(words))
        keys = ranks[keys]
    there, absent = np.flatnonzero(~missing), np.flatnonzero(missing)
    return np.concatenate([there[np.argsort(keys[there], kind="stable")], absent]), len(there)


def reversed_order(order: Int64, present: int) -> Int64:
    """The same the other way round; what has no value stays behind."""
    return np.concatenate([order[:present][::-1], order[present:]])


def _keys(values: Sequence[Value], words: dict[str, int]) -> tuple[Int64, Bool]:
    """A number for each value; of a text the place where it was first seen."""
    kinds = set(map(type, values))
    if kinds <= {int}:
        return np.array(values, np.int64), np.zeros(len(values), np.bool_)
    missing = np.array([value is None for value in values], np.bool_)
    if str in kinds:
        return np.array([words.setdefault(str(v), len(words)) if v is not None else 0 for v in values]), missing
    return np.array([0 if value is None else value for value in values], np.int64), missing
