"""Which of many frames contain one of some marks, by the native kernel (`search.c`).

Invariant: it says what `mark in frame` does for any of them.
"""

from collections.abc import Mapping

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.core.kernel import kernel_function

_contain = kernel_function("contain", "PPqPPPqP")


class Marks:
    """Marks, none of them empty, each with the place of a byte in it that is rare in frames: by that it is found."""

    def __init__(self, anchors: Mapping[bytes, int]) -> None:
        self._data: UInt8 = np.frombuffer(b"".join(anchors), np.uint8)
        self._lengths: Int64 = np.array([len(mark) for mark in anchors], np.int64)
        self._anchors: Int64 = np.array([*anchors.values()], np.int64)

    def are_in(self, addresses: UInt64, sizes: Int64) -> Bool:
        """Return which of the frames at these addresses contain one, `(n,)`."""
        addresses, sizes = np.ascontiguousarray(addresses, np.uint64), np.ascontiguousarray(sizes, np.int64)
        found = np.zeros(len(addresses), np.bool_)
        _contain()(
            addresses.ctypes.data, sizes.ctypes.data, len(addresses), self._data.ctypes.data,
            self._lengths.ctypes.data, self._anchors.ctypes.data, len(self._lengths), found.ctypes.data,
        )  # fmt: skip
        return found
