"""The bytes of rows as they were on the wire, to be searched. Never show them: secrets are not masked. No frame is
decoded.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import NO_FRAME, ExchangeTable
from dissector.index.frame_table import FrameTable
from dissector.protocol.kernel.json_messages import join

COPIED_TOGETHER: Final = 1 << 22
"""Bytes of frames that are copied at once, unless a row has more."""


def raw_frames(table: ExchangeTable, frames: FrameTable, rows: Int64) -> Iterator[tuple[bytes, bytes]]:
    """Return the request and the response of each row of the index; empty bytes where there is none."""
    sides = np.stack([table.request.values[rows], table.response.values[rows]])
    sizes = np.zeros(sides.shape, np.int64)
    sizes[sides != NO_FRAME] = frames.size.values[sides[sides != NO_FRAME]]
    edges = np.flatnonzero(np.diff(np.cumsum(sizes.sum(axis=0)) // COPIED_TOGETHER)) + 1
    for some, their_sizes in zip(np.split(sides, edges, axis=1), np.split(sizes, edges, axis=1), strict=True):
        yield from zip(*map(_copies, (frames, frames), some, their_sizes), strict=True)


def _copies(frames: FrameTable, rows: Int64, sizes: Int64) -> list[bytes]:
    """The bytes of frames, those in one piece copied at once."""
    found = [b""] * len(rows)
    there = np.flatnonzero(sizes)
    addresses, _owner = frames.pointers(rows[there])
    in_one = there[addresses > 0]
    copied = join(addresses[addresses > 0], sizes[in_one]).tobytes()
    ends = np.cumsum(sizes[in_one])
    for at, start, end in zip(in_one.tolist(), (ends - sizes[in_one]).tolist(), ends.tolist(), strict=True):
        found[at] = copied[start:end]
    for at in there[addresses == 0].tolist():
        found[at] = frames.read(int(rows[at]))[0]
    return found
