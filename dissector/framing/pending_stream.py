"""What is not framed yet of one direction: its runs, in order.

Only positions are held, never bytes: 48 bytes a run. A frame of 100 MB costs a few megabytes until its end is there.
"""

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind
from dissector.core.store import Store

Piece = tuple[int, int]
"""Address (or `NOWHERE`) and size."""
_DATA, _TRUNCATED = int(RunKind.DATA), int(RunKind.TRUNCATED)
_TIDY: Final = 4096
"""Framed runs that are kept before they are dropped."""


class PendingRun(NamedTuple):
    """Bytes that one packet completed."""

    start: int
    size: int
    address: int
    seen: tuple[int, int]
    """Time and packet."""


class PendingStream:
    """The unframed runs of one direction. `at` is the stream offset that framing has reached."""

    __slots__ = ("_address", "_first", "_is_cut", "_packet", "_size", "_start", "_time", "at", "need")

    def __init__(self, at: int = 0) -> None:
        self._start = array("q")
        self._size = array("q")
        self._address = array("q")
        self._time = array("q")
        self._packet = array("q")
        self._is_cut = array("q")
        self._first = 0
        self.at = at
        self.need = 0
        """The stream offset at which the frame that begins at `at` ends, where known: no use in splitting before."""

    def __len__(self) -> int:
        """Runs held."""
        return len(self._start) - self._first

    def extend(self, runs: RunBatch, low: int, high: int) -> None:
        """Append rows `low` to before `high` of a batch, all of this direction."""
        rows = slice(low, high)
        if not self._start:
            self.at = max(self.at, int(runs.start[low]))
        address = np.where(runs.kind[rows] == _DATA, runs.address[rows], NOWHERE)
        for column, values in (
            (self._start, runs.start[rows]), (self._size, runs.size[rows]), (self._address, address),
            (self._time, runs.time_ns[rows]), (self._packet, runs.packet[rows]),
            (self._is_cut, runs.kind[rows] == _TRUNCATED),
        ):  # fmt: skip
            column.frombytes(values.astype(np.int64).tobytes())

    def held_regions(self) -> Int64:
        """Addresses and sizes of the runs held that the capture has, `(2, n)`."""
        both = np.array([self._address[self._first :], self._size[self._first :]], np.int64).reshape(2, -1)
        return both[:, both[0] != NOWHERE]

    @property
    def end(self) -> int:
        """The stream offset after the last byte known."""
        return self._start[-1] + self._size[-1] if self._start else self.at

    def _row(self, offset: int) -> int:
        """The row of the run with an offset; the last one for offsets behind it."""
        row = bisect_right(self._start, offset, lo=self._first) - 1
        return max(row, self._first)

    def pieces(self, size: int, after: int = 0) -> list[Piece]:
        """Locate the next `size` bytes, from `after` bytes behind `at` on; fewer where the stream ends."""
        return list(self._walk(size, after))

    def _walk(self, size: int, after: int) -> Iterator[Piece]:
        """Piece by piece: a caller that stops at a gap does not pay for what comes after it."""
        at = self.at + after
        row = self._row(at)
        while size > 0 and row < len(self._start):
            inside = at - self._start[row]
            take = min(size, self._size[row] - inside)
            if take > 0:
                address = self._address[row]
                yield address + inside if address != NOWHERE else NOWHERE, take
                at += take
                size -= take
            row += 1

    def peek(self, store: Store, size: int, after: int = 0) -> bytes | None:
        """Read the next bytes: `size`, or as many as come before a gap or the end; None right before a gap."""
        parts: list[memoryview] = []
        for address, length in self._walk(size, after):
            if address == NOWHERE:
                return b"".join(parts) if parts else None
            parts.append(store.read(address, length))
        return b"".join(parts)

    def run(self, after: int = 0) -> PendingRun:
        """The run `after` bytes behind `at`."""
        row = self._row(self.at + after)
        return PendingRun(self._start[row], self._size[row], self._address[row], (self._time[row], self._packet[row]))

    def intact(self, most: int) -> tuple[int, bool]:
        """The stream offset at which bytes end, at most `most`; and whether a gap ends them."""
        end = self.at
        for row in range(self._row(self.at), len(self._start)):
            if self._address[row] == NOWHERE:
                return end, True
            end = self._start[row] + self._size[row]
            if end >= most:
                return most, False
        return end, False

    def segments(self, low: int, high: int) -> tuple[Int64, Int64]:
        """Stream offsets and sizes of the segments that begin from `low` on and before `high`."""
        first = bisect_right(self._start, low - 1, lo=self._first)
        last = bisect_right(self._start, high - 1, lo=first)
        return np.array(self._start[first:last], np.int64), np.array(self._size[first:last], np.int64)

    def is_cut(self, size: int) -> bool:
        """Whether the snap length cut off some of the next `size` bytes."""
        last = bisect_right(self._start, self.at + size - 1, lo=self._first)
        return any(self._is_cut[self._row(self.at) : last])

    def gap(self) -> int:
        """Bytes missing right at `at`."""
        row, at = self._row(self.at), self.at
        while row < len(self._start) and self._address[row] == NOWHERE:
            at = self._start[row] + self._size[row]
            row += 1
        return at - self.at

    def advance(self, size: int) -> None:
        """Move `at` by `size` bytes, and drop runs that are framed."""
        self.at += size
        last = len(self._start)
        self._first = self._row(self.at) if self._start else 0
        if self._start and self.end <= self.at:
            self._first = last
        if self._first == last or self._first > max(_TIDY, last // 2):
            for column in (self._start, self._size, self._address, self._time, self._packet, self._is_cut):
                del column[: self._first]
            self._first = 0
