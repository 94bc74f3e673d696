"""What the index says of chosen rows as numbers: columns to count, filter and sort by, without decoding a frame.

Invariant: a column has what the facts of each exchange say, as far as the index alone can tell: the API of a response
without its request is not among that.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, RowKind
from dissector.index.frame_table import FrameTable

ENTRY: Final = -1
"""The kind of an entry of a file of Kafka's."""


class IndexColumns(NamedTuple):
    """Columns beside the rows asked for, `(n,)` each."""

    kind: Int64
    """A `RowKind`, or `ENTRY`."""
    connection: Int64
    """As `Row.connection` counts them."""
    api_key: Int64
    """-1 where there is no request; so is `version`."""
    version: Int64
    client_id: Int64
    """A number that `Capture.client_id` knows the text of; 0 is null."""
    flags: Int64
    asked_size: Int64
    """Bytes of the request's frame, -1 where it is not there; `answered_size` of the response's."""
    answered_size: Int64
    asked_ns: Int64
    """Time of the request, 0 where it is not there; `answered_ns` of the response."""
    answered_ns: Int64

    @property
    def latency_ns(self) -> Int64:
        """From request to response; 0 where not both sides of an exchange are there."""
        latency: Int64 = np.where(self.has_latency, self.answered_ns - self.asked_ns, 0)
        return latency

    @property
    def is_exchange(self) -> Bool:
        """Whether each row is an exchange, or one side of one."""
        are: Bool = self.kind == RowKind.EXCHANGE
        return are

    @property
    def has_latency(self) -> Bool:
        """Whether each row has both sides."""
        paired: Bool = self.is_exchange & (self.asked_size >= 0) & (self.answered_size >= 0)
        return paired

    def where(self, which: Bool) -> "IndexColumns":
        """Some of the rows."""
        return IndexColumns(*(column[which] for column in self))


def index_columns(table: ExchangeTable, frames: FrameTable, rows: Int64) -> IndexColumns:
    """The columns of these rows of the index, from 0."""
    sides = [column.values[rows].astype(np.int64) for column in (table.request, table.response)]
    there = [side != NO_FRAME for side in sides]
    sizes, times = [], []
    for side, known in zip(sides, there, strict=True):
        size, time = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64)
        size[known], time[known] = frames.size.values[side[known]], frames.time_ns.values[side[known]]
        sizes.append(size)
        times.append(time)
    kind, connection, key, version, client, flags = (
        column.values[rows].astype(np.int64)
        for column in (table.kind, table.connection, table.api_key, table.version, table.client_id, table.flags)
    )
    return IndexColumns(
        kind, connection + 1, np.where(there[0], key, -1), np.where(there[0], version, -1), client, flags,
        *sizes, *times,
    )  # fmt: skip
