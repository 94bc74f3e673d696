"""Which connections may have secrets: on these, bytes that can't be read may be a password.

A connection is known to have none from its first request on, if the capture has its beginning, and its first request
besides ApiVersions was read to its end and is not one that logs in or has other secrets: a broker takes no other
request before a login. Until then it may have some, and so may the response to that request, which shows whether it
was this one. So may all of a connection that sends a request with secrets anywhere, as damage puts bytes of one message
into frames that began before it.

Of messages that are there in part, the fields before the cut are shown behind such a first request of any connection
without secrets, even if the capture lacks its beginning or has the request in part. Elsewhere they may be bytes of a
login: a size prefix that is wrong makes one message of several, and then nothing shows where the next one begins.

Invariant: an answer depends on the frames of the connection's client alone, and not on how the capture was cut into
batches.
"""

from functools import cache, lru_cache
from typing import Final, NamedTuple, Protocol

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, RowKind
from dissector.index.frame_table import FrameTable
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.secrets import may_hold_secrets, may_name_metadata_log, names_metadata_log
from dissector.protocol.masking import is_sound
from dissector.protocol.message import read, request_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import apis

ROWS_PER_STEP: Final = 1 << 16
OF_QUORUM: Final = (ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.UPDATE_RAFT_VOTER)
"""What brokers and controllers send on connections on which they fetch the metadata log (KIP-595, KIP-853)."""
NEVER: Final = 1 << 62
LONGEST_KNOWN: Final = 512
"""Bytes of a request of which it is remembered whether it has secrets."""
REQUESTS_KNOWN: Final = 1 << 10
FEW: Final = 4
"""Frames of a client that are looked at before its others."""
ID_AT: Final = 8
"""Where the correlation id is in a request."""


class Opened(Protocol):
    """The connections of a capture."""

    def syn_side(self, connection: int) -> int:
        """The side that opened the connection, -1 where the capture did not see it."""

    def first_packet(self, connection: int) -> int:
        """The number of its first packet."""


class Secrecy:
    """By connection, the packets in which it may have secrets. Grows as the capture is read."""

    def __init__(self, frames: FrameTable, table: ExchangeTable, connections: Opened) -> None:
        self._frames = frames
        self._table = table
        self._connections = connections
        self._harmless_from: dict[int, int] = {}
        """Of connections whose first request was seen; `NEVER` where it was not captured, or can't be read."""
        self._plain_behind: dict[int, int] = {}
        """The same if the capture may lack the beginning of the connection, or a part of the request."""
        self._with_secrets: set[int] = set()
        """Connections that have sent a request with secrets."""
        self._read_to: dict[int, int] = {}
        """Of connections that have sent nothing but ApiVersions: the end of these in the client's stream."""
        self._cut: set[int] = set()
        """Those of them of which an ApiVersions request is there in part."""
        self._rows = 0

    def may_have_secrets(self, connection: int, packet: int) -> bool:
        """Whether what can't be read in that packet may be a secret."""
        return packet < self._harmless_from.get(connection, NEVER) or self.has_secrets(connection)

    def may_cut_secrets(self, connection: int, packet: int) -> bool:
        """Whether a message in that packet that is there in part may have another one's secret in it."""
        return packet <= self._plain_behind.get(connection, NEVER) or self.has_secrets(connection)

    def has_secrets(self, connection: int) -> bool:
        """Whether a request with secrets was sent."""
        return connection in self._with_secrets

    def update(self) -> None:
        """Look at the rows that have come since the last update."""
        table = self._table
        first, self._rows = self._rows, len(table)
        for start in range(first, self._rows, ROWS_PER_STEP):
            step = slice(start, min(start + ROWS_PER_STEP, self._rows))
            connection, is_sent = table.connection.values[step], table.request.values[step] != NO_FRAME
            new = np.array(sorted(set(connection.tolist()) - self._harmless_from.keys()), np.int64)
            self._look_at_first(start + np.flatnonzero(np.isin(connection, new) & is_sent))
            is_token = table.kind.values[step] == RowKind.SASL
            has_secrets = is_sent & np.isin(table.api_key.values[step], sorted(secret_keys()))
            self._with_secrets.update(connection[has_secrets | is_token].tolist())

    def retain(self, connections: set[int]) -> None:
        """Get ready for a checkpoint: forget other connections."""
        self._with_secrets &= connections
        self._cut &= connections
        for known in (self._harmless_from, self._plain_behind, self._read_to):
            for connection in known.keys() - connections:
                del known[connection]

    def restart_search(self) -> None:
        """Search all rows again at the next update, as they have changed their numbers."""
        self._rows = 0
        self._read_to.clear()
        self._cut.clear()

    def _look_at_first(self, rows: Int64) -> None:
        """Go through the client's frames, and what is between them, of connections whose first request is not known."""
        table, frames = self._table, self._frames
        sent = table.request.values[rows]
        order = np.lexsort((frames.start.values[sent], table.connection.values[rows]))
        rows, sent = rows[order], sent[order]
        columns = (
            table.connection.values[rows], table.packet.values[rows], table.kind.values[rows],
            table.api_key.values[rows], table.version.values[rows], sent, frames.start.values[sent],
            frames.size.values[sent],
        )  # fmt: skip
        place = np.arange(len(rows)) - np.searchsorted(columns[0], columns[0])
        for some in (place < FEW, place >= FEW):  # the first ones nearly always tell
            some &= ~np.isin(columns[0], np.array([*self._harmless_from], np.int64))
            for each in map(_Sent._make, zip(*(column[some].tolist() for column in columns), strict=True)):
                if each.connection not in self._harmless_from:
                    self._look_at(each)

    def _look_at(self, sent: "_Sent") -> None:
        connection = sent.connection
        expected, is_opened = self._read_to.get(connection, 0), self._is_opened(sent)
        if not is_opened and sent.kind in (RowKind.GAP, RowKind.UNPARSED):
            return  # the rest of a message that was sent in part before the capture began
        is_next = not is_opened or sent.start == expected
        may_be_harmless = is_next and sent.kind == RowKind.EXCHANGE and sent.api_key not in secret_keys()
        data, whole = self._frames.read(sent.frame) if may_be_harmless else (b"", 0)
        if not may_be_harmless or not _is_harmless(sent, data, whole):
            self._harmless_from[connection] = self._plain_behind[connection] = NEVER
            return
        if len(data) < sent.size:
            self._cut.add(connection)
        if sent.api_key == ApiKey.API_VERSIONS:
            self._read_to[connection] = expected + sent.size
            return
        is_whole = is_opened and connection not in self._cut
        self._plain_behind[connection] = sent.packet
        self._harmless_from[connection] = sent.packet if is_whole else NEVER

    def _is_opened(self, sent: "_Sent") -> bool:
        """Whether the capture has the beginning of a connection. A SYN with data is more likely a damaged packet of one
        that is open."""
        has_syn = self._connections.syn_side(sent.connection) >= 0
        return has_syn and sent.packet != self._connections.first_packet(sent.connection)


