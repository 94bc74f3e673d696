"""Whole numbers read at many places of a buffer at once, unaligned, in either byte order."""

from typing import Literal

import numpy as np
import numpy.typing as npt

Order = Literal["<", ">"]
Ints = npt.NDArray[np.int64]


def unsigned(data: npt.NDArray[np.uint8], at: Ints, width: int, order: Order) -> Ints:
    """The unsigned integers of `width` bytes (1 to 4) at each place, as `(n,)` int64. The caller keeps in bounds."""
    value = np.zeros(len(at), np.int64)
    for n in range(width):
        value |= data[at + n].astype(np.int64) << (8 * (width - 1 - n if order == ">" else n))
    return value
