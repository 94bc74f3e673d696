"""Which of many `records` fields have an entry of some kind, by the native kernel (`record_tests.c`).

Invariant: it says what `split_entries` and the entries' own readers say of any of them.
"""

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt64
from dissector.core.kernel import function


def have_messages(addresses: UInt64, sizes: Int64) -> Bool:
    """Which fields at these addresses have a message of magic 0 or 1, `(n,)`."""
    return _test("have_messages", addresses, sizes)


def have_other_checksums(addresses: UInt64, sizes: Int64) -> Bool:
    """Which fields have a batch whose CRC-32C is not that of its bytes, `(n,)`."""
    return _test("have_other_checksums", addresses, sizes)


def _test(name: str, addresses: UInt64, sizes: Int64) -> Bool:
    addresses, sizes = np.ascontiguousarray(addresses, np.uint64), np.ascontiguousarray(sizes, np.int64)
    found = np.zeros(len(addresses), np.bool_)
    _function(name)(addresses.ctypes.data, sizes.ctypes.data, len(addresses), found.ctypes.data)
    return found


@cache
def _function(name: str) -> Callable[..., int]:
    address = ctypes.c_void_p
    return function(name, address, address, ctypes.c_int64, address)
