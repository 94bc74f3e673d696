"""Steps over columns that recur: rows in parts, in groups, expanded to what they have, computed once a distinct value;
and pieces of a buffer copied together, natively.

Things that rows have lie one behind the other: `counts` says how many each has, `begins` and `edges` where they lie.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Int32, Int64, UInt8
from dissector.core.kernel import kernel_function

Scalar = TypeVar("Scalar", bound=np.generic)


def begins(counts: Int64) -> Int64:
    """Return where the things of each row begin, `(n,)`."""
    found: Int64 = np.cumsum(counts) - counts
    return found


def edges(counts: Int64) -> Int64:
    """Return where the things of each row begin, and where the last ones end, `(n + 1,)`."""
    found = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=found[1:])
    return found


def owners(counts: Int64) -> Int64:
    """Return the row that has each thing."""
    return np.repeat(np.arange(len(counts)), counts)


def expanded(firsts: Int64, counts: Int64) -> Int64:
    """Return the numbers of the things of all rows, of which each has `counts` from its number in `firsts` on."""
    found: Int64 = np.repeat(firsts - begins(counts), counts) + np.arange(int(counts.sum()))
    return found


def cuts(sizes: Int64, most: int) -> Int64:
    """Return where `np.split` cuts rows of these sizes, so that a part has less than `most` behind its first row."""
    found: Int64 = np.flatnonzero(np.diff(np.cumsum(sizes) // most)) + 1
    return found


def groups(keys: Int64) -> list[Int64]:
    """Return the places of each key, ascending; the keys ascend as well."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if len(order) else []


def by_distinct(
    values: "np.ndarray[Any, np.dtype[Any]]", function: Callable[[int], object], kind: type[Scalar]
) -> npt.NDArray[Scalar]:
    """Return what the function returns for each value, called once for each distinct one."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([function(value) for value in distinct.tolist()], kind)[inverse]


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
