"""The index of a capture as columns: a row for each exchange, gap, or stretch of bytes without frames.

A row costs 40 bytes besides its two frames; no body is decoded. Rows are in the order in which they were complete;
`sort_rows`, at the end of the capture, brings them in the order in which they began. Those of each connection are found
without a scan of all (`RowsByConnection`): rows are sorted once, and new ones when they have come, at eight bytes for
each row.
"""

from collections.abc import Iterator
from enum import IntEnum, IntFlag
from math import isqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import Column
from dissector.index.frame_table import FrameTable

NO_FRAME: Final = -1
NEW_ROWS: Final = 4_096
"""Rows that are sorted apart from older ones, at least, when there are more."""
SORT_STEP: Final = 65_536
"""Rows that are sorted at once; more where rows are farther from their place."""


class RowKind(IntEnum):
    """What a row is."""

    EXCHANGE = 0
    GAP = 1
    UNPARSED = 2
    TLS = 3
    SASL = 4
    """A raw SASL token, after SaslHandshake version 0."""


KIND_NAMES: Final = [kind.name.lower() for kind in RowKind]
"""Names of kinds by their numbers, as users see them."""


class Flag(IntFlag):
    """What is known about a row without decoding it."""

    NO_RESPONSE_EXPECTED = 1
    """Produce with acks=0."""


class ExchangeTable:
    """Growing columns. A row is an exchange, or one of the other `RowKind`s."""

    def __init__(self) -> None:
        self.kind = Column(np.uint8)
        self.connection = Column(np.int32)
        self.packet = Column(np.int64)
        self.request = Column(np.int32, NO_FRAME)
        """Row in the frame table. Gaps and unparsed bytes are here or in `response`, by their direction."""
        self.response = Column(np.int32, NO_FRAME)
        self.api_key = Column(np.int16)
        self.version = Column(np.int16)
        self.correlation_id = Column(np.int32)
        self.client_id = Column(np.int32)
        self.flags = Column(np.uint8)
        self._kept: Int64 = np.zeros(0, np.int64)
        """Rows before `_first` that a checkpoint retained."""
        self._first = 0
        self._number_before = Column(np.int32)
        """The number that each row had before `sort_rows`; rows behind the end of the column kept theirs."""
        self.changes = 0
        """How often rows got other numbers, or went."""

    @property
    def _columns(self) -> tuple[Column, ...]:
        return (
            self.kind, self.connection, self.packet, self.request, self.response,
            self.api_key, self.version, self.correlation_id, self.client_id, self.flags,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.flags)

    def rows(self) -> Int64:
        """The rows that exist, ascending: all, except after a checkpoint."""
        return np.concatenate([self._kept, np.arange(self._first, len(self))])

    def has_request(self, rows: Int64) -> Bool:
        """Which rows are exchanges whose request was captured, `(n,)`."""
        found: Bool = (self.kind.values[rows] == RowKind.EXCHANGE) & (self.request.values[rows] != NO_FRAME)
        return found

    def retain(self, rows: Int64) -> None:
        """Get ready for a checkpoint that has only these rows, ascending. Their numbers stay."""
        self._kept, self._first = rows, len(self)
        self.changes += 1
        for column in self._columns:
            column.keep(rows)

    def add(self, connection: Int64, packet: Int64, **columns: npt.ArrayLike) -> int:
        """Append rows, with defaults in columns that are not given; return the number of the first row."""
        first = len(self)
        end = first + len(connection)
        columns |= {"connection": connection, "packet": packet}
        for name, values in columns.items():
            if name != "flags":
                getattr(self, name).extend(values)
        for column in self._columns[:-1]:
            column.grow(end)
        self.flags.extend(columns.get("flags", np.zeros(len(connection), np.uint8)))
        return first

    def set_responses(self, rows: Int64, responses: Int64) -> None:
        """Set the response frames of exchanges."""
        self.response.values[rows] = responses

    def sort_rows(self, starts: Column) -> None:
        """Sort rows by first packet, and within a packet by the stream offset of the first frame; `starts` has those of
        all frames. Most rows are in order already, and the others not far from their place."""
        self.changes += 1
        for rows in self._sortable_slices():
            request, response = self.request.values[rows], self.response.values[rows]
            first = np.where(request >= 0, request, response)
            start = np.where(first >= 0, starts.values[np.maximum(first, 0)], 0) if len(starts) else first
            order = np.lexsort((start, self.packet.values[rows]))
            if (np.diff(order) != 1).any():
                self._number_before.extend(np.arange(len(self._number_before), rows.start))
                self._number_before.extend(rows.start + order)
                for column in self._columns:
                    column.values[rows] = column.values[rows][order]
            for column in (*self._columns, starts, self._number_before):
                column.release_pages()

    def rows_after_sort(self, rows: Int64) -> Int64:
        """Return the numbers that rows have since `sort_rows`, of rows as they were numbered before."""
        before = self._number_before.values
        after = np.empty(len(before), np.int32)
        after[before] = np.arange(len(before), dtype=np.int32)
        found = rows.copy()
        sorted_rows = rows < len(before)
        found[sorted_rows] = after[rows[sorted_rows]]
        return found

    def _sortable_slices(self) -> Iterator[slice]:
        """Slices of rows, each of earlier packets than the next: they can be sorted one by one."""
        packet = self.packet.values
        begins = range(0, len(packet), SORT_STEP)
        least = np.array([packet[at : at + SORT_STEP].min() for at in begins], np.int64)
        later = np.append(np.minimum.accumulate(least[::-1])[::-1], np.iinfo(np.int64).max)
        most, low = -1, 0
        for number, at in enumerate(begins):
            part = packet[at : at + SORT_STEP]
            upto = np.maximum.accumulate(np.concatenate([[most], part]))
            after = np.minimum(np.minimum.accumulate(part[::-1])[::-1], later[number + 1])
            cuts = np.flatnonzero(upto[:-1] < after)
            if len(cuts) and at + cuts[0] > low:
                yield slice(low, at + int(cuts[0]))
                low = at + int(cuts[0])
            most = int(upto[-1])
        yield slice(low, len(packet))


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


