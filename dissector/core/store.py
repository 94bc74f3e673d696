"""Where captured bytes live: regions (files mapped to memory, blocks made in memory) under one address space.

An address is a plain int64, so columns can hold it. Payload is located, never copied, until somebody looks at it.

Invariants:
  * an address, once given out, means the same bytes for the life of the store; a region may grow, within its room;
  * regions do not overlap; every region starts on a new multiple of `ALIGN`, so that small regions stay apart;
  * what is resident of mapped files is let go of now and then: memory is flat, however much was read.
"""

import mmap
from bisect import bisect_right
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64, UInt8

ALIGN: Final = 1 << 12
ROOM: Final = 1 << 42
"""Addresses kept for a region that grows: more than any disk gives it."""
FAULT: Final = 1 << 16
"""Bytes that one look at a mapped file makes resident: the kernel brings the pages around it along."""
RESIDENT: Final = 1 << 26
"""Bytes looked at before mapped files are let go of."""


class Excerpt(NamedTuple):
    """Some of a store's bytes."""

    end: int
    """Behind all addresses of the store."""
    pieces: list[tuple[int, bytes]]
    """Address and bytes, ascending and apart from each other."""


class Store:
    """An append-only address space over buffers."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._regions: list[memoryview] = []
        self._end = 0
        self._looked_at = 0

    def add(self, region: memoryview | bytes) -> int:
        """Take in a buffer and return the address of its first byte. The buffer must not change or shrink."""
        base = self.reserve(len(region))
        self.fill(base, memoryview(region))
        return base

    def reserve(self, room: int = ROOM) -> int:
        """The address of a region that is empty still, and may grow to `room` bytes."""
        base = self._end
        self._bases.append(base)
        self._regions.append(memoryview(b""))
        self._end = (base + room + ALIGN) // ALIGN * ALIGN
        return base

    def fill(self, base: int, region: memoryview) -> None:
        """The region at `base` has grown: the same bytes again, and more behind them, maybe mapped elsewhere."""
        self._regions[bisect_right(self._bases, base) - 1] = region.cast("B") if len(region) else memoryview(b"")

    def read(self, address: int, size: int) -> memoryview:
        """`size` bytes at `address`, without a copy. They lie in one region."""
        at = bisect_right(self._bases, address) - 1
        start = address - self._bases[at]
        view = self._regions[at][start : start + size]
        if len(view) != size:
            raise IndexError(f"{size} bytes at address {address} run past their region")
        self._looked_at += size + FAULT
        if self._looked_at > RESIDENT:
            self.let_go()
        return view

    def gather(self, addresses: Int64, width: int) -> UInt8:
        """The `width` bytes at each address, `(n, width)`; past a region's end its last byte is repeated."""
        result = np.empty((len(addresses), width), np.uint8)
        regions = np.searchsorted(np.asarray(self._bases, np.int64), addresses, side="right") - 1
        for at in np.flatnonzero(np.bincount(regions)).tolist():
            rows = regions == at
            data = np.frombuffer(self._regions[at], np.uint8)
            result[rows] = _windows(data, addresses[rows] - self._bases[at], width)
        return result

    def excerpt(self, address: Int64, size: Int64) -> "Excerpt":
        """The bytes at these addresses, `(n,)`, copied: each once, those that stand together in one piece."""
        order = np.argsort(address, kind="stable")
        starts, ends = address[order], np.maximum.accumulate((address + size)[order])
        begins = np.flatnonzero(np.concatenate([[True], starts[1:] > ends[:-1]])[: len(starts)])
        pieces = zip(
            starts[begins].tolist(), ends[np.append(begins[1:], len(ends))[: len(begins)] - 1].tolist(), strict=True
        )
        return Excerpt(self._used(), [(start, bytes(self.read(start, end - start))) for start, end in pieces])

    @classmethod
    def of(cls, excerpt: "Excerpt") -> "Store":
        """A store that has an excerpt's bytes at their addresses, and no others; what is added comes behind all that
        the other one had."""
        store = cls()
        for address, data in excerpt.pieces:
            store._bases.append(address)
            store._regions.append(memoryview(data))
        store._end = excerpt.end
        return store

    def _used(self) -> int:
        """The first address, a multiple of `ALIGN`, behind all that is there: room that nothing grew into is free."""
        last = self._bases[-1] + len(self._regions[-1]) if self._bases else self._end
        return (last + 2 * ALIGN) // ALIGN * ALIGN

    def let_go(self) -> None:
        """Drop what is resident of mapped files; it comes back from the page cache when somebody looks again."""
        self._looked_at = 0
        for view in self._regions:
            if isinstance(view.obj, mmap.mmap):
                view.obj.madvise(mmap.MADV_DONTNEED)

    def release(self) -> None:
        """Let go of every region, so that mapped files can be closed."""
        for view in self._regions:
            view.release()
        self._regions.clear()
        self._bases.clear()


def _windows(data: UInt8, starts: Int64, width: int) -> UInt8:
    """The `width` bytes from each start on; each is copied as a whole, but near the end, where there are too few."""
    last = len(data) - width
    if last < 0 or (starts > last).any():
        return data.take(starts[:, None] + np.arange(width), mode="clip")
    whole = np.ndarray((last + 1,), f"V{width}", data, strides=(1,))[starts]
    return whole.view(np.uint8).reshape(-1, width)
