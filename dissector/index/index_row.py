"""A row of the index as plain numbers, read many at a time from the columns."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import NO_FRAME, ExchangeTable
from dissector.index.frame_table import FrameTable


class IndexRow(NamedTuple):
    """The columns of `ExchangeTable`, and what the frame table has of the two frames: zeros where there is none."""

    kind: int
    connection: int
    packet: int
    request: int
    response: int
    api_key: int
    version: int
    correlation_id: int
    client_id: int
    flags: int
    request_time_ns: int
    response_time_ns: int
    request_address: int
    response_address: int
    """In the store, of a frame in one piece; negative for others."""
    request_size: int
    response_size: int
    request_transfer_ns: int
    response_transfer_ns: int

    @property
    def has_frames(self) -> bool:
        """Whether it has a request or a response."""
        return self.request != NO_FRAME or self.response != NO_FRAME


_OF_TABLE = IndexRow._fields[: IndexRow._fields.index("request_time_ns")]


def read_index_rows(table: ExchangeTable, frames: FrameTable, rows: range | Int64) -> Iterator[IndexRow]:
    """Return these rows: a range, or numbers."""
    at = slice(rows.start, rows.stop) if isinstance(rows, range) else rows
    columns = [getattr(table, name).values[at] for name in _OF_TABLE]
    pair = table.request.values[at], table.response.values[at]
    present = [each != NO_FRAME for each in pair]
    for values in (frames.time_ns.values, frames.contiguous, frames.size.values, frames.transfer_ns):
        for side, there in zip(pair, present, strict=True):
            found = np.zeros(len(side), np.int64)
            found[there] = values(side[there]) if callable(values) else values[side[there]]
            columns.append(found)
    return map(IndexRow._make, zip(*(column.tolist() for column in columns), strict=True))
