"""Large buffers that are used again and again: the first touch of each page of fresh memory costs more than a copy.

A buffer is free once nothing refers to it besides this module, neither an array nor a view of it.
"""

import sys
from threading import Lock
from typing import Final

import numpy as np

from dissector.core.arrays import UInt8

LEAST: Final = 1 << 17
"""Bytes below which the allocator has memory that was touched."""
MOST: Final = 64 << 20
"""Bytes above which a buffer is not kept."""
MOST_BUFFERS: Final = 4


def _references(buffers: list[UInt8]) -> list[int]:
    return [sys.getrefcount(buffer) for buffer in buffers]


_UNSHARED: Final = _references([np.empty(0, np.uint8)])[0]
"""References to a buffer that only a list has: how many more a loop and a call count depends on Python's version."""


class ReusedMemory:
    """Some buffers. Threads may share them."""

    def __init__(self) -> None:
        self._buffers: list[UInt8] = []
        self._lock = Lock()

    def take(self, size: int) -> UInt8:
        """Return memory of that size, with any content, which is the caller's as long as it refers to it."""
        if not LEAST <= size <= MOST:
            return np.empty(size, np.uint8)
        with self._lock:
            counts = _references(self._buffers)
            free = [buffer for buffer, count in zip(self._buffers, counts, strict=True) if count == _UNSHARED]
            for buffer in free:
                if len(buffer) >= size:
                    return buffer[:size]
            new = np.empty(min(size + size // 4, MOST), np.uint8)
            if free:
                self._buffers = [buffer for buffer in self._buffers if buffer is not free[0]]
            if len(self._buffers) < MOST_BUFFERS:
                self._buffers.append(new)
            return new[:size]


MEMORY: Final = ReusedMemory()
