"""Finding the next frame in bytes whose beginning is lost, by content.

A place is taken when a size prefix that can be true stands there, what follows looks like a frame's head to the caller,
and the chain goes on: the next frame looks right too, or the bytes end exactly where the frame ends. One frame that
runs past what is there is believed only when nothing better follows. Better to skip a frame than to invent one.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

_SHORTEST: Final = 8


def find_frame(data: bytes, plausible: Callable[[bytes], bool], largest: int) -> int | None:
    """The offset of the first frame in `data`, or None where none can be told yet."""
    if len(data) < _SHORTEST:
        return None
    raw = np.frombuffer(data, np.uint8).astype(np.int64)
    sizes = (raw[:-7] << 24) | (raw[1:-6] << 16) | (raw[2:-5] << 8) | raw[3:-4]
    candidates = np.flatnonzero((sizes >= _SHORTEST - 4) & (sizes <= largest))
    last_resort: int | None = None
    for at in candidates.tolist():
        if not plausible(data[at : at + 64]):
            continue
        after = at + 4 + int(sizes[at])
        if after == len(data) or (after + _SHORTEST <= len(data) and plausible(data[after : after + 64])):
            return at
        if after > len(data) and last_resort is None:
            last_resort = at
    return last_resort
