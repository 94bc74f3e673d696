"""Whole numbers read at many places of a buffer at once, unaligned, in either byte order."""

from collections.abc import Callable, Iterator
from typing import Final, Literal

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt32

ByteOrder = Literal["<", ">"]
_CHUNK: Final = 1 << 20


def read_unsigned(data: UInt8, at: Int64, width: int, order: ByteOrder) -> Int64:
    """The unsigned integers of `width` bytes (1 to 4) at each place, as `(n,)` int64. The caller keeps in bounds."""
    if width == 4:
        return unaligned_words(data, order)[at].astype(np.int64)
    value = np.zeros(len(at), np.int64)
    for n in range(width):
        value |= data[at + n].astype(np.int64) << (8 * (width - 1 - n if order == ">" else n))
    return value


def unaligned_words(data: UInt8, order: ByteOrder) -> UInt32:
    """The words of 4 bytes that begin at each of the bytes, a view: those that overlap cost nothing until asked for."""
    return np.ndarray((max(0, len(data) - 3),), f"{order}u4", data, strides=(1,))


def read_words(data: UInt8, at: Int64, count: int, order: ByteOrder) -> list[Int64]:
    """The next `count` words of 4 bytes at each of some ascending places, `(n,)` int64 each; zeros behind the data.

    What stands at a place is fetched at once: several times faster than word by word."""
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
    """The places from `start` on of which the next `count` words of 4 bytes are `wanted`, ascending, a stretch a step.

    Words stand at any byte: those at places equal modulo 4 are looked at as they are, nothing is copied.
    """
    last = len(data) - 4 * count
    for low in range(start, last + 1, _CHUNK):
        found = []
        for shift in range(low, min(low + 4, last + 1)):
            places = np.arange(shift, min(low + _CHUNK, last + 1), 4)
            stretch = data[shift : shift + 4 * (len(places) + count - 1)].view(f"{order}u4")
            found.append(places[wanted([stretch[n : n + len(places)] for n in range(count)])])
        yield np.sort(np.concatenate(found))
