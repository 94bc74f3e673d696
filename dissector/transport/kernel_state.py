"""What a native pass over segments reads and writes: their columns, and state by direction and by connection."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from dissector.core.batches import SegmentBatch
from dissector.core.columns import Column


def kernel_state(
    segments: SegmentBatch,
    names: Iterable[str],
    by_direction: Mapping[str, Column],
    by_connection: Mapping[str, Column],
) -> tuple[int, dict[str, NDArray[np.generic]]]:
    """Grow the state to the connections of segments, of which there is one at least. Return how many directions there
    are, and by name the columns of the segments and the state: the native pass has only their addresses, so that they
    have to be kept until it returns."""
    directions = (int(segments.direction.max()) | 1) + 1
    for column in by_direction.values():
        column.grow(directions)
    for column in by_connection.values():
        column.grow(directions // 2)
    columns = {name: np.ascontiguousarray(getattr(segments, name)) for name in names}
    return directions, columns | {name: each.values for name, each in (*by_direction.items(), *by_connection.items())}
