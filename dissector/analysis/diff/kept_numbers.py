"""Numbers of one side that are kept for medians: as an array of 8 bytes each, and no more than a bound."""

from array import array

import numpy as np

from dissector.core.arrays import Int64


def no_numbers() -> "array[int]":
    """Return an array without numbers."""
    return array("q")


def extend(numbers: "array[int]", more: Int64, most: int | None = None) -> None:
    """Append numbers, but none once there are `most`."""
    room = len(more) if most is None else max(0, most - len(numbers))
    numbers.frombytes(more[:room].astype(np.int64).tobytes())


def as_column(numbers: "array[int]") -> Int64:
    """Return the numbers as a column, `(n,)`. It shares their memory: the array can't grow while it is in use."""
    return np.frombuffer(numbers, np.int64)


def median_of(numbers: "array[int]") -> float:
    """Return the median, as `statistics.median` does: an integer if one number is in the middle."""
    middle = len(numbers) // 2
    if len(numbers) % 2:
        return int(np.partition(as_column(numbers), middle)[middle])
    low, high = np.partition(as_column(numbers), (middle - 1, middle))[middle - 1 : middle + 1].tolist()
    return float((low + high) / 2)
