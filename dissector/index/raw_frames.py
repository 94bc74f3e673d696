"""The bytes of rows as they were on the wire, to be searched. Never show them: secrets are not masked. No frame is
decoded.
"""

from collections.abc import Iterator

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.store import Store
from dissector.index.exchange_table import NO_FRAME, ExchangeTable
from dissector.index.frame_table import FrameTable


def raw_frames(table: ExchangeTable, frames: FrameTable, store: Store, rows: Int64) -> Iterator[tuple[bytes, bytes]]:
    """Return the request and the response of each row of the index; empty bytes where there is none."""
    sides = []
    for column in (table.request, table.response):
        found = column.values[rows]
        at = np.maximum(found, 0)
        there = found != NO_FRAME
        if len(frames):
            address = np.where(there, frames.contiguous(at), 0)
            size = np.where(there, frames.size.values[at], 0)
        else:
            address = size = np.zeros(len(rows), np.int64)
        sides.append((found.tolist(), address.tolist(), size.tolist()))
    for request, response in zip(zip(*sides[0], strict=True), zip(*sides[1], strict=True), strict=True):
        yield _bytes(*request, frames, store), _bytes(*response, frames, store)


def _bytes(frame: int, address: int, size: int, frames: FrameTable, store: Store) -> bytes:
    if not size:
        return b""
    return bytes(store.read(address, size)) if address >= 0 else frames.read(frame)[0]
