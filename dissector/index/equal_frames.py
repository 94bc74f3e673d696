"""Numbers frames by their bytes: what is learned from one need not be learned from its equals.

Invariant: frames with one number have the same bytes, but for those that the caller leaves out. Frames of which a part
was not captured, and long ones, have none.
"""

from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE
from dissector.core.grouping import cuts
from dissector.index.frame_table import FrameTable
from dissector.protocol.kernel.json_messages import join
from dissector.protocol.kernel.shredding import numbered

NO_NUMBER: Final = -1
LONGEST: Final = 1 << 16
COPIED_TOGETHER: Final = 1 << 23
"""Bytes of frames that are compared together. Equal frames that are not have numbers of their own."""


def equal_numbers(frames: FrameTable, rows: Int64, start: int, head: int = 0) -> Int64:
    """Return a number for each frame of the table, by its bytes from offset `start` on and its first `head` bytes,
    `(n,)`."""
    found = np.full(len(rows), NO_NUMBER, np.int64)
    sizes = frames.size.values[rows].astype(np.int64)
    short = np.flatnonzero((sizes > start) & (sizes <= LONGEST))
    first = 0
    for step in np.split(short, cuts(sizes[short], COPIED_TOGETHER)):
        addresses, _owner = frames.pointers(rows[step])
        in_pieces = np.flatnonzero(frames.contiguous(rows[step]) < NOWHERE)
        if len(in_pieces):
            memory, whole = frames.joined(rows[step[in_pieces]])
            starts = np.where(whole > 0, memory.ctypes.data + np.cumsum(whole) - whole, 0)
            addresses[in_pieces] = starts.astype(np.uint64)
        some = step[addresses > 0]
        pieces = addresses[addresses > 0][:, None] + np.array([0, start], np.uint64)
        lengths = np.stack([np.full(len(some), head), sizes[some] - start], axis=1)
        copied = join(pieces.ravel(), lengths.ravel())
        numbers, firsts = numbered(copied, np.cumsum(lengths.sum(axis=1)), np.zeros(len(some), np.uint8))
        found[some] = first + numbers
        first += len(firsts)
    return found
