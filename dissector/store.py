"""Where captured bytes live: regions (files mapped to memory, blocks made in memory) under one address space.

An address is a plain int64, so columns can hold it. Payload is located, never copied, until somebody looks at it.

Invariants:
  * an address, once given out, means the same bytes for the life of the store;
  * regions do not overlap; every region starts on a new multiple of `ALIGN`, so that small regions stay apart.
"""

from bisect import bisect_right
from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
ALIGN: Final = 1 << 12


class Store:
    """An append-only address space over buffers."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._regions: list[memoryview] = []
        self._end = 0

    def add(self, region: memoryview | bytes) -> int:
        """Take in a buffer and return the address of its first byte. The buffer must not change or shrink."""
        base = self._end
        view = memoryview(region).cast("B") if len(region) else memoryview(b"")
        self._bases.append(base)
        self._regions.append(view)
        self._end = (base + len(view) + ALIGN) // ALIGN * ALIGN
        return base

    def read(self, address: int, size: int) -> memoryview:
        """`size` bytes at `address`, without a copy. They lie in one region."""
        at = bisect_right(self._bases, address) - 1
        start = address - self._bases[at]
        view = self._regions[at][start : start + size]
        if len(view) != size:
            raise IndexError(f"{size} bytes at address {address} run past their region")
        return view

    def gather(self, addresses: npt.NDArray[np.int64], width: int) -> Bytes:
        """The `width` bytes at each address, `(n, width)`; past a region's end its last byte is repeated."""
        result = np.empty((len(addresses), width), np.uint8)
        regions = np.searchsorted(np.asarray(self._bases, np.int64), addresses, side="right") - 1
        for at in np.flatnonzero(np.bincount(regions)).tolist():
            rows = regions == at
            data = np.frombuffer(self._regions[at], np.uint8)
            result[rows] = _windows(data, addresses[rows] - self._bases[at], width)
        return result

    def release(self) -> None:
        """Let go of every region, so that mapped files can be closed."""
        for view in self._regions:
            view.release()
        self._regions.clear()
        self._bases.clear()


def _windows(data: Bytes, starts: npt.NDArray[np.int64], width: int) -> Bytes:
    """The `width` bytes from each start on; each is copied as a whole, but near the end, where there are too few."""
    last = len(data) - width
    if last < 0 or (starts > last).any():
        return data.take(starts[:, None] + np.arange(width), mode="clip")
    whole = np.ndarray((last + 1,), f"V{width}", data, strides=(1,))[starts]
    return whole.view(np.uint8).reshape(-1, width)
