"""Which connections may have secrets: on these, bytes that can't be read may be a password.

A connection is known to have none from its first request on, if the capture has its beginning, and its first request
besides ApiVersions was read to its end and is not one that logs in or has other secrets: a broker takes no other
request before a login. Until then, and from the first request on that has secrets, it may have some.

Invariant: a row's answer depends only on frames that the client sent before it or with it. So it is the same in files
that are read whole and in ones that grow.
"""

from functools import cache
from typing import Final, Protocol

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, RowKind
from dissector.index.frame_table import FrameTable
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.secrets import may_hold_secrets, names_metadata_log
from dissector.protocol.message import read, request_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import apis

ROWS_PER_STEP: Final = 1 << 16
NEVER: Final = 1 << 62


class Opened(Protocol):
    """The connections of a capture."""

    def syn_side(self, connection: int) -> int:
        """The side that opened the connection, -1 where the capture did not see it."""


class Secrecy:
    """By connection, the packets in which it may have secrets. Grows as the capture is read."""

    def __init__(self, frames: FrameTable, table: ExchangeTable, connections: Opened) -> None:
        self._frames = frames
        self._table = table
        self._connections = connections
        self._harmless_from: dict[int, int] = {}
        """Of connections whose first request was seen; `NEVER` where it was not captured, or can't be read."""
        self._secret_from: dict[int, int] = {}
        """The packet of the first request with secrets, of connections that have one."""
        self._read_to: dict[int, int] = {}
        """Of connections that have sent nothing but ApiVersions: the end of these in the client's stream."""
        self._rows = 0

    def may_have_secrets(self, connection: int, packet: int) -> bool:
        """Whether what can't be read in that packet may be a secret."""
        return packet < self._harmless_from.get(connection, NEVER) or self.has_secrets(connection, packet)

    def has_secrets(self, connection: int, packet: int) -> bool:
        """Whether a request with secrets was sent up to that packet."""
        return packet >= self._secret_from.get(connection, NEVER)

    def update(self) -> None:
        """Look at the rows that have come since the last update."""
        table = self._table
        first, self._rows = self._rows, len(table)
        for start in range(first, self._rows, ROWS_PER_STEP):
            step = slice(start, min(start + ROWS_PER_STEP, self._rows))
            connection, is_sent = table.connection.values[step], table.request.values[step] != NO_FRAME
            new = np.array([each for each in np.unique(connection).tolist() if each not in self._harmless_from])
            self._look_at_first(start + np.flatnonzero(np.isin(connection, new) & is_sent))
            is_token = table.kind.values[step] == RowKind.SASL
            has_secrets = is_sent & np.isin(table.api_key.values[step], sorted(secret_keys()))
            self._look_at_secret(start + np.flatnonzero(has_secrets | is_token))

    def retain(self, connections: set[int]) -> None:
        """Get ready for a checkpoint: forget other connections."""
        for known in (self._harmless_from, self._secret_from, self._read_to):
            for connection in known.keys() - connections:
                del known[connection]

    def restart_search(self) -> None:
        """Search all rows again at the next update, as they have changed their numbers."""
        self._rows = 0
        self._read_to.clear()

    def _look_at_secret(self, rows: Int64) -> None:
        table = self._table
        connections, packets = table.connection.values[rows].tolist(), table.packet.values[rows].tolist()
        for connection, packet in zip(connections, packets, strict=True):
            self._secret_from[connection] = min(packet, self._secret_from.get(connection, NEVER))

    def _look_at_first(self, rows: Int64) -> None:
        """Go through the client's frames, and what is between them, of connections whose first request is not known."""
        table, frames = self._table, self._frames
        start = frames.start.values[table.request.values[rows]]
        for row in rows[np.lexsort((start, table.connection.values[rows]))].tolist():
            connection = int(table.connection.values[row])
            if connection not in self._harmless_from:
                self._look_at(row, connection)

    def _look_at(self, row: int, connection: int) -> None:
        table, frames = self._table, self._frames
        frame = int(table.request.values[row])
        expected = self._read_to.get(connection, 0)
        is_next = int(frames.start.values[frame]) == expected and self._connections.syn_side(connection) >= 0
        if not is_next or not self._is_harmless(row, frame):
            self._harmless_from[connection] = NEVER
        elif table.api_key.values[row] == ApiKey.API_VERSIONS:
            self._read_to[connection] = expected + int(frames.size.values[frame])
        else:
            self._harmless_from[connection] = int(table.packet.values[row])

    def _is_harmless(self, row: int, frame: int) -> bool:
        """Whether a row is a request without secrets that is there from its first byte to its last, and no more."""
        table = self._table
        key, version = int(table.api_key.values[row]), int(table.version.values[row])
        if table.kind.values[row] != RowKind.EXCHANGE or key in secret_keys():
            return False
        data, whole = self._frames.read(frame)
        if not whole == len(data) == int(self._frames.size.values[frame]) or names_metadata_log(data):
            return False
        layout = request_layout(key, version, data)
        found = read(data, layout)
        return layout.body is not None and layout.unread is None and not found.rest and not found.findings


@cache
def secret_keys() -> frozenset[int]:
    """The keys of APIs that have secrets, in a request or in a response; of records only the metadata log has some."""
    names = {each.key: (each.request, each.response) for each in apis()}
    keys = (key for key, both in names.items() if any(may_hold_secrets(name, b"", EMPTY_CONTEXT) for name in both))
    return frozenset((*keys, ApiKey.SASL_HANDSHAKE))
