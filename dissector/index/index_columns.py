"""What the index says of chosen rows as numbers: columns to count, filter and sort by, without decoding a frame.

Invariant: a column has what the facts of each exchange say, as far as the index alone can tell: the API of a response
without its request is not among that.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dissector.index.exchange_table import NO_FRAME, ExchangeTable, Ints, RowKind
from dissector.index.frame_table import FrameTable

ENTRY: Final = -1
"""The kind of an entry of a file of Kafka's."""


class IndexColumns(NamedTuple):
    """Columns beside the rows asked for, `(n,)` each."""

    kind: Ints
    """A `RowKind`, or `ENTRY`."""
    connection: Ints
    """As `Row.connection` counts them."""
    api_key: Ints
    """-1 where there is no request; so is `version`."""
    version: Ints
    client_id: Ints
    """A number that `Capture.client_id` knows the text of; 0 is null."""
    flags: Ints
    asked_size: Ints
    """Bytes of the request's frame, -1 where it is not there; `answered_size` of the response's."""
    answered_size: Ints
    asked_ns: Ints
    """Time of the request, 0 where it is not there; `answered_ns` of the response."""
    answered_ns: Ints

    @property
    def latency_ns(self) -> Ints:
        """From request to response; 0 where not both sides of an exchange are there."""
        latency: Ints = np.where(self.has_latency, self.answered_ns - self.asked_ns, 0)
        return latency

    @property
    def is_exchange(self) -> npt.NDArray[np.bool_]:
        """Whether each row is an exchange, or one side of one."""
        are: npt.NDArray[np.bool_] = self.kind == RowKind.EXCHANGE
        return are

    @property
    def has_latency(self) -> npt.NDArray[np.bool_]:
        """Whether each row has both sides."""
        paired: npt.NDArray[np.bool_] = self.is_exchange & (self.asked_size >= 0) & (self.answered_size >= 0)
        return paired

    def where(self, which: npt.NDArray[np.bool_]) -> "IndexColumns":
        """Some of the rows."""
        return IndexColumns(*(column[which] for column in self))


def index_columns(table: ExchangeTable, frames: FrameTable, rows: Ints) -> IndexColumns:
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
