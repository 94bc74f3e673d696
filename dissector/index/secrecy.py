"""Which connections may have secrets: on these, bytes that can't be read may be a password.

A connection is known to have none from its first request on, if the capture has its beginning, and its first request
besides ApiVersions was read to its end and is not one that logs in or has other secrets: a broker takes no other
request before a login (`is_harmless`; what is not understood is not). Until then it may have some, and so may the
response to that request, which shows whether it was this one. So may all of a connection that sends a request with
secrets anywhere, as damage puts bytes of one message into frames that began before it.

Of messages that are there in part, the fields before the cut are shown behind such a first request of any connection
without secrets, even if the capture lacks its beginning or has the request in part. Elsewhere they may be bytes of a
login: a size prefix that is wrong makes one message of several, and then nothing shows where the next one begins.

Invariant: an answer depends on the frames of the connection's client alone, and not on how the capture was cut into
batches.
"""

from functools import cache
from typing import Final, NamedTuple, Protocol

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.columns import Column, tuples, unique
from dissector.index.exchange_table import NO_FRAME, ExchangeTable, RowKind
from dissector.index.frame_table import NO_NUMBER, FrameTable, equal_numbers
from dissector.protocol.codec.program import message_program
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.secrets import (
    may_hold_secrets,
    may_name_metadata_log,
    name_metadata_log,
    names_metadata_log,
)
from dissector.protocol.kernel.shredding import Arena, FrameMemory
from dissector.protocol.masking import has_header
from dissector.protocol.message import read
from dissector.protocol.message_layout import PREFIX, REQUEST_ID, request_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import apis

ROWS_PER_STEP: Final = 1 << 16
NEVER: Final = 1 << 62
LONGEST_KNOWN: Final = 512
"""Bytes of a request that is looked at once for all its equals."""
OF_QUORUM: Final = (ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.UPDATE_RAFT_VOTER)
"""What brokers and controllers send on connections on which they fetch the metadata log (KIP-595, KIP-853)."""


class Opened(Protocol):
    """The connections of a capture."""

    def syn_sides(self, connections: Int64) -> Int64:
        """The side that opened each connection, -1 where the capture did not see it, `(n,)`."""

    def first_packets(self, connections: Int64) -> Int64:
        """The number of the first packet of each, `(n,)`."""


