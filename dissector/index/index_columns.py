"""Chosen rows of the index as numbers: to count, filter and sort by, without decoding a frame.

Invariant: a column equals the row field of each decoded exchange, except for what the index alone does not know: the
API of a response whose request is missing.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, Flag, RowKind
from dissector.index.frame_table import FrameTable

ENTRY: Final = -1
"""The kind of an entry of one of Kafka's own files."""


class IndexColumns(NamedTuple):
    """Columns of the chosen rows, `(n,)` each."""

    kind: Int64
    """A `RowKind`, or `ENTRY`."""
    connection: Int64
    """As `ExchangeRow.connection` counts them."""
    api_key: Int64
    """-1 where there is no request, as in `version`."""
    version: Int64
    correlation_id: Int64
    client_id: Int64
    """A number whose text `ExchangeIndex.client_id` returns; 0 is null."""
    flags: Int64
    request_size: Int64
    """Bytes of the frame, -1 where there is none, as in `response_size`."""
    response_size: Int64
    request_time_ns: Int64
    """Of the first byte; 0 where there is no frame, as in `response_time_ns`."""
    response_time_ns: Int64
    request_transfer_ns: Int64
    """From the first byte to the last one; 0 where there is no frame, as in `response_transfer_ns`."""
    response_transfer_ns: Int64

    @property
    def latency_ns(self) -> Int64:
        """What the client waits: from the first byte of the request to the last one of the response; 0 where
        `has_latency` is not set. It is the sum of `request_transfer_ns`, `wait_ns` and `response_transfer_ns`."""
        end_ns = self.response_time_ns + self.response_transfer_ns
        latency: Int64 = np.where(self.has_latency, end_ns - self.request_time_ns, 0)
        return latency

    @property
    def wait_ns(self) -> Int64:
        """From the last byte of the request to the first one of the response; 0 where `has_latency` is not set."""
        sent_ns = self.request_time_ns + self.request_transfer_ns
        wait: Int64 = np.where(self.has_latency, self.response_time_ns - sent_ns, 0)
        return wait

    @property
    def is_exchange(self) -> Bool:
        """Which rows are exchanges, or one side of one."""
        are: Bool = self.kind == RowKind.EXCHANGE
        return are

    @property
    def has_latency(self) -> Bool:
        """Which rows are exchanges with both sides."""
        paired: Bool = self.is_exchange & (self.request_size >= 0) & (self.response_size >= 0)
        return paired

    @property
    def expects_response(self) -> Bool:
        """Which requests a response is to come to."""
        expects: Bool = (self.api_key >= 0) & (self.flags & Flag.NO_RESPONSE_EXPECTED == 0)
        return expects

    def where(self, chosen: Bool | Int64) -> "IndexColumns":
        """Some of the rows: where a mask is set, or at some places."""
        return IndexColumns(*(column[chosen] for column in self))


def index_columns(table: ExchangeTable, frames: FrameTable, rows: Int64) -> IndexColumns:
    """Return the columns of these rows of the index, from 0."""
    sides = [column.values[rows].astype(np.int64) for column in (table.request, table.response)]
    there = [side != NO_FRAME for side in sides]
    sizes, times, transfers = [], [], []
    for side, known in zip(sides, there, strict=True):
        size, time, transfer = np.full(len(rows), -1, np.int64), *np.zeros((2, len(rows)), np.int64)
        size[known], time[known] = frames.size.values[side[known]], frames.time_ns.values[side[known]]
        transfer[known] = frames.transfer_ns(side[known])
        sizes.append(size)
        times.append(time)
        transfers.append(transfer)
    kind, connection, key, version, correlation_id, client, flags = (
        column.values[rows].astype(np.int64)
        for column in (
            table.kind, table.connection, table.api_key, table.version, table.correlation_id, table.client_id,
            table.flags,
        )
    )  # fmt: skip
    return IndexColumns(
        kind, connection + 1, np.where(there[0], key, -1), np.where(there[0], version, -1), correlation_id,
        client, flags, *sizes, *times, *transfers,
    )  # fmt: skip
