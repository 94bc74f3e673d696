"""A temporary file that only grows, one region of the store: for bytes that have no file to be mapped.

Invariants:
  * an address in it stays valid: if the file outgrows its mapping it is mapped again, under the same addresses;
  * it is mapped ahead, sparsely, so that it is mapped a few times and not at every append;
  * it holds at most `most` bytes of disk, and leaves a gigabyte of it free, or a twentieth of a small one: more is
    refused with `SpoolFullError`.
"""

import mmap
import os
import tempfile
from typing import Final

import numpy as np

from dissector.core.arrays import UInt8
from dissector.core.store import Store
from dissector.core.text import byte_size, os_reason

_LEAST_AHEAD: Final = 1 << 20
_MOST_AHEAD: Final = 1 << 28
_LEFT_FREE: Final = 1 << 30
_PART_LEFT_FREE: Final = 20
_LOOK_EVERY: Final = 1 << 24
"""Bytes between two looks at the disk."""


class SpoolFullError(Exception):
    """The limit is reached or the disk is full. Its text is the reason."""


class Spool:
    """A growing temporary file. Its bytes are `data`, and from address `base` on in the store."""

    def __init__(self, store: Store, most: int) -> None:
        self._store = store
        self._most = most
        self.base = store.reserve()
        self.size = 0
        self._look_at = 0
        """The size from which on to look at the disk again."""
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # `close` closes it
        self._map: mmap.mmap | None = None

    def append(self, data: bytes | memoryview) -> None:
        """Append bytes. Raises `SpoolFullError`; `data` is unchanged then."""
        if self.size + len(data) > self._most:
            raise SpoolFullError(f"more than {self._most:,} bytes: the limit of temporary files")
        if self.size + len(data) > self._look_at:
            self._check_disk(len(data))
        try:
            rest = memoryview(data)
            while len(rest):
                rest = rest[os.pwrite(self._file.fileno(), rest, self.size + len(data) - len(rest)) :]
            self.size += len(data)
            self._store.fill(self.base, memoryview(self._mapped())[: self.size])
        except OSError as error:
            raise SpoolFullError(f"temporary files: {os_reason(error)}") from None

    def _check_disk(self, size: int) -> None:
        disk = os.fstatvfs(self._file.fileno())
        left = min(_LEFT_FREE, disk.f_blocks * disk.f_frsize // _PART_LEFT_FREE)
        if disk.f_bavail * disk.f_frsize < left + size:
            raise SpoolFullError(f"temporary files: less than {byte_size(left)} would be left on the disk")
        self._look_at = self.size + size + _LOOK_EVERY

    @property
    def data(self) -> UInt8:
        """All bytes so far."""
        return np.frombuffer(self._map, np.uint8, count=self.size) if self._map and self.size else np.zeros(0, np.uint8)

    def map_all(self) -> mmap.mmap | None:
        """Return the complete bytes as a map of exactly their size; None if there are none."""
        os.ftruncate(self._file.fileno(), self.size)
        self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else None
        return self._map

    def _mapped(self) -> mmap.mmap:
        if self._map is None or self.size > len(self._map):
            room = self.size + min(max(self.size, _LEAST_AHEAD), _MOST_AHEAD)
            os.ftruncate(self._file.fileno(), room)
            self._map = mmap.mmap(self._file.fileno(), room, access=mmap.ACCESS_READ)
        return self._map

    def close(self) -> None:
        """Close the file; its mapping goes when the last batch that points into it does."""
        self._file.close()
