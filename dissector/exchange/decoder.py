"""From a row of the index to an exchange: the fields of its row, its two messages, its findings.

Each kind of row has a decoder: a request with its response, a response without its request, what is no exchange. This
one has what they share: rows by number, facts of connections, what the conversations teach.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.core.store import Store
from dissector.detection.connections import Connections
from dissector.exchange.connection_facts import CACHE_SIZE, ConnectionFacts, ConnectionLookup, EndpointNames
from dissector.exchange.info_column import unseen_words, with_damage
from dissector.exchange.message_decoder import MessageDecoder, ReadOnce
from dissector.exchange.model import Exchange, ExchangeRow, FirstFetched
from dissector.exchange.orphan_decoder import OrphanDecoder
from dissector.exchange.other_row_decoder import OtherRowDecoder
from dissector.exchange.request_decoder import RequestDecoder
from dissector.index.advertised_versions import AdvertisedVersions
from dissector.index.exchange_table import KIND_NAMES, NO_FRAME, IndexRow, RowKind, RowsByConnection, read_index_rows
from dissector.index.fetch_sessions import FetchSessions
from dissector.index.indexer import Indexer
from dissector.index.session_set import SessionChange
from dissector.index.shared_state import SharedState, VersionRanges
from dissector.tls.session import TlsSession

_EXCHANGE: Final = int(RowKind.EXCHANGE)
"""A plain number: a member of an enumeration is looked up at each use."""
ROWS_PER_LOOKUP: Final = 256
"""Rows that are read from the index's columns at once."""
ROWS_AROUND: Final = 32
"""The same around a row that is asked for alone: its neighbors often are, too."""