class Secrecy:
    """By connection, the packets in which it may have secrets. Grows as the capture is read."""

    def __init__(self, frames: FrameTable, table: ExchangeTable, connections: Opened) -> None:
        self._frames = frames
        self._table = table
        self._connections = connections
        self._harmless_from = _PacketByConnection()
        """Of connections whose first request was seen; `NEVER` where it was not captured, or can't be read."""
        self._plain_behind = _PacketByConnection()
        """The same if the capture may lack the beginning of the connection, or a part of the request."""
        self._plain_from = _PacketByConnection()
        """Of connections that begin with a whole request that is harmless, and have sent nothing that is not."""
        self._with_secrets: set[int] = set()
        """Connections that have sent a request with secrets."""
        self._read_to: dict[int, int] = {}
        """Of connections that have sent nothing but ApiVersions: the end of these in the client's stream."""
        self._cut: set[int] = set()
        """Those of them of which an ApiVersions request is there in part."""
        self._rows = 0

    def may_have_secrets(self, connection: int, packet: int) -> bool:
        """Whether what can't be read in that packet may be a secret."""
        return packet < self._harmless_from.of(connection) or self.has_secrets(connection)

    def may_cut_secrets(self, connection: int, packet: int) -> bool:
        """Whether a message in that packet that is there in part may have another one's secret in it."""
        return packet <= self._plain_behind.of(connection) or self.has_secrets(connection)

    def begins_without_login(self, connection: int, packet: int) -> bool:
        """Whether the capture has the connection from its beginning, and it has sent what is harmless, but nothing that
        logs in: a response to one of these is what it seems to be."""
        return packet >= self._plain_from.of(connection) and not self.has_secrets(connection)

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
            self._look_at_first(start + np.flatnonzero(is_sent & ~self._harmless_from.are_known(connection)))
            is_token = table.kind.values[step] == RowKind.SASL
            has_secrets = is_sent & np.isin(table.api_key.values[step], sorted(secret_keys()))
            self._with_secrets.update(connection[has_secrets | is_token].tolist())

    def retain(self, connections: set[int]) -> None:
        """Get ready for a checkpoint: forget other connections."""
        self._with_secrets &= connections
        self._cut &= connections
        for connection in self._read_to.keys() - connections:
            del self._read_to[connection]
        kept = np.array(sorted(connections), np.int64)
        for known in (self._harmless_from, self._plain_behind, self._plain_from):
            known.keep(kept)

    def restart_search(self) -> None:
        """Search all rows again at the next update, as they have changed their numbers."""
        self._rows = 0
        self._read_to.clear()
        self._cut.clear()

    def _look_at_first(self, rows: Int64) -> None:
        """Go through the client's frames, and what is between them, of connections whose first request is not known."""
        sent = self._in_stream_order(rows)
        if not len(sent.connection):
            return
        connections, firsts, of = np.unique(sent.connection, return_index=True, return_inverse=True)
        before = np.cumsum(sent.size) - sent.size
        read_to = np.array([self._read_to.get(each, 0) for each in connections.tolist()], np.int64)
        is_next = ~sent.is_opened | (sent.start == (read_to - before[firsts])[of] + before)
        may_be_harmless = is_next & (sent.kind == RowKind.EXCHANGE) & ~np.isin(sent.api_key, sorted(secret_keys()))
        decides = ~may_be_harmless | (sent.api_key != ApiKey.API_VERSIONS)
        decided = np.cumsum(decides) - decides
        is_reached = decided == decided[firsts][of]
        reached = np.flatnonzero(is_reached & may_be_harmless)
        is_harmless, is_cut = self._are_harmless(sent.where(reached))
        self._cut.update(sent.connection[reached[is_cut]].tolist())
        whole = reached[is_harmless & ~is_cut]
        whole = whole[sent.is_opened[whole]]
        opened, at = np.unique(sent.connection[whole], return_index=True)
        is_new = ~self._plain_from.are_known(opened)
        self._plain_from.set(opened[is_new], sent.packet[whole[at[is_new]]])
        plain_behind = np.full(len(of), NEVER)
        plain_behind[reached[is_harmless]] = sent.packet[reached[is_harmless]]
        deciding = np.flatnonzero(is_reached & (decides | (plain_behind == NEVER)))
        decided_of, at = np.unique(of[deciding], return_index=True)
        self._remember_first(sent.where(deciding[at]), plain_behind[deciding[at]])
        ends = (read_to + np.add.reduceat(sent.size, firsts)).tolist()
        waits = np.ones(len(connections), np.bool_)
        waits[decided_of] = False
        self._read_to.update((int(connections[each]), ends[each]) for each in np.flatnonzero(waits).tolist())

    def _remember_first(self, sent: "_SentFrames", plain_behind: Int64) -> None:
        """Remember what the first frame besides ApiVersions shows of each connection."""
        is_whole = sent.is_opened & ~np.isin(sent.connection, sorted(self._cut))
        self._plain_behind.set(sent.connection, plain_behind)
        harmless_from = np.where(is_whole, plain_behind, NEVER)
        self._harmless_from.set(sent.connection, harmless_from)
        self._plain_from.forget(sent.connection[harmless_from == NEVER])

    def _in_stream_order(self, rows: Int64) -> "_SentFrames":
        """What clients sent in these rows, by connection, without the rest of a message that was sent in part before
        the capture began."""
        table, frames = self._table, self._frames
        frame = table.request.values[rows]
        order = np.lexsort((frames.start.values[frame], table.connection.values[rows]))
        rows, frame = rows[order], frame[order]
        connection, packet, kind = table.connection.values[rows], table.packet.values[rows], table.kind.values[rows]
        is_opened = self._are_opened(connection, packet)
        sent = _SentFrames(
            connection, packet, kind, table.api_key.values[rows], table.version.values[rows], frame,
            frames.start.values[frame], frames.size.values[frame].astype(np.int64), is_opened,
        )  # fmt: skip
        return sent.where(is_opened | ~np.isin(kind, (RowKind.GAP, RowKind.UNPARSED)))

    def _are_harmless(self, sent: "_SentFrames") -> tuple[Bool, Bool]:
        """Which frames, of which a part may be missing, are a request of an API without secrets, and no more; and of
        which a part is missing. Short ones that are the same but for their correlation id are looked at once: clients
        begin all their connections alike."""
        numbers = np.full(len(sent.frame), NO_NUMBER, np.int64)
        short = np.flatnonzero(sent.size <= LONGEST_KNOWN)
        numbers[short] = equal_numbers(self._frames, sent.frame[short], REQUEST_ID.stop, head=REQUEST_ID.start)
        alone = numbers == NO_NUMBER
        numbers[alone] = -1 - np.flatnonzero(alone)
        _, one, of = np.unique(numbers, return_index=True, return_inverse=True)
        different = sent.where(one)
        found = np.zeros((len(one), 2), np.bool_)
        found[:, 0] = self._are_read(different)
        others = np.flatnonzero(~found[:, 0])
        rest = different.where(others)
        for at, *facts in tuples(others, rest.frame, rest.api_key, rest.version, rest.size):
            found[at] = self._is_harmless(*facts)
        is_harmless, is_cut = found[of].T
        return is_harmless & (alone | ~is_cut), is_cut

    def _are_read(self, sent: "_SentFrames") -> Bool:
        """Which of them, given by different bytes, the kernel reads to their end: they are surely harmless."""
        addresses, owner = self._frames.pointers(sent.frame)
        return are_harmless(FrameMemory(addresses, sent.size, owner), sent.api_key, sent.version)

    def _is_harmless(self, frame: int, key: int, version: int, size: int) -> tuple[bool, bool]:
        data, whole = self._frames.read(frame)
        return is_harmless(key, version, data, whole, is_whole=whole == len(data) == size), len(data) < size

    def _are_opened(self, connection: Int64, packet: Int64) -> Bool:
        """Whether the capture has the beginning of each connection. A SYN with data is more likely a damaged packet of
        one that is open."""
        has_syn = self._connections.syn_sides(connection) >= 0
        opened: Bool = has_syn & (packet != self._connections.first_packets(connection))
        return opened


