"""From a row of the index to an exchange: the fields of its row, its two messages, its findings."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.finding import Finding, Severity
from dissector.core.store import Store
from dissector.detection.kafka_detector import Connections
from dissector.detection.other_protocols import OtherProtocol
from dissector.exchange import message_rules, row_findings
from dissector.exchange.connection_facts import ConnectionFacts, ConnectionLookup
from dissector.exchange.endpoint_names import CACHE_SIZE, EndpointNames
from dissector.exchange.index_row import IndexRow, read_index_rows
from dissector.exchange.info_column import exchange_info, info, masked_words
from dissector.exchange.message_decoder import MessageDecoder
from dissector.exchange.model import UNKNOWN_API, Exchange, ExchangeMessage, ExchangeRow, worst
from dissector.index.advertised_versions import AdvertisedVersions
from dissector.index.exchange_table import KIND_NAMES, NO_FRAME, Flag, RowKind
from dissector.index.fetch_sessions import FetchSessions, is_incremental
from dissector.index.indexer import Indexer
from dissector.index.rows_by_connection import RowsByConnection
from dissector.index.shared_state import SharedState, VersionRanges
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.formats import enveloped
from dissector.protocol.embedded.secrets import is_metadata_log, names_metadata_log
from dissector.protocol.message import SASL_TOKEN, UNFRAMED, UNKNOWN_MESSAGE, read
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_name
from dissector.tls.session import TlsSession

if TYPE_CHECKING:  # imported on use: few captures have a response without its request
    from dissector.exchange.response_inference import ResponseInference

_EXCHANGE, _ENVELOPE, _FETCH = int(RowKind.EXCHANGE), int(ApiKey.ENVELOPE), int(ApiKey.FETCH)
"""Plain numbers: a member of an enumeration is looked up at each use."""
ROWS_PER_LOOKUP: Final = 256
"""Rows that are read from the index's columns at once."""


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
        self._ignored_bytes = ignored_bytes
        """Of each direction that is not Kafka."""
        self.tls_session = tls_session
        """The TLS of a connection; None where it is not encrypted."""
        self.lookup = ConnectionLookup()
        """Where facts of connections come from."""
        self.facts = lru_cache(maxsize=CACHE_SIZE)(self._facts)
        """What is known of a connection besides its messages."""
        self.response_to = response_to
        """API key and version of responses whose request is missing, as the user gave them."""
        self.shows_secrets = show_secrets
        self._messages = MessageDecoder(store, indexer.frames, show_secrets=show_secrets)
        self._endpoints = EndpointNames(connections, indexer.detector)
        self._generation = -1
        self._advertised_versions = AdvertisedVersions(
            indexer.conversation_state, self._endpoints.server, self._endpoints.servers, connections.first_packet
        )
        self._by_connection = RowsByConnection(indexer.table)
        self._fetch_sessions = FetchSessions(indexer.frames, indexer.table, self._by_connection)

    @cached_property
    def _inference(self) -> "ResponseInference":
        from dissector.exchange.response_inference import ResponseInference

        indexer = self._indexer
        return ResponseInference(
            indexer.frames, indexer.table, self._by_connection, indexer.conversation_state, self._advertised_versions,
            self._is_opened,
        )  # fmt: skip

    def unmasked(self, store: Store) -> "ExchangeDecoder":
        """Return a decoder of the same rows that shows secrets."""
        other = copy(self)
        other.shows_secrets = True
        other._messages = MessageDecoder(store, self._indexer.frames, show_secrets=True)
        return other

    # Rows.

    def exchange(self, number: int) -> Exchange:
        """Row `number` of the index, from 0."""
        [exchange] = self.exchanges(range(number, number + 1))
        return exchange

    def exchanges(self, rows: range | Int64) -> Iterator[Exchange]:
        """Rows of the index, a range or numbers. Their columns are read some rows at a time."""
        table, frames = self._indexer.table, self._indexer.frames
        for first in range(0, len(rows), ROWS_PER_LOOKUP):
            self.update_conversation_state()
            some = rows[first : first + ROWS_PER_LOOKUP]
            numbers = some if isinstance(some, range) else some.tolist()
            for number, index_row in zip(numbers, read_index_rows(table, frames, some), strict=True):
                exchange = self._decoded(number, index_row)
                exchange.tls = self.tls_session(index_row.connection)
                exchange.facts = self.facts(index_row.connection)
                yield exchange

    def costs(self, rows: Int64) -> Int64:
        """Bytes of the frames of rows, `(n,)`, as far as they are there to be read."""
        table, frames = self._indexer.table, self._indexer.frames
        both = np.zeros(len(rows), np.int64)
        for column in (table.request, table.response):
            numbers = column.values[rows]
            there = numbers != NO_FRAME
            both[there] += frames.costs(numbers[there])
        return both

    # Connections.

    def ends(self, connection: int) -> tuple[str, str]:
        """The client's end of a connection and the server's, as `host:port`."""
        return self._endpoints.of(connection)

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
            self._generation = generation
            self._endpoints.clear()
            self.facts.cache_clear()
            self._messages.forget()
            self._indexer.conversation_state.update(generation)

    def shared_state(self) -> SharedState:
        """What other partitions of the capture can learn from this one, which is read to its end."""
        self.update_conversation_state()
        return replace(
            self._indexer.conversation_state.shared_state(),
            advertised_versions=dict(self._advertised_versions.known(self._indexer.generation)),
            requests=self._inference.requests(),
        )

    def merge_shared_state(self, state: SharedState) -> None:
        """Add what all partitions of the capture have learned, once this one is read to its end."""
        self.update_conversation_state()
        self._messages.forget()
        self._indexer.conversation_state.merge(state)
        self._advertised_versions.merge(state.advertised_versions)
        self._inference.merge(state.requests)

    def retain(self, rows: Int64, connections: Int64) -> Int64:
        """Get ready for a checkpoint that has only these rows and connections; return the rows, ascending, that are
        needed besides."""
        self.update_conversation_state()
        generation = self._indexer.generation
        needed = self._fetch_sessions.retain(connections, rows, generation)
        self._advertised_versions.retain(generation)
        self._inference.retain(np.union1d(rows, needed), connections)
        self._indexer.conversation_state.retain(set(connections.tolist()))
        return needed

    # One row.

    def _decoded(self, number: int, index_row: IndexRow) -> Exchange:
        if index_row.kind == _EXCHANGE and index_row.request != NO_FRAME:
            return self._exchange(number, index_row)
        kind = RowKind(index_row.kind)
        row = self._row(number, index_row)
        if kind is RowKind.EXCHANGE:
            return _with_masked(self._orphan(index_row, row._replace(correlation_id=index_row.correlation_id)))
        if not index_row.has_frames:
            return self._non_kafka(row, kind)
        if kind is RowKind.SASL:
            return _with_masked(self._sasl_token(index_row, row))
        return _with_masked(self._between_frames(index_row, row, kind))

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
            None, None, None, None, None, None, "", None,
        )  # fmt: skip

    def _exchange(self, number: int, index_row: IndexRow) -> Exchange:
        """An exchange with its request, and perhaps a response."""
        key, version = index_row.api_key, index_row.version
        client, server = self._endpoints.of(index_row.connection)
        context = self._context(index_row)
        request = self._messages.request(index_row, self._messages.request_layout(index_row), context)
        if key == _ENVELOPE:
            context = replace(context, enveloped=enveloped(request.body))
        elif key == _FETCH and fetches_metadata(request):
            context = replace(context, fetches_metadata=True)
        response = None
        if index_row.response != NO_FRAME:
            context = self._of_response(index_row, context)
            layout = self._messages.response_layout(key, version, index_row.response)
            if context.may_have_secrets and self._may_be_of_another(index_row):
                layout = layout._replace(unread=UNKNOWN_MESSAGE)
            response = self._messages.response(index_row, layout, context)
        fields = ExchangeRow(
            number + 1, KIND_NAMES[_EXCHANGE], index_row.request_time_ns, index_row.connection + 1, client, server,
            api_name(key), version, index_row.correlation_id,
            self._indexer.client_ids.texts[index_row.client_id], index_row.request_size,
            None if response is None else index_row.response_size,
            None if response is None else index_row.response_time_ns - index_row.request_time_ns, "", None,
        )  # fmt: skip
        findings = self._exchange_findings(index_row, request, response)
        exchange = Exchange(fields, key, request, response, findings, exchange_info)
        if key == _FETCH:
            exchange.fetched = self._fetched(number, request, context)
        return exchange

    def _of_response(self, index_row: IndexRow, context: DecodingContext) -> DecodingContext:
        """What is known for the response to a request: to the first one of a connection what is known before it."""
        if context.may_have_secrets:
            return context
        before = self._indexer.conversation_state.context(index_row.connection, index_row.packet - 1)
        return replace(before, fetches_metadata=context.fetches_metadata) if before.may_have_secrets else context

    def _may_be_of_another(self, index_row: IndexRow) -> bool:
        """Whether a response may be that to another request: it was cut, so that it does not show whether it fits, and
        the client used its correlation id more than once."""
        if self._indexer.frames.captured(index_row.response) == index_row.response_size:
            return False
        repeated = self._by_connection.repeated_ids(index_row.connection, self._indexer.generation)
        return index_row.correlation_id in repeated

    def _exchange_findings(
        self, index_row: IndexRow, request: ExchangeMessage, response: ExchangeMessage | None
    ) -> list[Finding]:
        """Findings of both sides together: those of rules, and what is wrong with the response as a whole."""
        found = message_rules.MESSAGE_RULES.find(index_row.api_key, request, response)
        if response is None:
            is_expected = not index_row.flags & Flag.NO_RESPONSE_EXPECTED
            is_ended = any(self._connections.ended(index_row.connection))
            missing = row_findings.missing_response(index_row.api_key, is_expected=is_expected, is_ended=is_ended)
            return [missing, *found]
        frames = self._indexer.frames
        if row_findings.ends_stream(frames, index_row.response, response) and any(
            self._connections.ended(index_row.connection)
        ):
            found.insert(0, row_findings.CUT_SHORT)
        return found

    def _fetched(self, number: int, request: ExchangeMessage, context: DecodingContext) -> dict[str, list[int]] | None:
        """The partitions of an incremental Fetch; None for other requests."""
        if not is_incremental(request.body):
            return None
        return self._session_partitions(number, context.topic_names)

    def fetch_session(self, number: int, *, names_topics: bool = True) -> dict[str, list[int]] | None:
        """The partitions of a row that is an incremental Fetch, by topic; None where they are unknown. They are known
        sooner if it names no topics."""
        names = self._indexer.conversation_state.topic_names
        return self._session_partitions(number, names, names_topics=names_topics)

    def _session_partitions(
        self, number: int, names: Mapping[str, str], *, names_topics: bool = True
    ) -> dict[str, list[int]] | None:
        generation = self._indexer.generation
        found = self._fetch_sessions.partitions(number, generation, names_topics=names_topics)
        if found is None:
            return None
        return {names.get(topic, topic): sorted(numbers) for topic, numbers in found.items()}

    def _orphan(self, index_row: IndexRow, row: ExchangeRow) -> Exchange:
        """A response without its request, read as what the user said, or by inference and labelled so."""
        from dissector.exchange.inference_words import OrphanFrame, certainty, claimed, layout_of_verdict

        context = self._context(index_row)
        if self.response_to is not None:
            return self._response_to(self.response_to, index_row, row, context)
        orphan = row_findings.ORPHAN
        verdict = self._inference.verdict(index_row.response, index_row.connection, self._indexer.generation)
        data, whole = self._indexer.frames.read(index_row.response)
        layout = layout_of_verdict(verdict, OrphanFrame(data, index_row.response_size, whole, context))
        if layout.body == "FetchResponse" and _has_metadata_log(read(data, layout, whole).body.get("responses")):
            context = replace(context, fetches_metadata=True)
        response = self._messages.response(index_row, layout, context)
        exchange = Exchange(row, None, None, response, [orphan])
        row = row._replace(api=UNKNOWN_API, response_size=response.size, info=orphan.message)
        best = claimed(verdict)
        if best is not None:
            exchange.row_findings += message_rules.MESSAGE_RULES.find(best.layout.api.key, None, response)
            words = info(None, response, exchange.row_findings, context.topic_names)
            words = ": ".join(filter(None, (f"by inference, {certainty(verdict)}", words)))
            row = row._replace(api=f"{best.layout.api.name}?", version=best.version, info=words)
        exchange.row = row._replace(severity=worst(exchange.findings))
        return exchange

    def _response_to(
        self, response_to: tuple[int, int], index_row: IndexRow, row: ExchangeRow, context: DecodingContext
    ) -> Exchange:
        """A response to a request that the user named."""
        key, version = response_to
        layout = self._messages.response_layout(key, version, index_row.response)
        response = self._messages.response(index_row, layout, context)
        label = Finding("orphan", Severity.NOTE, f"read as a response to {api_name(key)} v{version}", "response")
        exchange = Exchange(row, key, None, response, [label, *message_rules.MESSAGE_RULES.find(key, None, response)])
        exchange.row = row._replace(
            api=api_name(key), version=version, response_size=response.size,
            info=info(None, response, exchange.row_findings, context.topic_names), severity=worst(exchange.findings),
        )  # fmt: skip
        return exchange

    def _sasl_token(self, index_row: IndexRow, row: ExchangeRow) -> Exchange:
        """A raw SASL token of one side."""
        context = self._context(index_row)
        request = response = None
        if index_row.request != NO_FRAME:
            request = self._messages.request(index_row, SASL_TOKEN, context)
        if index_row.response != NO_FRAME:
            of_server = replace(context, mechanism=None) if context.mechanism == "PLAIN" else context
            response = self._messages.response(index_row, SASL_TOKEN, of_server)
        side = "client" if request is not None else "server"
        row = row._replace(
            api="SASL token",
            request_size=request.size if request is not None else None,
            response_size=response.size if response is not None else None,
            info=" ".join(filter(None, (context.mechanism, f"token of the {side}, without a header"))),
        )
        exchange = Exchange(row, None, request, response)
        exchange.row = row._replace(severity=worst(exchange.findings))
        return exchange

    def _between_frames(self, index_row: IndexRow, row: ExchangeRow, kind: RowKind) -> Exchange:
        """A gap, or bytes without frames."""
        of_client = index_row.request != NO_FRAME
        size = index_row.request_size if of_client else index_row.response_size
        finding = row_findings.between_frames(kind, size, self.tls_session(index_row.connection))
        other = self._indexer.detector.server_protocol(index_row.connection)
        if other is not None and kind is RowKind.UNPARSED and not of_client:
            finding = row_findings.other_server(other, self._indexer.detector.alert(index_row.connection)[0])
        row = row._replace(info=finding.message, severity=finding.severity)
        request = response = None
        if kind is RowKind.UNPARSED and of_client:
            request = self._messages.request(index_row, UNFRAMED, self._context(index_row))
        elif kind is RowKind.UNPARSED:
            response = self._messages.response(index_row, UNFRAMED, self._context(index_row))
        row = row._replace(request_size=size) if of_client else row._replace(response_size=size)
        return Exchange(row, None, request, response, [finding])

    def _non_kafka(self, row: ExchangeRow, kind: RowKind) -> Exchange:
        """A connection on Kafka's port that speaks something else."""
        connection = row.connection - 1
        side = self._endpoints.client_side(connection)
        sizes = [self._ignored_bytes(2 * connection + each) for each in (side, 1 - side)]
        detector = self._indexer.detector
        alert, alert_side = detector.alert(connection)
        closed = self._endpoints.closed(connection)
        is_refused = self._is_opened(connection) and closed is not None and not closed[1] and not sizes[1]
        protocol = OtherProtocol(int(detector.other_protocol.values[connection]))
        finding = row_findings.non_kafka(
            row_findings.NonKafka(
                kind, protocol, alert, alert_side == side, is_refused and sizes[0] > 0, self.tls_session(connection)
            )
        )
        row = row._replace(
            request_size=sizes[0], response_size=sizes[1], info=finding.message, severity=finding.severity
        )
        return Exchange(row, None, None, None, [finding])

    def _context(self, index_row: IndexRow) -> DecodingContext:
        """What the conversation teaches about a row."""
        return self._indexer.conversation_state.context(index_row.connection, index_row.packet)

    def _is_opened(self, connection: int) -> bool:
        """Whether the capture has the beginning of a connection."""
        return self._connections.syn_side(connection) >= 0


def _with_masked(exchange: Exchange) -> Exchange:
    """The exchange with a word in its info column about what is masked."""
    words = masked_words(exchange.request, exchange.response)
    if words:
        exchange.row = exchange.row._replace(info=" · ".join(filter(None, (exchange.row.info, words))))
    return exchange


def fetches_metadata(request: ExchangeMessage) -> bool:
    """Whether a Fetch request names the metadata log, or may have before it was damaged."""
    if request.masked or names_metadata_log(request.data):
        return True
    return request.context.may_have_secrets and _has_metadata_log(request.body.get("topics"))


def may_fetch_metadata(request: ExchangeMessage) -> bool:
    """The same, whatever is known of the connection."""
    return fetches_metadata(request) or _has_metadata_log(request.body.get("topics"))


def _has_metadata_log(topics: object) -> bool:
    """Whether topics of a Fetch have the metadata log, or what damage made of it."""
    return isinstance(topics, list) and any(is_metadata_log(each.get("topic"), each.get("topic_id")) for each in topics)
