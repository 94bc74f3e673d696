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
