"""Which of many `records` fields have an entry of some kind, by the native kernel (`record_tests.c`).

Invariant: it says what `split_entries` and the entries' own readers say of any of them.
"""

from collections.abc import Callable

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt64
from dissector.core.kernel import kernel_function

_have_wrappers = kernel_function("have_wrappers", "PPqP")
_have_batches = kernel_function("have_batches", "PPqP")
_have_other_checksums = kernel_function("have_other_checksums", "PPqP")


def have_wrappers(addresses: UInt64, sizes: Int64) -> Bool:
    """Which fields at these addresses have a message of magic 0 or 1 that is compressed, `(n,)`."""
    return _test(_have_wrappers(), addresses, sizes)


def have_batches(addresses: UInt64, sizes: Int64) -> Bool:
    """Which fields have a batch, `(n,)`."""
    return _test(_have_batches(), addresses, sizes)


def have_other_checksums(addresses: UInt64, sizes: Int64) -> Bool:
    """Which fields have a batch whose CRC-32C is not that of its bytes, `(n,)`."""
    return _test(_have_other_checksums(), addresses, sizes)


def _test(test: Callable[..., int], addresses: UInt64, sizes: Int64) -> Bool:
    addresses, sizes = np.ascontiguousarray(addresses, np.uint64), np.ascontiguousarray(sizes, np.int64)
    found = np.zeros(len(addresses), np.bool_)
    test(addresses.ctypes.data, sizes.ctypes.data, len(addresses), found.ctypes.data)
    return found
