"""Reads integers at many positions of a buffer at once, unaligned, in either byte order; searches records in a row."""

from collections.abc import Callable, Iterator
from typing import Final, Literal

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt32

ByteOrder = Literal["<", ">"]
_CHUNK: Final = 1 << 20
NOT_YET: Final = -2
"""More bytes are needed."""
NOWHERE: Final = -1


def read_unsigned(data: UInt8, at: Int64, width: int, order: ByteOrder) -> Int64:
    """Return the unsigned integers of `width` bytes (1 to 4) at each position, `(n,)` int64. Bounds are not checked."""
    if width == 4:
        return unaligned_words(data, order)[at].astype(np.int64)
    value = np.zeros(len(at), np.int64)
    for n in range(width):
        value |= data[at + n].astype(np.int64) << (8 * (width - 1 - n if order == ">" else n))
    return value


def unaligned_words(data: UInt8, order: ByteOrder) -> UInt32:
    """Return the 4-byte words that begin at each byte, as a view: overlapping words cost nothing until they are
    read."""
    return np.ndarray((max(0, len(data) - 3),), f"{order}u4", data, strides=(1,))


def read_words(data: UInt8, at: Int64, count: int, order: ByteOrder) -> list[Int64]:
    """Return the next `count` 4-byte words at each of some ascending positions, `(n,)` int64 each; zeros after the
    data.

    All words of a position are read at once, which is several times faster than word by word."""
    size = 4 * count
    inside = int(np.searchsorted(at, len(data) - size, side="right"))
    if inside < len(at):
        start = int(at[inside])
        rest = read_words(np.concatenate([data[start:], np.zeros(size, np.uint8)]), at[inside:] - start, count, order)
        return [np.concatenate(pair) for pair in zip(read_words(data, at[:inside], count, order), rest, strict=True)]
    pieces = np.ndarray((max(0, len(data) - size + 1),), f"V{size}", data, strides=(1,))
    found = pieces[at].view(f"{order}u4").reshape(len(at), count)
    return [found[:, n].astype(np.int64) for n in range(count)]


def find_words(
    data: UInt8, start: int, count: int, order: ByteOrder, wanted: Callable[[list[UInt32]], Bool]
) -> Iterator[Int64]:
    """Yield the positions from `start` on whose next `count` 4-byte words are `wanted`, ascending, chunk by chunk.

    Words begin at any byte. Positions that are equal modulo 4 are tested in one view, without a copy.
    """
    last = len(data) - 4 * count
    for low in range(start, last + 1, _CHUNK):
        found = []
        for shift in range(low, min(low + 4, last + 1)):
            positions = np.arange(shift, min(low + _CHUNK, last + 1), 4)
            stretch = data[shift : shift + 4 * (len(positions) + count - 1)].view(f"{order}u4")
            found.append(positions[wanted([stretch[n : n + len(positions)] for n in range(count)])])
        yield np.sort(np.concatenate(found))


def find_chain(
    data: UInt8, start: int, until: int, count: int, order: ByteOrder, wanted: Callable[[list[UInt32]], Bool],
    begins_chain: Callable[[memoryview, int], bool | None],
) -> tuple[int, int]:  # fmt: skip
    """Return the first position from `start` to `until` with `wanted` words at which a chain of records begins, or
    `NOWHERE`, or `NOT_YET` if `begins_chain` needs more bytes; and the position up to which there is none."""
    end = until + 4 * count
    for positions in find_words(data[:end], start, count, order, wanted):
        for position in positions.tolist():
            chain = begins_chain(memoryview(data.data), position)
            if chain is not False:
                return (NOT_YET if chain is None else position), position
    return NOWHERE, max(start, min(end, len(data)) - 4 * count + 1)


def room_for(most: int, at: int, stop: int, least: int) -> Int64:
    """Return memory for the positions of at most so many records from `at` to before `stop`, of at least `least` bytes
    each, and for the next position."""
    return np.empty(min(most, max(0, stop - at) // least + 1) + 1, np.int64)
