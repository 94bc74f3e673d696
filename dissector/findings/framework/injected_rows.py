"""Which rows a proxy interfered with, and which it may have kept waiting or left without a response.

This is where findings about causes are kept from blaming a broker for a fault that was injected: examiners do not get
these rows.
"""

from collections.abc import Callable, Iterator

import numpy as np

from dissector.capture.injection_notes import InjectionNote
from dissector.core.arrays import Bool
from dissector.core.batches import NEVER
from dissector.core.columns import is_in, unique
from dissector.exchange.decoder import ExchangeDecoder
from dissector.findings.framework.examined_rows import ExaminedRows
from dissector.index.exchange_table import NO_FRAME
from dissector.index.injections import Injections


class InjectedRows:
    """Looks rows up by the client's end of their connections."""

    def __init__(self, injections: Injections, decoder: ExchangeDecoder, first_packet: Callable[[int], int]) -> None:
        self._injections = injections
        self._decoder = decoder
        self._first_packet = first_packet
        """That of a connection."""

    def notes(self, rows: ExaminedRows) -> Iterator[tuple[int, InjectionNote]]:
        """Yield the rows that were interfered with, and by what."""
        for at, client, first, last in self._of_clients(rows):
            note = self._injections.of(client, int(rows.correlation_id[at]), first, last)
            if note is not None:
                yield int(rows.row[at]), note

    def left_alone(self, rows: ExaminedRows) -> ExaminedRows:
        """Return the rows that were not interfered with themselves: what their messages say is their senders'."""
        return rows.where(~is_in(rows.row, np.array([row for row, _ in self.notes(rows)], np.int64)))

    def untouched(self, rows: ExaminedRows) -> ExaminedRows:
        """Return the rows to which nothing was done, and which nothing kept waiting."""
        if not self._injections:
            return rows
        is_touched: Bool = np.zeros(len(rows.row), np.bool_)
        for at, client, first, last in self._of_clients(rows):
            is_touched[at] = (
                self._injections.touches(client, first, last)
                or self._injections.closed(client, self._first_packet(int(rows.connection[at])), first)
                or self._injections.of(client, int(rows.correlation_id[at]), first, last) is not None
            )
        return rows.where(~is_touched) if is_touched.any() else rows

    def _of_clients(self, rows: ExaminedRows) -> Iterator[tuple[int, str, int, int]]:
        """Yield the places of rows with a request whose client has notes: its end, and the packets with which request
        and response begin."""
        if not self._injections:
            return
        ends = {each: self._decoder.ends(each)[0] for each in unique(rows.connection).tolist()}
        noted = np.array([each for each, end in ends.items() if self._injections.has(end)], np.int64)
        for at in np.flatnonzero(np.isin(rows.connection, noted) & (rows.request != NO_FRAME)).tolist():
            last = int(rows.response_packet[at]) if rows.response[at] != NO_FRAME else NEVER
            yield at, ends[int(rows.connection[at])], int(rows.request_packet[at]), last
