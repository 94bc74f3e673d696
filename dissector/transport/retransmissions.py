"""Retransmitted bytes, and bytes delayed by missing ones: what the network added to the latency of an exchange.

A row is a stretch of a stream that came again after it was seen, or that was delivered late, as a hole before it was
filled only then. A keep-alive, one byte before the next one, is neither. Which frames are concerned is computed when
all is read.

Invariant: how a capture is cut into batches makes no difference.
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.columns import Column, is_in, unique
from dissector.core.limits import Limits

_OFFSETS: Final = 1 << 41
"""Longer than any stream of a capture: two terabytes."""
SEEN: Final = 0
"""In place of the time since which a stretch waited: it was seen before, and came again."""


class Retransmissions:
    """Columns of stretches, bounded by `limits.retransmissions`; those past it are counted in `left_out`."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.retransmissions
        self._columns = tuple(Column(np.int64) for _ in range(5))
        """Direction, stream offsets of beginning and end, time of arrival, and time since which it waited or `SEEN`."""
        self._repeated = Column(np.int64)
        """Bytes that came again, by direction."""
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, stretches: Int64) -> None:
        """Add stretches, `(5, n)`: a row for each column."""
        again = stretches[:, stretches[4] == SEEN]
        if again.shape[1]:
            self._repeated.grow(int(again[0].max()) + 1)
            np.add.at(self._repeated.values, again[0], again[2] - again[1])
        room = max(0, self._most - len(self))
        self.left_out += max(0, stretches.shape[1] - room)
        for column, values in zip(self._columns, stretches, strict=True):
            column.extend(values[:room])

    def repeated_bytes(self, direction: int) -> int:
        """The bytes of a direction that came again."""
        return int(self._repeated.values[direction]) if direction < len(self._repeated) else 0

    def delays(self, direction: Int64, start: Int64, size: Int64, time_ns: Int64) -> tuple[Int64, Int64]:
        """Return delays of frames in nanoseconds, `(n,)` each, 0 where none: from a frame's beginning to its last
        retransmission, and the longest time that a byte of it waited for missing ones."""
        again, waited = np.zeros(len(direction), np.int64), np.zeros(len(direction), np.int64)
        concerned = np.flatnonzero(is_in(direction, self._columns[0].values))  # few: most directions lose nothing
        direction, start, size, time_ns = (each[concerned] for each in (direction, start, size, time_ns))
        directions = unique(direction)
        some = np.flatnonzero(is_in(self._columns[0].values, directions))
        row_direction, begins, ends, came, since = (column.values[some] for column in self._columns)
        base = np.searchsorted(directions, direction) * _OFFSETS
        order = np.argsort(base + start, kind="stable")
        first, last = (base + start)[order], (base + start + size)[order]
        base = np.searchsorted(directions, row_direction) * _OFFSETS
        lows = np.searchsorted(last, base + begins, side="right")
        highs = np.searchsorted(first, base + ends, side="left")
        for at in np.flatnonzero(lows < highs).tolist():
            these = order[lows[at] : highs[at]]
            frames = concerned[these]
            if since[at] == SEEN:
                again[frames] = np.maximum(again[frames], came[at] - time_ns[these])
            else:
                waited[frames] = np.maximum(waited[frames], came[at] - since[at])
        return again, waited
