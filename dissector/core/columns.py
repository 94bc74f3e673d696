"""A numpy column that grows: amortised appending, and room made for rows that are not written yet.

Invariants:
  * a large column lives in an unnamed temporary file, mapped: what is resident of it is let go of now and then, so that
    memory stays flat however many rows there are. Where no file can be had it stays in memory;
  * it grows without a copy: the file is mapped anew, and the old map goes when the last view of it does;
  * pickled, it is what `keep` left of it: rows keep their numbers, and those that are gone cost nothing.
"""

import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Int64, UInt64

_FIRST_ROOM: Final = 1024
_FILED: Final = 1 << 21
"""Bytes from which on a column lives in a file; so many new ones, too, before it is let go of."""
_STEP: Final = 1 << 22
"""Bytes that a file grows by at least."""
_LOOKS: Final = 4096
"""Looks at a column before it is let go of: each may have made some pages resident."""
_FACTORS: Final = np.frombuffer(os.urandom(64 * 8), np.uint64) | np.uint64(1)
"""Drawn anew each time, so that nobody can make rows that share their sums."""


Value = TypeVar("Value")


class Column:
    """One growing column. `values` is a view of what it holds: take it anew after each change of length."""

    __slots__ = ("__weakref__", "_array", "_default", "_file", "_kept", "_looks", "_map", "_new", "_size")

    def __init__(self, dtype: npt.DTypeLike, default: int = 0) -> None:
        self._array: npt.NDArray[np.generic] = np.empty(_FIRST_ROOM, dtype)
        self._default = default or np.zeros(1, dtype)[0]
        self._size = 0
        self._kept: Int64 | None = None
        """Rows that go along when it is pickled; None for all."""
        self._file: int | None = None
        self._map: mmap.mmap | None = None
        self._looks = 0
        self._new = 0
        """Bytes of rows made since the last time it was let go of."""

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> Int64:
        """What it holds, `(n,)`, in the column's own dtype."""
        self._looks += 1
        if self._looks > _LOOKS:
            self.let_go()
        return self._array[: self._size]  # type: ignore[return-value]  # integer columns behave alike

    def grow(self, size: int) -> None:
        """Make it at least `size` rows long; new rows hold the default."""
        if size > self._size:
            first = self._size
            self._make_room(size)
            self._array[first:size] = self._default

    def extend(self, values: npt.ArrayLike) -> None:
        """Append rows."""
        rows = np.asarray(values, self._array.dtype)
        at = self._size
        self._make_room(at + len(rows))
        self._array[at : at + len(rows)] = rows

    def keep(self, rows: Int64) -> None:
        """These rows alone, ascending, go along when it is pickled: where it is unpickled the others read as zeros."""
        self._kept = rows

    def __reduce__(self) -> tuple[Any, ...]:
        values = self._array[: self._size]
        some = values if self._kept is None else values[self._kept]
        return _unpickled, (self._array.dtype, self._default, self._size, self._kept, some)

    def let_go(self) -> None:
        """Drop what is resident of a large column; it comes back from the page cache when somebody looks."""
        self._looks = self._new = 0
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _make_room(self, size: int) -> None:
        """Be `size` rows long, the new ones not written yet."""
        if size > len(self._array):
            room = max(size, 2 * len(self._array))
            if room * self._array.itemsize < _FILED or not self._map_anew(size):
                array = np.empty(room, self._array.dtype)
                array[: self._size] = self._array[: self._size]
                self._array, self._map = array, None
        self._new += (size - self._size) * self._array.itemsize
        self._size = size
        if self._new > _FILED:
            self.let_go()

    def _be_zeros(self, size: int) -> None:
        """Be `size` rows long, of zeros that take no room before somebody writes there."""
        if size * self._array.itemsize < _FILED or not self._map_anew(size, whole=False):
            self._array, self._map = np.zeros(max(size, _FIRST_ROOM), self._array.dtype), None
        self._size = size

    def _map_anew(self, size: int, *, whole: bool = True) -> bool:
        """Be a file with room for `size` rows; False where the disk has none, or would have none for the `whole`."""
        width = self._array.itemsize
        have = len(self._array) * width if self._map is not None else 0
        room = -(-size * width // _STEP) * _STEP
        try:
            if self._file is None:
                self._file, name = tempfile.mkstemp()
                weakref.finalize(self, os.close, self._file)
                Path(name).unlink()
            if whole:
                _lengthen(self._file, have, room)
            else:
                os.ftruncate(self._file, room)
            fresh = mmap.mmap(self._file, room)
        except OSError:
            return False
        array = np.frombuffer(fresh, self._array.dtype, room // width)
        if self._map is None:
            array[: self._size] = self._array[: self._size]
        self._array, self._map = array, fresh
        return True


def _unpickled(
    dtype: npt.DTypeLike, default: int, size: int, kept: Int64 | None, values: npt.NDArray[np.generic]
) -> Column:
    column = Column(dtype, default)
    column._be_zeros(size)
    column._array[slice(size) if kept is None else kept] = values
    return column


def _lengthen(file: int, have: int, room: int) -> None:
    """Have the disk keep the room now: a page that it has no room for later ends the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, have, room - have)
    else:
        os.ftruncate(file, room)


def unique(values: Int64) -> Int64:
    """The values of a column, each once, ascending.

    `numpy.unique`, asked for nothing else, imports masked arrays first: a tenth of what a command takes to start.
    """
    ordered = np.sort(values)
    changes = np.ones(len(ordered), np.bool_)
    changes[1:] = ordered[1:] != ordered[:-1]
    return ordered[changes]


def distinct(words: UInt64) -> tuple[Int64, Int64]:
    """Of equal rows, up to 64 words wide, the first one each, in order; and for every row which of these it equals.

    Sorting rows is slow: sums of them are sorted, and whether rows of the same sum are equal is looked at.
    """
    changes = np.flatnonzero(np.concatenate([[True], (words[1:] != words[:-1]).any(axis=1)]))
    rows = words[changes]
    _, index, inverse = np.unique(
        (rows * _FACTORS[: rows.shape[1]]).sum(axis=1), return_index=True, return_inverse=True
    )
    if not (rows[index[inverse]] == rows).all():
        _, index, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(index)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    which = np.repeat(rank[inverse.reshape(-1)], np.diff(np.append(changes, len(words))))
    return changes[index[order]], which


class Numbers(Generic[Value]):
    """Small numbers for values, so that columns can hold them."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._numbers: dict[Value, int] = {}

    def of(self, value: Value) -> int:
        """The number of a value; a new one for a value that is new."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number
