"""Frames of one layout read into columns by the native kernel, many at once (`shred.c`).

An `Arena` has the memory for the columns, and uses it again and again: fresh memory costs more than reading a frame.
What it gives is valid until it reads the next frames. Where the columns are full it gives what they have, and goes on:
memory is bounded by `MOST_VALUES` and `MOST_KEY_BYTES`.

Invariant: a row in error has no value in any column, and no key; it is for the reader in Python, which says what is
wrong with it.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int32, Int64, UInt8, UInt64
from dissector.core.kernel import kernel_function, structure_fields
from dissector.protocol.codec.program import Program, Wanted

_shred = kernel_function("shred", "P")
_number_keys = kernel_function("number_keys", "PPPqPiPP")
MOST_VALUES: Final = 1 << 22
"""Of all columns together: 80 MiB."""
MOST_KEY_BYTES: Final = 1 << 20
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
    UNKNOWN_TAG = 9
    """A header has a tagged field that no schema has."""
    TOO_LARGE = 10
    """It has more values than an arena."""


class FramePieces(NamedTuple):
    """The pieces of frames: their addresses and sizes, `(m,)`; and of each frame, `(n,)`, the first of its pieces and
    the one behind its last, the same for a frame in one piece. `owner` keeps their memory alive."""

    addresses: UInt64
    sizes: Int64
    first: Int64
    stop: Int64
    owner: object


@dataclass(slots=True)
class FrameMemory:
    """Frames in memory, each in one piece: their addresses and sizes, `(n,)`, and what keeps the memory alive. Those
    that have `pieces` have room there: what is read of them into columns is copied to its place before. Of bytes and
    records only the first bytes are, as many as a batch's header has."""

    addresses: UInt64
    sizes: Int64
    owner: object
    pieces: FramePieces | None = None

    @classmethod
    def of_buffer(cls, data: UInt8, starts: Int64, sizes: Int64) -> "FrameMemory":
        """Return the frames of a buffer."""
        return cls((starts + data.ctypes.data).astype(np.uint64), sizes, data)

    def at(self, rows: Int64 | slice) -> "FrameMemory":
        """Return some of the frames, by their numbers."""
        pieces = self.pieces and self.pieces._replace(first=self.pieces.first[rows], stop=self.pieces.stop[rows])
        return FrameMemory(self.addresses[rows], self.sizes[rows], self.owner, pieces)

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


SHRED: Final = """
const uint64_t *frames; /* address of each frame */
const int64_t *sizes;
int64_t rows;
int64_t begin; /* offset in a frame at which its layout begins */
const int32_t *program;
int64_t columns;
int64_t capacity;      /* values of each column of which some are kept */
const uint8_t *wanted; /* by column, as are the next three */
int64_t *base;         /* place of its first value in `values`, `positions`, `in_row` */
int64_t *counts;       /* of its values */
int64_t *saved;        /* the same before the row that is being read */
int64_t *values;
int64_t *positions; /* offsets in the frame: of a text, bytes or records, where the content begins */
int32_t *in_row;
uint8_t *keys;
int64_t key_capacity;
int64_t *key_ends; /* by row, as are the next three */
uint8_t *errors;
int64_t *error_at;
uint8_t *unclean; /* whether a field that is to be checked is not what it should be */
/* NULL, or by row the first of its pieces and the one behind its last; none of a frame that is in one piece. A frame
 * in pieces has room for all of its bytes, to which those are copied that are read. */
const int64_t *first_piece;
const int64_t *stop_piece;
const uint64_t *pieces; /* address of each */
const int64_t *piece_sizes;
"""
"""Frames of one layout, and the columns into which `kernel_shred` reads them: `KernelShred` of kernel.h."""


class KernelShred(ctypes.Structure):
    """As `SHRED`."""

    _fields_ = structure_fields(SHRED)


