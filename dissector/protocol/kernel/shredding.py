"""Frames of one layout read into columns by the native kernel, many at once (`shred.c`).

An `Arena` has the memory for the columns, and uses it again and again: fresh memory costs more than reading a frame.
What it gives is valid until it reads the next frames. Where the columns are full it gives what they have, and goes on:
memory is bounded by `MOST_VALUES` and `MOST_KEY_BYTES`.

Invariant: a row in error has no value in any column, and no key; it is for the reader in Python, which says what is
wrong with it.
"""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int32, Int64, UInt8, UInt64
from dissector.protocol.codec.program import Program, Want, Wanted
from dissector.protocol.kernel.library import function

MOST_VALUES: Final = 1 << 22
"""Of all columns together: 80 MiB."""
MOST_KEY_BYTES: Final = 1 << 22
FEW: Final = 1 << 10


class ShredError(IntEnum):
    """Why a frame does not fit its layout."""

    NONE = 0
    ENDS_INSIDE = 1
    PAST_THE_END = 2
    IS_NULL = 3
    BAD_VARINT = 4
    TAG_SIZE = 5
    TRAILING = 6
    TOO_DEEP = 7
    REPEATED_TAG = 8
    TOO_LARGE = 9
    """It has more values than an arena."""


@dataclass(frozen=True, slots=True)
class FrameMemory:
    """Frames in memory, each in one piece: their addresses and sizes, `(n,)`, and what keeps the memory alive."""

    addresses: UInt64
    sizes: Int64
    owner: object

    @classmethod
    def of_buffer(cls, data: UInt8, starts: Int64, sizes: Int64) -> "FrameMemory":
        """Return the frames of a buffer."""
        return cls((starts + data.ctypes.data).astype(np.uint64), sizes, data)

    def at(self, rows: Int64) -> "FrameMemory":
        """Return some of the frames, by their numbers."""
        return FrameMemory(self.addresses[rows], self.sizes[rows], self.owner)

    def data(self, row: int) -> bytes:
        """Return the bytes of a frame."""
        return ctypes.string_at(int(self.addresses[row]), int(self.sizes[row]))

    def __len__(self) -> int:
        return len(self.addresses)


class ColumnValues(NamedTuple):
    """The values of a column, `(n,)`, in the order of the frames: each with its offset in its frame, and its row."""

    values: Int64
    positions: Int64
    rows: Int32


class KeyNumbers(NamedTuple):
    """Rows numbered by their keys."""

    numbers: Int32
    """Of each row; equal keys have one. -1 for a row in error."""
    keys: list[bytes]
    """By number."""
    rows: Int32
    """The first row of each number."""


class KernelShred(ctypes.Structure):
    """The same in kernel.h."""

    _fields_ = [
        (name, ctypes.c_int64 if name in ("rows", "begin", "columns", "key_capacity") else ctypes.c_void_p)
        for name in (
            "frames", "sizes", "rows", "begin", "program", "columns", "wanted", "base", "capacity", "counts",
            "saved", "values", "positions", "in_row", "keys", "key_capacity", "key_ends", "errors", "error_at",
            "unclean",
        )
    ]  # fmt: skip


@dataclass(frozen=True)
class Shredded:
    """Rows `first` to before `stop` of some frames, as columns. Rows are counted from the first of all frames."""

    first: int
    stop: int
    errors: UInt8
    """By row."""
    error_at: Int64
    """Offset in the frame of the field that does not fit."""
    unclean: UInt8
    """By row: 1 where a column that was to be checked has a text that is not ASCII or has control characters, a number
    of eight bytes that is no time, or tagged fields that no schema has."""
    _arena: "Arena"

    def column(self, number: int) -> ColumnValues:
        """Return a column that was wanted."""
        arena = self._arena
        start = int(arena.base[number])
        part = slice(start, start + int(arena.counts[number]))
        return ColumnValues(arena.values[part], arena.positions[part], arena.in_row[part])

    def key_numbers(self) -> KeyNumbers:
        """Number the rows by their keys. Row numbers begin with 0 for `first`."""
        return self._arena.key_numbers(self.first, self.stop)


