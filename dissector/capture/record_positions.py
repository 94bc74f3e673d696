"""Where the records of a file begin: the native kernel goes from one to the next by their lengths (`capture.c`).

All other fields of the records are read and checked afterwards, of all at once.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from dissector.capture.integers import ByteOrder
from dissector.core.arrays import Int64, UInt8
from dissector.core.kernel import function

LEAST_BLOCK: Final = 16
"""Bytes of the smallest packet block."""


def room_for(most: int, at: int, stop: int, least: int) -> Int64:
    """Return memory for the positions of at most so many records from `at` to before `stop`, of at least `least` bytes
    each, and for the next position."""
    return np.empty(min(most, max(0, stop - at) // least + 1) + 1, np.int64)


def pcap_records(
    data: UInt8, at: int, stop: int, positions: Int64, *, header: int, largest: int, order: ByteOrder
) -> tuple[int, int]:
    """Write the positions of pcap records from `at` to before `stop` into all of `positions` but the last place. Return
    how many there are; and the next position: before `stop`, if the record there is impossible or incomplete, or the
    places are full. Records have `header` bytes and at most `largest` of a packet."""
    found = _pcap_records()(
        data.ctypes.data, len(data), at, stop, header, largest, order == ">", positions.ctypes.data, len(positions) - 1
    )
    return found, int(positions[found])


def packet_blocks(
    data: UInt8, at: int, stop: int, positions: Int64, *, largest: int, order: ByteOrder
) -> tuple[int, int]:
    """Do the same for pcapng's packet blocks of at most `largest` bytes; a block that is another ends them, too. Their
    second lengths are not compared."""
    found = _packet_blocks()(
        data.ctypes.data, len(data), at, stop, largest, order == ">", positions.ctypes.data, len(positions) - 1
    )
    return found, int(positions[found])


@cache
def _pcap_records() -> Callable[..., int]:
    number, address = ctypes.c_int64, ctypes.c_void_p
    return function("pcap_records", address, number, number, number, number, number, ctypes.c_int32, address, number)


@cache
def _packet_blocks() -> Callable[..., int]:
    number, address = ctypes.c_int64, ctypes.c_void_p
    return function("packet_blocks", address, number, number, number, number, ctypes.c_int32, address, number)
