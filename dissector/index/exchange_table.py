"""The index of a capture: one row an exchange (or a gap, or bytes that could not be framed), as columns.

A row costs 40 bytes beside its two frames; bodies are not decoded here. Rows are in the order in which they began, once
`settle` has been called at the end of the capture; before that in the order in which they were complete.
"""

from collections.abc import Iterator
from enum import IntEnum, IntFlag
from typing import Final

import numpy as np
import numpy.typing as npt

from dissector.core.arrays import Int64
from dissector.core.columns import Column

NO_FRAME: Final = -1
STRETCH: Final = 65_536
"""Rows that are sorted together, or more where rows belong farther away."""


class RowKind(IntEnum):
    """What a row is."""

    EXCHANGE = 0
    GAP = 1
    UNPARSED = 2
    TLS = 3
    SASL = 4
    """A login's token without a header, after SaslHandshake version 0."""


KIND_NAMES: Final = [kind.name.lower() for kind in RowKind]
"""Names of kinds by their numbers, as users see them."""


class Flag(IntFlag):
    """What is known of a row without decoding it."""

    NO_RESPONSE_EXPECTED = 1
    """Produce with acks=0."""


class ExchangeTable:
    """Growing columns, one row an exchange."""

    def __init__(self) -> None:
        self.kind = Column(np.uint8)
        self.connection = Column(np.int32)
        self.packet = Column(np.int64)
        self.request = Column(np.int32, NO_FRAME)
        """Row in the frame table. A gap, or unparsed bytes, stand here or in `response`, by their direction."""
        self.response = Column(np.int32, NO_FRAME)
        self.api_key = Column(np.int16)
        self.version = Column(np.int16)
        self.correlation_id = Column(np.int32)
        self.client_id = Column(np.int32)
        self.flags = Column(np.uint8)
        self._kept: Int64 = np.zeros(0, np.int64)
        """Rows before `_first` that are there still."""
        self._first = 0
        self._stood = Column(np.int32)
        """Where each row stood before `settle`; rows behind its end have kept their places."""

    @property
    def _columns(self) -> tuple[Column, ...]:
        return (
            self.kind, self.connection, self.packet, self.request, self.response,
            self.api_key, self.version, self.correlation_id, self.client_id, self.flags,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.flags)

    def rows(self) -> Int64:
        """The rows that are there, ascending."""
        return np.concatenate([self._kept, np.arange(self._first, len(self))])

    def retain(self, rows: Int64) -> None:
        """These rows alone, ascending, are there where the table is unpickled; their numbers stay."""
        self._kept, self._first = rows, len(self)
        for column in self._columns:
            column.keep(rows)

    def add(self, connection: Int64, packet: Int64, **columns: npt.ArrayLike) -> int:
        """Append rows; columns that are not named hold their default. The number of the first row."""
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

    def answer(self, rows: Int64, responses: Int64) -> None:
        """Enter the responses of exchanges."""
        self.response.values[rows] = responses

    def sort_rows(self, starts: Column) -> None:
        """Bring the rows in the order in which they began: by packet, and within one by stream offset, which `starts`
        has for every frame. Most are in order already, and the others not far from where they belong."""
        for rows in self._stretches():
            request, response = self.request.values[rows], self.response.values[rows]
            first = np.where(request >= 0, request, response)
            start = np.where(first >= 0, starts.values[np.maximum(first, 0)], 0) if len(starts) else first
            order = np.lexsort((start, self.packet.values[rows]))
            if (np.diff(order) != 1).any():
                self._stood.extend(np.arange(len(self._stood), rows.start))
                self._stood.extend(rows.start + order)
                for column in self._columns:
                    column.values[rows] = column.values[rows][order]
            for column in (*self._columns, starts, self._stood):
                column.release_pages()

    def rows_after_sort(self, rows: Int64) -> Int64:
        """Where rows are after `settle` that were at `rows` before it."""
        stood = self._stood.values
        now = np.empty(len(stood), np.int32)
        now[stood] = np.arange(len(stood), dtype=np.int32)
        found = rows.copy()
        inside = rows < len(stood)
        found[inside] = now[rows[inside]]
        return found

    def _stretches(self) -> Iterator[slice]:
        """Stretches of rows of which each is wholly of earlier packets than the next: they can be sorted one by one."""
        packet = self.packet.values
        begins = range(0, len(packet), STRETCH)
        least = np.array([packet[at : at + STRETCH].min() for at in begins], np.int64)
        later = np.append(np.minimum.accumulate(least[::-1])[::-1], np.iinfo(np.int64).max)
        most, low = -1, 0
        for number, at in enumerate(begins):
            part = packet[at : at + STRETCH]
            upto = np.maximum.accumulate(np.concatenate([[most], part]))
            after = np.minimum(np.minimum.accumulate(part[::-1])[::-1], later[number + 1])
            cuts = np.flatnonzero(upto[:-1] < after)
            if len(cuts) and at + cuts[0] > low:
                yield slice(low, at + int(cuts[0]))
                low = at + int(cuts[0])
            most = int(upto[-1])
        yield slice(low, len(packet))
