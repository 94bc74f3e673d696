"""Finding the next frame in bytes whose beginning is lost, by content.

A place is taken when a size prefix that can be true stands there, what follows looks like a frame's head to the caller,
and the chain goes on: the frames after it look right too, up to where the bytes end. Places where a segment begins are
tried first: nearly every frame begins there, and misread zeros do not. Better to skip a frame than to invent one.
"""

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

_SHORTEST: Final = 8
_CHAIN: Final = 3
"""Frames in a row that must look right, where there are so many."""
_HEAD: Final = 64

Plausible = Callable[[bytes], bool]
"""Whether bytes look like the beginning of a frame, size prefix included."""


def find_frame(data: bytes, plausible: Plausible, largest: int, segments: Iterable[int] = ()) -> int | None:
    """The offset of a frame in `data`, or None where none can be told yet. `segments`: where segments begin."""
    for at in segments:
        if _chain(data, at, plausible, largest):
            return at
    if len(data) < _SHORTEST:
        return None
    raw = np.frombuffer(data, np.uint8).astype(np.int64)
    sizes = (raw[:-7] << 24) | (raw[1:-6] << 16) | (raw[2:-5] << 8) | raw[3:-4]
    candidates = np.flatnonzero((sizes >= _SHORTEST - 4) & (sizes <= largest))
    return next((at for at in candidates.tolist() if _chain(data, at, plausible, largest)), None)


def _chain(data: bytes, at: int, plausible: Plausible, largest: int) -> bool:
    """Whether frames follow each other from `at` on."""
    for _ in range(_CHAIN):
        if len(data) - at < _SHORTEST:
            return False
        size = int.from_bytes(data[at : at + 4], "big")
        if not _SHORTEST - 4 <= size <= largest or not plausible(data[at : at + _HEAD]):
            return False
        at += 4 + size
        if at >= len(data):
            return True
    return True
