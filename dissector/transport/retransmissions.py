"""Bytes that TCP sent again, and bytes that had to wait for others: what the network added to an exchange.

A row is a stretch of a stream that came again after it was seen, or that came out late, as a hole before it was filled
only then. A keep-alive, one byte before what comes next, is neither. Which bytes of which frames these were is asked
when all is read.

Invariant: how a capture is cut into batches makes no difference.
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column
from dissector.core.limits import Limits

_OFFSETS: Final = 1 << 41
"""No stream of a capture is longer: two terabytes."""
SEEN: Final = 0
"""In place of the time since which a stretch waits: it was there before, and came again."""


class Retransmissions:
    """Columns of stretches, bounded by `limits.resent`; what comes after those is counted in `left_out`."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.resent
        self._columns = tuple(Column(np.int64) for _ in range(5))
        """Direction, stream offsets of beginning and end, when it came, and since when it waited or `SEEN`."""
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, stretches: Int64) -> None:
        """Enter stretches, `(5, n)`: a row for each column."""
        room = max(0, self._most - len(self))
        self.left_out += max(0, stretches.shape[1] - room)
        for column, values in zip(self._columns, stretches, strict=True):
            column.extend(values[:room])

    def delays(self, direction: Int64, start: Int64, size: Int64, time_ns: Int64) -> tuple[Int64, Int64]:
        """Of frames, `(n,)` each: how long after it began the last byte of each was sent again, and how long a byte of
        it waited for others, in nanoseconds; 0 where none."""
        again, waited = np.zeros(len(direction), np.int64), np.zeros(len(direction), np.int64)
        directions = np.unique(direction)
        some = np.flatnonzero(np.isin(self._columns[0].values, directions))
        whose, begins, ends, came, since = (column.values[some] for column in self._columns)
        base = np.searchsorted(directions, direction) * _OFFSETS
        order = np.argsort(base + start, kind="stable")
        first, last = (base + start)[order], (base + start + size)[order]
        base = np.searchsorted(directions, whose) * _OFFSETS
        lows = np.searchsorted(last, base + begins, side="right")
        highs = np.searchsorted(first, base + ends, side="left")
        for at in np.flatnonzero(lows < highs).tolist():
            frames = order[lows[at] : highs[at]]
            if since[at] == SEEN:
                again[frames] = np.maximum(again[frames], came[at] - time_ns[frames])
            else:
                waited[frames] = np.maximum(waited[frames], came[at] - since[at])
        return again, waited