class _Sent(NamedTuple):
    """A frame of a client, or what is between two."""

    connection: int
    packet: int
    kind: int
    api_key: int
    version: int
    frame: int
    start: int
    size: int


def _is_harmless(sent: _Sent, data: bytes, whole: int) -> bool:
    """Whether these bytes, of which so many are in front of the first gap, are a request of an API without secrets, and
    no more;
    of one that is there in part, whether its header is one."""
    if whole == len(data) == sent.size <= LONGEST_KNOWN:
        return _is_whole_and_harmless(sent.api_key, sent.version, data[:ID_AT] + bytes(4) + data[ID_AT + 4 :])
    return _is_read_harmless(sent.api_key, sent.version, data, whole, is_whole=whole == len(data) == sent.size)


@lru_cache(maxsize=REQUESTS_KNOWN)
def _is_whole_and_harmless(key: int, version: int, data: bytes) -> bool:
    """The same of a whole request, but for its correlation id: clients begin all their connections alike."""
    return _is_read_harmless(key, version, data, len(data), is_whole=True)


def _is_read_harmless(key: int, version: int, data: bytes, whole: int, *, is_whole: bool) -> bool:
    layout = request_layout(key, version, data)
    found = read(data, layout, whole)
    if layout.body is None or layout.unread is not None or names_metadata_log(data):
        return False
    if not is_whole:
        return is_sound(found.header)
    names_log = key == ApiKey.FETCH and may_name_metadata_log(found.body.get("topics"))
    return not (found.rest or found.findings or names_log)


@cache
def secret_keys() -> frozenset[int]:
    """The keys of APIs that have secrets, in a request or in a response, or are sent where the metadata log is fetched;
    of records only that log has some."""
    names = {each.key: (each.request, each.response) for each in apis()}
    keys = (key for key, both in names.items() if any(may_hold_secrets(name, b"", EMPTY_CONTEXT) for name in both))
    return frozenset((*keys, *OF_QUORUM, ApiKey.SASL_HANDSHAKE))
