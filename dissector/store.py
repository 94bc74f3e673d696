"""Where captured bytes live: regions (files mapped to memory, blocks made in memory) under one address space.

An address is a plain int64, so columns can hold it. Payload is located, never copied, until somebody looks at it.

Invariants:
  * an address, once given out, means the same bytes for the life of the store; a region may grow, within its room;
  * regions do not overlap; every region starts on a new multiple of `ALIGN`, so that small regions stay apart;
  * what is resident of mapped files is let go of now and then: memory is flat, however much was read.
"""

import mmap
from bisect import bisect_right
from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
ALIGN: Final = 1 << 12
ROOM: Final = 1 << 42
"""Addresses kept for a region that grows: more than any disk gives it."""
FAULT: Final = 1 << 16
"""Bytes that one look at a mapped file makes resident: the kernel brings the pages around it along."""
RESIDENT: Final = 1 << 26
"""Bytes looked at before mapped files are let go of."""


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

    def gather(self, addresses: npt.NDArray[np.int64], width: int) -> Bytes:
        """The `width` bytes at each address, `(n, width)`; past a region's end its last byte is repeated."""
        result = np.empty((len(addresses), width), np.uint8)
        regions = np.searchsorted(np.asarray(self._bases, np.int64), addresses, side="right") - 1
        columns = np.arange(width)
        for at in np.unique(regions):
            rows = regions == at
            data = np.frombuffer(self._regions[at], np.uint8)
            result[rows] = data.take((addresses[rows] - self._bases[at])[:, None] + columns, mode="clip")
        return result

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
