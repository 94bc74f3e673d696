"""Tests of many pieces of memory at once, by the native kernel: which frames contain one of some marks (`search.c`),
which `records` fields have an entry of some kind (`record_tests.c`).

Invariants: of a frame it says what `mark in frame` does for any of them; of a field what `split_entries` and the
entries' own readers say of any of them.
"""

from collections.abc import Callable, Mapping

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.core.kernel import kernel_function

_contain = kernel_function("contain", "PPqPPPqP")
_have_wrappers = kernel_function("have_wrappers", "PPqP")
_have_batches = kernel_function("have_batches", "PPqP")
_have_other_checksums = kernel_function("have_other_checksums", "PPqP")


def pass_test(test: Callable[..., int], addresses: UInt64, sizes: Int64, *arguments: int) -> Bool:
    """Return which of the pieces at these addresses pass a test of the kernel's, `(n,)`: a function of their addresses,
    their sizes and their number, then of `arguments`, then of where it writes what it finds."""
    addresses, sizes = np.ascontiguousarray(addresses, np.uint64), np.ascontiguousarray(sizes, np.int64)
    found = np.zeros(len(addresses), np.bool_)
    test(addresses.ctypes.data, sizes.ctypes.data, len(addresses), *arguments, found.ctypes.data)
    return found


class Marks:
    """Marks, none of them empty, each with the place of a byte in it that is rare in frames: by that it is found."""

    def __init__(self, anchors: Mapping[bytes, int]) -> None:
        self._data: UInt8 = np.frombuffer(b"".join(anchors), np.uint8)
        self._lengths: Int64 = np.array([len(mark) for mark in anchors], np.int64)
        self._anchors: Int64 = np.array([*anchors.values()], np.int64)

    def are_in(self, addresses: UInt64, sizes: Int64) -> Bool:
        """Return which of the frames at these addresses contain one, `(n,)`."""
        marks = self._data.ctypes.data, self._lengths.ctypes.data, self._anchors.ctypes.data, len(self._lengths)
        return pass_test(_contain(), addresses, sizes, *marks)


def have_wrappers(addresses: UInt64, sizes: Int64) -> Bool:
    """Which fields at these addresses have a message of magic 0 or 1 that is compressed, `(n,)`."""
    return pass_test(_have_wrappers(), addresses, sizes)


def have_batches(addresses: UInt64, sizes: Int64) -> Bool:
    """Which fields have a batch, `(n,)`."""
    return pass_test(_have_batches(), addresses, sizes)


def have_other_checksums(addresses: UInt64, sizes: Int64) -> Bool:
    """Which fields have a batch whose CRC-32C is not that of its bytes, `(n,)`."""
    return pass_test(_have_other_checksums(), addresses, sizes)