class ExchangeDecoder:
    """Decodes rows on demand; keeps none of them."""

    def __init__(
        self,
        indexer: Indexer,
        store: Store,
        connections: Connections,
        ignored_bytes: Callable[[int], int],
        tls_session: Callable[[int], TlsSession | None],
        response_to: tuple[int, int] | None,
        *,
        show_secrets: bool,
    ) -> None:
        self._indexer = indexer
        self._connections = connections
        self.tls_session = tls_session
        """The TLS of a connection; None where it is not encrypted."""
        self.lookup = ConnectionLookup()
        """Where facts of connections come from."""
        self.facts = lru_cache(maxsize=CACHE_SIZE)(self._facts)
        """What is known of a connection besides its messages."""
        self._around = lru_cache(maxsize=1)(self._read_around)
        self.response_to = response_to
        """API key and version of responses whose request is missing, as the user gave them."""
        self.shows_secrets = show_secrets
        self._messages = MessageDecoder(store, indexer.frames, show_secrets=show_secrets)
        self._endpoints = EndpointNames(connections, indexer.detector)
        self._generation = -1
        self._advertised_versions = AdvertisedVersions(
            indexer.conversation_state, self._endpoints.server, self._endpoints.servers, connections.first_packet
        )
        by_connection = RowsByConnection(indexer.table)
        self._fetch_sessions = FetchSessions(indexer.frames, indexer.table, by_connection)
        self._requests = RequestDecoder(indexer, connections, self._endpoints, by_connection, self._fetch_sessions)
        self._orphans = OrphanDecoder(indexer, by_connection, self._advertised_versions, self._is_opened, response_to)
        self._others = OtherRowDecoder(indexer, connections, self._endpoints, ignored_bytes, tls_session)

    def unmasked(self, store: Store) -> "ExchangeDecoder":
        """Return a decoder of the same rows that shows secrets, for readers that change nothing in a body."""
        other = copy(self)
        other.shows_secrets = True
        other._messages = MessageDecoder(store, self._indexer.frames, show_secrets=True, reads=ReadOnce())
        return other

    # Rows.

    def exchange(self, number: int) -> Exchange:
        """Row `number` of the index, from 0."""
        self.update_conversation_state()
        table = self._indexer.table
        first = number - number % ROWS_AROUND
        index_row = self._around(first, len(table))[number - first]
        if index_row.response != table.response.values[number]:  # it came in a batch that is still being added
            self._around.cache_clear()
            index_row = self._around(first, len(table))[number - first]
        return self._exchange(number, index_row)

    def _read_around(self, first: int, count: int) -> list[IndexRow]:
        rows = range(first, min(first + ROWS_AROUND, count))
        return list(read_index_rows(self._indexer.table, self._indexer.frames, rows))

    def exchanges(self, rows: range | Int64) -> Iterator[Exchange]:
        """Rows of the index, a range or numbers. Their columns are read some rows at a time."""
        if isinstance(rows, range) and len(rows) == 1:
            yield self.exchange(rows.start)
            return
        table, frames = self._indexer.table, self._indexer.frames
        for first in range(0, len(rows), ROWS_PER_LOOKUP):
            self.update_conversation_state()
            some = rows[first : first + ROWS_PER_LOOKUP]
            numbers = some if isinstance(some, range) else some.tolist()
            for number, index_row in zip(numbers, read_index_rows(table, frames, some), strict=True):
                yield self._exchange(number, index_row)

    def answer_none(self, rows: Int64) -> Bool:
        """Which rows of the index, all of them responses without a request, answer none: see `OrphanDecoder`."""
        self.update_conversation_state()
        return self._orphans.answer_none(rows)

    def costs(self, rows: Int64) -> Int64:
        """Bytes of the frames of rows, `(n,)`, as far as they are there to be read."""
        table, frames = self._indexer.table, self._indexer.frames
        both = np.zeros(len(rows), np.int64)
        for column in (table.request, table.response):
            numbers = column.values[rows]
            there = numbers != NO_FRAME
            both[there] += frames.costs(numbers[there])
        return both

    def fetch_session(self, number: int, *, names_topics: bool = True) -> dict[str, list[int]] | None:
        """The partitions of a row that is an incremental Fetch, by topic; None where they are unknown. They are known
        sooner if it names no topics."""
        return self._requests.fetch_session(number, names_topics=names_topics)

    def first_of_fetch_session(self, number: int, most: int, *, names_topics: bool = True) -> FirstFetched:
        """The first topics of the same, at most so many, and how many more there are; some partitions of each."""
        return self._requests.first_of_fetch_session(number, most, names_topics=names_topics)

    def fetch_session_changes(
        self, number: int, *, is_first: bool, names_topics: bool
    ) -> tuple[bool, list[SessionChange]]:
        """Whether the session is another one than before, and what was added since and forgotten: since the Fetch of
        the same connection that was asked for last, unless this is the first one."""
        return self._requests.fetch_session_changes(number, is_first=is_first, names_topics=names_topics)

    # Connections.

    def ends(self, connection: int) -> tuple[str, str]:
        """The client's end of a connection and the server's, as `host:port`."""
        return self._endpoints.of(connection)

    def routes(self, connections: Int64) -> Int64:
        """Numbers, `(n,)`, that are equal where client and server are, whatever the client's port is."""
        return self._endpoints.routes(connections)

    def _facts(self, connection: int) -> ConnectionFacts:
        ends, begin_ns = self._endpoints.of(connection), self._connections.first_time_ns(connection)
        side = self._endpoints.client_side(connection)
        return ConnectionFacts(*ends, self.lookup, connection, side, begin_ns)

    def closed(self, connection: int) -> tuple[int, bool] | None:
        """When a connection was closed, and whether the client closed it first; None where that was not captured."""
        return self._endpoints.closed(connection)

    def advertised_versions(self, connection: int) -> VersionRanges:
        """The versions that the server of a connection advertised, on it or on others, by API key."""
        return self._advertised_versions.of(connection, self._indexer.generation)

    # Conversation state, shared state, checkpoints.

    def update_conversation_state(self) -> None:
        """Learn from the exchanges that have come since the last time."""
        generation = self._indexer.generation
        if generation != self._generation:
            self._endpoints.clear()
            self.facts.cache_clear()
            self._around.cache_clear()
            self._messages.forget()
            self._indexer.conversation_state.update(generation)
            self._generation = generation  # only now: another thread goes on with what was learned

    def shared_state(self) -> SharedState:
        """What other partitions of the capture can learn from this one, which is read to its end."""
        self.update_conversation_state()
        return replace(
            self._indexer.conversation_state.shared_state(),
            advertised_versions=dict(self._advertised_versions.known(self._indexer.generation)),
            requests=self._orphans.inference.requests(),
        )

    def merge_shared_state(self, state: SharedState) -> None:
        """Add what all partitions of the capture have learned, once this one is read to its end."""
        self.update_conversation_state()
        self._messages.forget()
        self._indexer.conversation_state.merge(state)
        self._advertised_versions.merge(state.advertised_versions)
        self._orphans.inference.merge(state.requests)

    def retain(self, rows: Int64, connections: Int64) -> Int64:
        """Get ready for a checkpoint that has only these rows and connections; return the rows, ascending, that are
        needed besides."""
        self.update_conversation_state()
        generation = self._indexer.generation
        needed = self._fetch_sessions.retain(connections, rows, generation)
        self._advertised_versions.retain(generation)
        self._orphans.inference.retain(np.union1d(rows, needed), connections)
        self._indexer.conversation_state.retain(set(connections.tolist()))
        return needed

    # One row.

    def _exchange(self, number: int, index_row: IndexRow) -> Exchange:
        exchange = self._decoded(number, index_row)
        exchange.tls = self.tls_session(index_row.connection)
        exchange.facts = self.facts(index_row.connection)
        return exchange

    def _decoded(self, number: int, index_row: IndexRow) -> Exchange:
        if index_row.kind == _EXCHANGE and index_row.request != NO_FRAME:
            return self._requests.decode(self._messages, number, index_row)
        kind = RowKind(index_row.kind)
        row = self._row(number, index_row)
        if kind is RowKind.EXCHANGE:
            row = row._replace(correlation_id=index_row.correlation_id)
            return _with_masked(self._orphans.decode(self._messages, index_row, row))
        if not index_row.has_frames:
            return self._others.non_kafka(row, kind)
        if kind is RowKind.SASL:
            return _with_masked(self._others.sasl_token(self._messages, index_row, row))
        return _with_masked(self._others.between_frames(self._messages, index_row, row, kind))

    def _row(self, number: int, index_row: IndexRow) -> ExchangeRow:
        """The fields that rows of any kind have besides whole exchanges."""
        connection = index_row.connection
        if index_row.has_frames:
            has_request = index_row.request != NO_FRAME
            time_ns = index_row.request_time_ns if has_request else index_row.response_time_ns
        else:
            time_ns = self._connections.first_time_ns(connection)
        client, server = self._endpoints.of(connection)
        kind = KIND_NAMES[index_row.kind]
        return ExchangeRow(
            number + 1, kind, time_ns, connection + 1, client, server, kind,
            None, None, None, None, None, None, None, None, None, index_row.packet + 1, None, "", None,
        )  # fmt: skip

    def _is_opened(self, connection: int) -> bool:
        """Whether the capture has the beginning of a connection."""
        return self._connections.syn_side(connection) >= 0


def _with_masked(exchange: Exchange) -> Exchange:
    """The exchange with words in its info column about what is masked, cut, or damaged."""
    words = " · ".join(filter(None, (exchange.row.info, unseen_words(exchange.request, exchange.response))))
    words = with_damage(words, exchange.request, exchange.response)
    if words != exchange.row.info:
        exchange.row = exchange.row._replace(info=words)
    return exchange
