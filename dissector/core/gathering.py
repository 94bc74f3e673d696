"""Copies many pieces of a buffer together, natively."""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int32, Int64, UInt8
from dissector.core.kernel import kernel_function

_gather = kernel_function("gather", "PqPPqPPq")
MOST_GATHERED: Final = 1 << 31
"""Offsets in Arrow's columns of bytes have 32 bits."""


class Gathered(NamedTuple):
    """Pieces as a column of Arrow: where each begins, and the end of the last; and their bytes."""

    offsets: Int32
    data: UInt8


def gathered(data: UInt8, starts: Int64, sizes: Int64) -> Gathered:
    """Copy pieces together; one of a negative size adds no bytes.

    Raises `ValueError` if one is not inside the data, or if they have 2 GiB."""
    starts, sizes = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(sizes, np.int64)
    total = int(np.maximum(sizes, 0).sum())
    if len(starts) != len(sizes) or not 0 <= total < MOST_GATHERED:
        raise ValueError("contents have a start and a size each, and less than 2 GiB together")
    out = np.empty(total, np.uint8)
    offsets = np.empty(len(starts) + 1, np.int32)
    where = data.ctypes.data, len(data), starts.ctypes.data, sizes.ctypes.data, len(starts)
    if _gather()(*where, offsets.ctypes.data, out.ctypes.data, len(out)) < 0:
        raise ValueError("contents are not inside the data")
    return Gathered(offsets, out)