@dataclass(slots=True)
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
    """Memory for the columns of one layout at a time. Its addresses are kept: to ask an array for its own takes as long
    as reading a frame."""

    def __init__(self) -> None:
        self._call = KernelShred()
        self._room(FEW)
        self._key_room(1 << 16)
        self._row_room(0)
        self._column_room(0)

    def __reduce__(self) -> tuple[type["Arena"], tuple[()]]:
        """In a checkpoint: empty. Nothing in it outlives a call, and its addresses are those of this process only."""
        return Arena, ()

    def _room(self, values: int) -> None:
        self.values: Int64 = np.empty(values, np.int64)
        self.positions: Int64 = np.empty(values, np.int64)
        self.in_row: Int32 = np.empty(values, np.int32)
        call = self._call
        call.values, call.positions = self.values.ctypes.data, self.positions.ctypes.data
        call.in_row = self.in_row.ctypes.data

    def _key_room(self, size: int) -> None:
        self.keys: UInt8 = np.empty(size, np.uint8)
        self._call.keys, self._call.key_capacity = self.keys.ctypes.data, size

    def _row_room(self, rows: int) -> None:
        self._errors: UInt8 = np.empty(rows, np.uint8)
        self._unclean: UInt8 = np.empty(rows, np.uint8)
        self._error_at: Int64 = np.empty(rows, np.int64)
        self._key_ends: Int64 = np.empty(rows, np.int64)
        columns = (self._errors, self._unclean, self._error_at, self._key_ends)
        self._row_addresses = tuple(column.ctypes.data for column in columns)

    def _column_room(self, columns: int) -> None:
        self._columns: Int64 = np.zeros((3, columns), np.int64)
        self.base, self.counts, _ = self._columns
        first, size = self._columns.ctypes.data, 8 * columns
        call = self._call
        call.base, call.counts, call.saved = (first + number * size for number in range(3))

    def shred(self, frames: FrameMemory, program: Program, wanted: Wanted, begin: int) -> Iterator[Shredded]:
        """Read frames, whose layout begins `begin` bytes behind their start, along a program. Most come at once. Raises
        `ValueError` if what is wanted is not of this program: the kernel would read what is behind it."""
        if len(wanted) != len(program.columns):
            raise ValueError(f"{len(wanted)} columns are wanted of a program with {len(program.columns)}")
        rows = len(frames)
        if len(self._errors) < rows:
            self._row_room(2 * rows)
        if len(self.base) < len(wanted):
            self._column_room(2 * len(wanted))
        first = 0
        while first < rows:
            stop = self._read(frames, program, wanted, first, begin)
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

    def _grow(self) -> bool:
        """Make more room for the next rows, if that is allowed."""
        grew = len(self.values) < MOST_VALUES or len(self.keys) < MOST_KEY_BYTES
        if len(self.values) < MOST_VALUES:
            self._room(min(4 * len(self.values), MOST_VALUES))
        if len(self.keys) < MOST_KEY_BYTES:
            self._key_room(min(4 * len(self.keys), MOST_KEY_BYTES))
        return grew

    def _read(self, frames: FrameMemory, program: Program, wanted: Wanted, first: int, begin: int) -> int:
        """Read frames from `first` on. Each column that is kept has an equal part of the arena."""
        addresses, sizes = np.ascontiguousarray(frames.addresses[first:]), np.ascontiguousarray(frames.sizes[first:])
        errors, unclean, error_at, key_ends = self._row_addresses
        call = self._call
        call.first_piece, pieces = None, frames.pieces
        if pieces is not None:
            columns_of_pieces = [np.ascontiguousarray(each) for each in pieces[:-1]]
            call.pieces, call.piece_sizes, first_piece, stop_piece = (each.ctypes.data for each in columns_of_pieces)
            call.first_piece, call.stop_piece = first_piece + 8 * first, stop_piece + 8 * first
        call.frames, call.sizes, call.rows, call.begin = addresses.ctypes.data, sizes.ctypes.data, len(addresses), begin
        call.program, call.columns, call.wanted = program.address, len(wanted), wanted.address
        call.capacity = len(self.values) // max(1, wanted.count)
        call.errors, call.unclean = errors + first, unclean + first
        call.error_at, call.key_ends = error_at + 8 * first, key_ends + 8 * first
        return first + _shred()(ctypes.byref(call))

    def key_numbers(self, first: int, stop: int) -> KeyNumbers:
        """Number rows by their keys."""
        ends = self._key_ends[first:stop]
        errors, _, _, key_ends = self._row_addresses
        numbers, firsts = _numbered(self._call.keys, key_ends + 8 * first, errors + first, stop - first)
        starts = np.where(firsts > 0, ends[firsts - 1], 0).tolist()
        keys = [self.keys[start:stop].tobytes() for start, stop in zip(starts, ends[firsts].tolist(), strict=True)]
        return KeyNumbers(numbers, keys, firsts)


def numbered(data: UInt8, ends: Int64, errors: UInt8) -> tuple[Int32, Int32]:
    """Number contents that stand one behind the other and end at `ends`: equal ones have one number, from 0 in the
    order in which they come; -1 where there is an error. Return the numbers, and the first row of each."""
    ends = np.ascontiguousarray(ends, np.int64)
    return _numbered(data.ctypes.data, ends.ctypes.data, errors.ctypes.data, len(ends))


def numbered_rows(*columns: Int64) -> tuple[Int32, Int32]:
    """Number the different rows of some columns. Return the number of each row, and the first row of each number."""
    rows = np.stack(columns, axis=1)
    ends = np.arange(1, len(rows) + 1) * rows[:1].nbytes
    return numbered(rows.view(np.uint8).ravel(), ends, np.zeros(len(rows), np.uint8))


def _numbered(data: int, ends: int, errors: int, rows: int) -> tuple[Int32, Int32]:
    """The same, of contents at an address."""
    bits = max(4, (2 * rows).bit_length())
    slots = 1 << bits
    memory: Int32 = np.empty(slots + 2 * rows, np.int32)
    memory[:slots] = -1
    at, width = memory.ctypes.data, memory.itemsize
    first_at = slots + rows
    different = _number_keys()(data, ends, errors, rows, at, bits, at + width * slots, at + width * first_at)
    return memory[slots:first_at], memory[first_at : first_at + different]
