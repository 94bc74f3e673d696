"""A numpy column that grows, with amortized appending.

Invariants:
  * a large column is a mapped, unnamed temporary file, whose resident pages are released now and then, by itself or
    with those of all others (`trim`), as long as there is a view of it: memory stays flat however many rows there are.
    Where no file can be created it stays in memory;
  * it grows without a copy: the file is mapped again, and the old map is freed with the last view of it;
  * a copied column has the rows given to `keep`: rows keep their numbers, and the others cost nothing.
"""

import mmap
import os
import tempfile
import weakref
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Bool, Int32, Int64, UInt64
from dissector.core.process_memory import release_when_trimmed

_FIRST_ROOM: Final = 1024
_FILE_BYTES: Final = 1 << 18
"""Bytes from which on a column is a file; and new bytes after which its pages are released."""
_GROWTH_BYTES: Final = 1 << 18
"""Least bytes that a file grows by, ..."""
_GROWTH: Final = 4
"""... and which part of what it has, at the least."""
_READS: Final = 4096
"""Reads of a column after which its pages are released: each may have made some resident."""
_FACTORS: Final = np.frombuffer(os.urandom(64 * 8), np.uint64) | np.uint64(1)
"""Random in each process, so that nobody can craft rows with equal sums."""


Value = TypeVar("Value")