class Arena:
    """Memory for the columns of one layout at a time."""

    def __init__(self) -> None:
        self._room(FEW)
        self.keys: UInt8 = np.empty(1 << 16, np.uint8)
        self.base = self.counts = np.zeros(0, np.int64)
        self._key_ends = self._error_at = np.zeros(0, np.int64)
        self._errors = self._unclean = np.zeros(0, np.uint8)

    def _room(self, values: int) -> None:
        self.values: Int64 = np.empty(values, np.int64)
        self.positions: Int64 = np.empty(values, np.int64)
        self.in_row: Int32 = np.empty(values, np.int32)

    def shred(self, frames: FrameMemory, program: Program, wanted: Wanted, begin: int) -> Iterator[Shredded]:
        """Read frames, whose layout begins `begin` bytes behind their start, along a program. Most come at once."""
        rows = len(frames)
        if len(self._errors) < rows:
            self._errors = np.empty(rows, np.uint8)
            self._unclean = np.empty(rows, np.uint8)
            self._error_at = np.empty(rows, np.int64)
            self._key_ends = np.empty(rows, np.int64)
        kept = np.flatnonzero(wanted & (Want.VALUES | Want.NONZERO))
        saved, self.counts = np.zeros((2, len(wanted)), np.int64)
        first = 0
        while first < rows:
            self.counts[:] = 0
            capacity = self._divide(kept, len(wanted))
            stop = self._read(frames, program, wanted, capacity, saved, first, begin)
            if stop > first:
                yield self._shredded(first, stop)
            elif not self._grow():
                self._errors[first], self._error_at[first] = ShredError.TOO_LARGE, begin
                self._key_ends[first] = self._key_ends[first - 1] if first else 0
                stop = first + 1
                yield self._shredded(first, stop)
            if stop < rows:
                self._grow()
            first = stop

    def _shredded(self, first: int, stop: int) -> Shredded:
        rows = slice(first, stop)
        return Shredded(first, stop, self._errors[rows], self._error_at[rows], self._unclean[rows], self)

    def _divide(self, kept: Int64, columns: int) -> Int64:
        """Give each column that is kept an equal part of the arena; return how much that is of each."""
        share = len(self.values) // max(1, len(kept))
        capacity = np.zeros(columns, np.int64)
        capacity[kept] = share
        self.base = np.cumsum(capacity) - capacity
        return capacity

    def _grow(self) -> bool:
        """Make more room for the next rows, if that is allowed."""
        grew = len(self.values) < MOST_VALUES or len(self.keys) < MOST_KEY_BYTES
        if len(self.values) < MOST_VALUES:
            self._room(min(4 * len(self.values), MOST_VALUES))
        if len(self.keys) < MOST_KEY_BYTES:
            self.keys = np.empty(min(4 * len(self.keys), MOST_KEY_BYTES), np.uint8)
        return grew

    def _read(
        self,
        frames: FrameMemory,
        program: Program,
        wanted: Wanted,
        capacity: Int64,
        saved: Int64,
        first: int,
        begin: int,
    ) -> int:
        addresses, sizes = np.ascontiguousarray(frames.addresses[first:]), np.ascontiguousarray(frames.sizes[first:])
        errors, error_at, key_ends = self._errors[first:], self._error_at[first:], self._key_ends[first:]
        unclean = self._unclean[first:]
        call = KernelShred(
            addresses.ctypes.data, sizes.ctypes.data, len(addresses), begin, program.code.ctypes.data, len(wanted),
            wanted.ctypes.data, self.base.ctypes.data, capacity.ctypes.data, self.counts.ctypes.data, saved.ctypes.data,
            self.values.ctypes.data, self.positions.ctypes.data, self.in_row.ctypes.data, self.keys.ctypes.data,
            len(self.keys), key_ends.ctypes.data, errors.ctypes.data, error_at.ctypes.data, unclean.ctypes.data,
        )  # fmt: skip
        return first + _shred()(ctypes.byref(call))

    def key_numbers(self, first: int, stop: int) -> KeyNumbers:
        """Number rows by their keys."""
        ends = self._key_ends[first:stop]
        numbers, firsts = numbered(self.keys, ends, self._errors[first:stop])
        starts = np.where(firsts > 0, ends[firsts - 1], 0).tolist()
        keys = [self.keys[start:stop].tobytes() for start, stop in zip(starts, ends[firsts].tolist(), strict=True)]
        return KeyNumbers(numbers, keys, firsts)


def numbered(data: UInt8, ends: Int64, errors: UInt8) -> tuple[Int32, Int32]:
    """Number contents that stand one behind the other and end at `ends`: equal ones have one number, from 0 in the
    order in which they come; -1 where there is an error. Return the numbers, and the first row of each."""
    rows = len(ends)
    bits = max(4, (2 * rows).bit_length())
    slots = np.full(1 << bits, -1, np.int32)
    numbers, firsts = np.empty((2, max(1, rows)), np.int32)
    ends = np.ascontiguousarray(ends, np.int64)
    different = _number_keys()(
        data.ctypes.data, ends.ctypes.data, errors.ctypes.data, rows, slots.ctypes.data, bits, numbers.ctypes.data,
        firsts.ctypes.data,
    )  # fmt: skip
    return numbers[:rows], firsts[:different]


@cache
def _shred() -> Callable[..., int]:
    return function("shred", ctypes.c_void_p)


@cache
def _number_keys() -> Callable[..., int]:
    address = ctypes.c_void_p
    number = ctypes.c_int64
    return function("number_keys", address, address, address, number, address, ctypes.c_int32, address, address)
