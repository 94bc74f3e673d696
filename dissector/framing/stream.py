"""What is not framed yet of one direction: its runs, in order, and the walk over them.

Only positions are held, never bytes: a frame of 100 MB costs a few rows until its end is there.
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from dissector.events import NOWHERE, RunBatch, RunKind
from dissector.store import Store

Piece = tuple[int, int]
"""Address (or `NOWHERE`) and size."""


class Run(NamedTuple):
    """Bytes that one packet brought."""

    start: int
    size: int
    address: int
    seen: tuple[int, int]
    """Time and packet."""


class Stream:
    """The unframed runs of one direction. `at` is the stream offset that framing has reached."""

    __slots__ = ("_address", "_first", "_packet", "_size", "_start", "_time", "at", "need")

    def __init__(self, at: int = 0) -> None:
        self._start: list[int] = []
        self._size: list[int] = []
        self._address: list[int] = []
        self._time: list[int] = []
        self._packet: list[int] = []
        self._first = 0
        self.at = at
        self.need = 0
        """Nothing can be done before the stream reaches this offset."""

    def extend(self, runs: RunBatch, low: int, high: int) -> None:
        """Take in rows `low` to `high` of a batch, all of this direction."""
        rows = slice(low, high)
        if not self._start:
            self.at = max(self.at, int(runs.start[low]))
        self._start += runs.start[rows].tolist()
        self._size += runs.size[rows].tolist()
        self._address += [
            NOWHERE if kind != RunKind.DATA else address
            for kind, address in zip(runs.kind[rows].tolist(), runs.address[rows].tolist(), strict=True)
        ]
        self._time += runs.time_ns[rows].tolist()
        self._packet += runs.packet[rows].tolist()

    @property
    def end(self) -> int:
        """The stream offset after the last byte known."""
        return self._start[-1] + self._size[-1] if self._start else self.at

    def _row(self, offset: int) -> int:
        row = self._first
        last = len(self._start) - 1
        while row < last and self._start[row] + self._size[row] <= offset:
            row += 1
        return row

    def pieces(self, size: int, after: int = 0) -> list[Piece]:
        """Where the next `size` bytes are, from `after` bytes behind `at` on; fewer where the stream ends."""
        return list(self._walk(size, after))

    def _walk(self, size: int, after: int) -> Iterator[Piece]:
        """Piece by piece: who looks as far as the next gap does not pay for what comes after it."""
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
        """The next bytes, `size` or as many as come before a gap or the end; None right before a gap."""
        parts: list[memoryview] = []
        for address, length in self._walk(size, after):
            if address == NOWHERE:
                return b"".join(parts) if parts else None
            parts.append(store.read(address, length))
        return b"".join(parts)

    def run(self) -> Run:
        """The run that `at` stands in."""
        row = self._row(self.at)
        return Run(self._start[row], self._size[row], self._address[row], (self._time[row], self._packet[row]))

    def segments(self, size: int) -> list[int]:
        """Where segments begin in the next `size` bytes, counted from `at`."""
        starts = map(self._start.__getitem__, range(self._row(self.at), len(self._start)))
        return [
            start - self.at for start in takewhile(lambda start: start - self.at < size, starts) if start >= self.at
        ]

    def gap(self) -> int:
        """Bytes missing right at `at`."""
        row, at = self._row(self.at), self.at
        while row < len(self._start) and self._address[row] == NOWHERE:
            at = self._start[row] + self._size[row]
            row += 1
        return at - self.at

    def advance(self, size: int) -> None:
        """Leave `size` bytes behind."""
        self.at += size
        last = len(self._start)
        while self._first < last and self._start[self._first] + self._size[self._first] <= self.at:
            self._first += 1
        if self._first == last or self._first > 4096:
            for column in (self._start, self._size, self._address, self._time, self._packet):
                del column[: self._first]
            self._first = 0