class Column:
    """One growing column. `values` is a view of its rows: get it again after each change of length."""

    __slots__ = ("__weakref__", "_array", "_default", "_file", "_kept", "_map", "_new", "_reads", "_size")

    def __init__(self, dtype: npt.DTypeLike, default: int = 0) -> None:
        self._array: npt.NDArray[np.generic] = np.empty(_FIRST_ROOM, dtype)
        self._default = default or np.zeros(1, dtype)[0]
        self._size = 0
        self._kept: Int64 | None = None
        """Rows that are copied; None for all."""
        self._file: int | None = None
        self._map: mmap.mmap | None = None
        self._reads = 0
        self._new = 0
        """Bytes of new rows since pages were released."""

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> Int64:
        """The rows, `(n,)`, in the column's dtype."""
        self._reads += 1
        if self._reads > _READS:
            self.release_pages()
        return self._array[: self._size]  # type: ignore[return-value]  # int64 stands for any integer type

    def at(self, rows: Int64) -> Int64:
        """The values of rows; 0 behind the last one."""
        found = np.zeros(len(rows), np.int64)
        known = rows < self._size
        found[known] = self.values[rows[known]]
        return found

    def item(self, row: int) -> int:
        """The value of one row; 0 of one that is not there."""
        if not 0 <= row < self._size:
            return 0
        self._reads += 1
        return self._array.item(row)  # type: ignore[no-any-return]  # int64 stands for any integer type

    def grow(self, size: int) -> None:
        """Grow to at least `size` rows; new rows have the default."""
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
        """Copy only these rows, ascending: in a pickle or a checkpoint the others read as zeros."""
        self._kept = rows

    def with_only(self, rows: Int64, values: Int64) -> "Column":
        """Return a column of as many rows that copies only these, ascending, with new values: the others are zeros that
        nobody writes."""
        column = restored_column(self._array.dtype, int(self._default), self._size, rows, values)
        column.keep(rows)
        return column

    def __reduce__(self) -> tuple[Any, ...]:
        values = self._array[: self._size]
        some = values if self._kept is None else values[self._kept]
        return restored_column, (self._array.dtype, self._default, self._size, self._kept, some)

    def release_pages(self) -> None:
        """Release the resident pages of a large column; reading brings them back from the page cache."""
        self._reads = self._new = 0
        if self._map is not None:
            _release(self._map)

    def _make_room(self, size: int) -> None:
        """Grow to `size` rows; the new ones are not initialized."""
        if size > len(self._array):
            room = max(size, 2 * len(self._array))
            if room * self._array.itemsize < _FILE_BYTES or not self._remap(size):
                array = np.empty(room, self._array.dtype)
                array[: self._size] = self._array[: self._size]
                self._array, self._map = array, None
        self._new += (size - self._size) * self._array.itemsize
        self._size = size
        if self._new > _FILE_BYTES:
            self.release_pages()

    def _become_zeros(self, size: int) -> None:
        """Become `size` zeros, which take no memory until they are written."""
        if size * self._array.itemsize < _FILE_BYTES or not self._remap(size, whole=False):
            self._array, self._map = np.zeros(max(size, _FIRST_ROOM), self._array.dtype), None
        self._size = size

    def _remap(self, size: int, *, whole: bool = True) -> bool:
        """Map a file with room for `size` rows, allocated if `whole`. Return False where the disk has no room."""
        width = self._array.itemsize
        have = len(self._array) * width if self._map is not None else 0
        room = -(-max(size * width, have + have // _GROWTH) // _GROWTH_BYTES) * _GROWTH_BYTES
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
        _MAPS.append(weakref.ref(fresh, _MAPS.remove))
        array = np.frombuffer(fresh, self._array.dtype, room // width)
        if self._map is None:
            array[: self._size] = self._array[: self._size]
        self._array, self._map = array, fresh
        return True


_MAPS: Final[list[weakref.ref[mmap.mmap]]] = []
"""Those of columns, and of views that outlive theirs. A thread may add one while another goes through them, so this is
no set."""


@release_when_trimmed
def release_all() -> None:
    """Release the resident pages of all columns that are files."""
    for each in tuple(_MAPS):
        found = each()
        if found is not None:
            _release(found)


def _release(pages: mmap.mmap) -> None:
    if hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def restored_column(
    dtype: npt.DTypeLike, default: int, size: int, kept: Int64 | None, values: npt.NDArray[np.generic]
) -> Column:
    """Return a column of `size` rows with the values of those that were kept; the others read as zeros."""
    column = Column(dtype, default)
    column._become_zeros(size)
    column._array[slice(size) if kept is None else kept] = values
    return column


def _lengthen(file: int, have: int, room: int) -> None:
    """Allocate the room on disk now: a page without room later would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, have, room - have)
    else:
        os.ftruncate(file, room)


def unique(values: Int64) -> Int64:
    """Return the distinct values of a column, ascending.

    `numpy.unique` imports masked arrays when nothing else is requested: a tenth of the start time of a command.
    """
    ordered = np.sort(values)
    changes = np.ones(len(ordered), np.bool_)
    changes[1:] = ordered[1:] != ordered[:-1]
    return ordered[changes]


def is_in(values: Int64, others: Int64) -> Bool:
    """Return which values are among others. `numpy.isin` may import masked arrays, too."""
    ordered = np.sort(others)
    found: Bool = np.searchsorted(ordered, values, "left") < np.searchsorted(ordered, values, "right")
    return found


def distinct(words: UInt64) -> tuple[Int64, Int64]:
    """Return the first of each set of equal rows, up to 64 words wide, in order; and for every row its set.

    Sorting rows is slow: their sums are sorted, and rows with equal sums are compared. The upper half of each word is
    mixed into its lower one: of addresses that differ in their last byte the sums would differ in eight bits only.
    """
    changes = np.flatnonzero(np.concatenate([[True], (words[1:] != words[:-1]).any(axis=1)]))
    rows = words[changes]
    mixed = rows ^ rows >> np.uint64(32)
    _, index, inverse = np.unique(
        (mixed * _FACTORS[: rows.shape[1]]).sum(axis=1), return_index=True, return_inverse=True
    )
    if not (rows[index[inverse]] == rows).all():
        _, index, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(index)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    which = np.repeat(rank[inverse.reshape(-1)], np.diff(np.append(changes, len(words))))
    return changes[index[order]], which


class ValueNumbers(Generic[Value]):
    """Numbers values from 0, so that columns can hold them."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._numbers: dict[Value, int] = {}

    def of(self, value: Value) -> int:
        """Return the number of a value, a new one for a new value."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class ValueColumn(Generic[Value]):
    """A value of each row, of a few different ones, or none: four bytes a row."""

    def __init__(self) -> None:
        self._numbers = Column(np.int32)
        """Of each row, that of its value from 1; 0 for none."""
        self._values: list[Value] = []
        self._known: dict[Hashable, int] = {}

    def number(self, value: Value, key: Hashable) -> int:
        """Return the number of a value, a new one for a new key."""
        number = self._known.setdefault(key, len(self._values) + 1)
        if number > len(self._values):
            self._values.append(value)
        return number

    def set(self, rows: Int64, numbers: Int32) -> None:
        """Give rows the values of these numbers, those with the number 0 nothing; of a row that comes again, the last
        one."""
        rows, numbers = rows[numbers > 0], numbers[numbers > 0]
        self._numbers.grow(int(rows.max(initial=-1)) + 1)
        self._numbers.values[rows] = numbers

    def get(self, row: int) -> Value | None:
        """The value of a row, None if it has none."""
        number = self._numbers.item(row)
        return self._values[number - 1] if number else None

    def keep(self, rows: Int64) -> None:
        """Forget the values of all but these rows, ascending."""
        rows = rows[rows < len(self._numbers)]
        self._numbers = self._numbers.with_only(rows, self._numbers.values[rows])


def tuples(*columns: "np.ndarray[tuple[int], np.dtype[Any]]") -> Iterator[tuple[Any, ...]]:
    """Yield the rows of columns of one length, `(n,)` each, as Python's values."""
    return zip(*(column.tolist() for column in columns), strict=True)