class _PacketByConnection:
    """The number of a packet for each connection of which one is known: eight bytes each, however many there are."""

    def __init__(self) -> None:
        self._behind = Column(np.int64)
        """The number of the next packet; 0 where none is known."""
        self._kept: Int64 = np.zeros(0, np.int64)
        """Of the first `_kept_of` connections those that were not forgotten."""
        self._kept_of = 0

    def of(self, connection: int) -> int:
        """The packet of a connection; `NEVER` where none is known."""
        behind = self._behind.item(connection)
        return behind - 1 if behind else NEVER

    def are_known(self, connections: Int64) -> Bool:
        """Of which connections a packet is known, `(n,)`."""
        known: Bool = self._behind.at(connections) != 0
        return known

    def set(self, connections: Int64, packets: Int64) -> None:
        """Remember the packets of connections, each once."""
        if len(connections):
            self._behind.grow(int(connections.max()) + 1)
            self._behind.values[connections] = packets + 1

    def forget(self, connections: Int64) -> None:
        """Know the packets of connections no longer."""
        self._behind.values[connections[connections < len(self._behind)]] = 0

    def keep(self, connections: Int64) -> None:
        """Forget all connections but these, ascending: a checkpoint has only these."""
        kept = connections[connections < len(self._behind)]
        values = self._behind.values
        packets = values[kept]
        values[self._kept] = values[self._kept_of :] = 0
        values[kept] = packets
        self._kept, self._kept_of = kept, len(values)
        self._behind.keep(kept)


class _SentFrames(NamedTuple):
    """Frames of clients, and what is between them, in columns, `(n,)`."""

    connection: Int64
    packet: Int64
    kind: Int64
    api_key: Int64
    version: Int64
    frame: Int64
    start: Int64
    size: Int64
    is_opened: Bool
    """Whether the capture has the beginning of the connection."""

    def where(self, which: Bool | Int64) -> "_SentFrames":
        """Those of a mask, or at positions."""
        return _SentFrames._make(column[which] for column in self)


@cache
def secret_keys() -> frozenset[int]:
    """The keys of APIs that have secrets, in a request or in a response, or are sent where the metadata log is fetched;
    of records only that log has some."""
    names = {each.key: (each.request, each.response) for each in apis()}
    keys = (key for key, both in names.items() if any(may_hold_secrets(name, b"", EMPTY_CONTEXT) for name in both))
    return frozenset((*keys, *OF_QUORUM, ApiKey.SASL_HANDSHAKE))


def are_harmless(frames: FrameMemory, api_key: Int64, version: Int64) -> Bool:
    """Which requests of APIs without secrets surely are what `is_harmless` finds of one at a time, `(n,)`: those that
    the kernel reads to their end. The address of a frame that is not whole, or not in one piece, is 0."""
    found = np.zeros(len(frames), np.bool_)
    arena = Arena()  # for this call: what it grew to would stay
    kinds = api_key.astype(np.int64) << 16 | version.astype(np.int64) & 0xFFFF
    there = np.flatnonzero((frames.addresses > 0) & (api_key != ApiKey.FETCH))  # its topics would have to be read
    there = there[~name_metadata_log(frames.addresses[there], frames.sizes[there])]
    for kind in unique(kinds[there]).tolist():
        at = there[kinds[there] == kind]
        layout = request_layout(kind >> 16, kind & 0xFFFF)
        if layout.header is None or layout.body is None or layout.unread is not None or layout.findings:
            continue
        program = message_program(layout.header, layout.header_version, layout.body, layout.body_version)
        for part in arena.shred(frames.at(at), program, program.wanted(), PREFIX):
            found[at[part.first : part.stop]] = part.errors == 0
    return found


def is_harmless(key: int, version: int, data: bytes, whole: int, *, is_whole: bool) -> bool:
    """Whether these bytes, of which so many are in front of the first gap, are a harmless request of an API without
    secrets; of one that is there in part, whether its header is one. In a whole Fetch, numbers may look like the topic
    id of the metadata log (`metadata_fetches`)."""
    layout = request_layout(key, version, data)
    if layout.body is None or layout.unread is not None:
        return False
    if not is_whole:
        return has_header(data, layout, whole) and not names_metadata_log(data)
    found = read(data, layout, whole)
    is_fetch = key == ApiKey.FETCH
    names_log = may_name_metadata_log(found.body.get("topics")) if is_fetch else names_metadata_log(data)
    return not (found.rest or found.findings or names_log)