class _ConnectionRows(NamedTuple):
    """Rows by connection, and by number within each."""

    rows: npt.NDArray[np.int32]
    connections: npt.NDArray[np.int32]

    @classmethod
    def of(cls, table: ExchangeTable, rows: Int64) -> "_ConnectionRows":
        connections = table.connection.values[rows]
        order = np.argsort(connections, kind="stable")
        return cls(rows[order].astype(np.int32), connections[order].astype(np.int32))

    def of_connection(self, connection: int) -> Int64:
        start, stop = np.searchsorted(self.connections, np.array([connection, connection + 1], np.int32))
        return self.rows[start:stop].astype(np.int64)


class RowsByConnection:
    """The rows of a table by connection. When `generation` has changed those that are new are sorted, and all of them
    now and then: a capture that grows for a day is not sorted from its beginning at each step."""

    def __init__(self, table: ExchangeTable) -> None:
        self._table = table
        self._generation = -1
        self._changes = -1
        self._end = 0
        """Rows from here on are new."""
        self._sorted = self._new = _ConnectionRows.of(table, np.zeros(0, np.int64))
        self._repeated: dict[int, frozenset[int]] = {}

    def rows(self, connection: int, generation: int) -> Int64:
        """Return the rows of a connection, ascending."""
        if generation != self._generation:
            self._generation = generation
            self._repeated.clear()
            self._sort()
        found = self._sorted.of_connection(connection)
        return np.concatenate([found, self._new.of_connection(connection)]) if len(self._new.rows) else found

    def _sort(self) -> None:
        """Sort what is new."""
        table, end = self._table, len(self._table)
        if table.changes != self._changes or end - self._end > NEW_ROWS + isqrt(end) * 16:
            self._changes, self._end = table.changes, end
            self._sorted = _ConnectionRows.of(table, table.rows())
        self._new = _ConnectionRows.of(table, np.arange(self._end, end))

    def repeated_ids(self, connection: int, generation: int) -> frozenset[int]:
        """Return the correlation ids of more than one request of a connection."""
        if generation != self._generation or connection not in self._repeated:
            rows = self.rows(connection, generation)
            table = self._table
            has_request = table.has_request(rows)
            ids, counts = np.unique(table.correlation_id.values[rows[has_request]], return_counts=True)
            self._repeated[connection] = frozenset(ids[counts > 1].tolist())
        return self._repeated[connection]
