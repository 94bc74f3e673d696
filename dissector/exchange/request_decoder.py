"""Decodes rows with a request: the request, and the response that it was paired with, if it has one."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from dissector.core.expansion import LISTED, MOST_LISTED, TOPIC_SIZE
from dissector.core.finding import Finding
from dissector.core.identity_cache import IdentityCache
from dissector.detection.connections import Connections
from dissector.exchange import row_findings
from dissector.exchange.connection_facts import EndpointNames
from dissector.exchange.decoding_findings import ExactReadings, error_response
from dissector.exchange.info_column import DAMAGE, exchange_info
from dissector.exchange.message_decoder import MessageDecoder
from dissector.exchange.metadata_fetches import fetches_metadata
from dissector.exchange.model import Exchange, ExchangeMessage, ExchangeRow, FirstFetched
from dissector.index.exchange_table import KIND_NAMES, NO_FRAME, Flag, IndexRow, RowKind, RowsByConnection
from dissector.index.fetch_sessions import FetchSessions, is_incremental
from dissector.index.indexer import Indexer
from dissector.index.session_set import SessionChange
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.formats import enveloped
from dissector.protocol.masked_reasons import TRAILING, UNREAD
from dissector.protocol.message import read
from dissector.protocol.message_layout import PREFIX, UNKNOWN_MESSAGE, MessageLayout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_name

_API_VERSIONS, _ENVELOPE, _FETCH = int(ApiKey.API_VERSIONS), int(ApiKey.ENVELOPE), int(ApiKey.FETCH)
"""Plain numbers: a member of an enumeration is looked up at each use."""
_FEATURE: Final = re.compile(rb"[a-z]+(?:\.[a-z]+)*\.version")
"""As Kafka names the features of its clusters."""
_TEXT: Final = re.compile(rb"[ -~]{6,}")
"""A text that numbers hardly look like."""
_KIND: Final = KIND_NAMES[RowKind.EXCHANGE]
_OfBoth = tuple[int | None, int | None, int | None, int | None, int | None, int | None, int | None]
"""The fields of a row from `response_size` to `response_packet`."""


class RequestDecoder:
    """Of one capture."""

    def __init__(
        self,
        indexer: Indexer,
        connections: Connections,
        endpoints: EndpointNames,
        by_connection: RowsByConnection,
        fetch_sessions: FetchSessions,
    ) -> None:
        self._indexer = indexer
        self._connections = connections
        self._endpoints = endpoints
        self._by_connection = by_connection
        self._fetch_sessions = fetch_sessions
        self._exact_readings = ExactReadings()
        self._named: IdentityCache[dict[str, list[int]]] = IdentityCache(MOST_LISTED)
        self._named_by: tuple[int, object] = -1, None
        """The last partitions of a fetch session, by names of topics: most Fetches leave them as they are."""

    def decode(self, messages: MessageDecoder, number: int, index_row: IndexRow) -> Exchange:
        """Row `number` of the index, from 0; `messages` are masked or not."""
        key, version = index_row.api_key, index_row.version
        client, server = self._endpoints.of(index_row.connection)
        context = self._indexer.conversation_state.context(index_row.connection, index_row.packet)
        request = messages.request(index_row, messages.request_layout(index_row), context)
        if key == _ENVELOPE:
            context = replace(context, enveloped=enveloped(request.body))
        elif key == _FETCH and fetches_metadata(request):
            context = replace(context, fetches_metadata=True)
        response = None
        if index_row.response != NO_FRAME:
            layout = messages.response_layout(key, version, index_row.response)
            context = self._of_response(index_row, layout, context)
            if context.may_have_secrets and self._may_be_of_another(index_row):
                layout = layout._replace(unread=UNKNOWN_MESSAGE)
            response = messages.response(index_row, layout, context)
        fields = ExchangeRow(
            number + 1, _KIND, index_row.request_time_ns, index_row.connection + 1, client, server,
            api_name(key), version, index_row.correlation_id,
            self._indexer.client_ids.texts[index_row.client_id], index_row.request_size,
            *self._of_both(index_row), "", None,
        )  # fmt: skip
        findings = self._findings(index_row, response)
        is_masked = request.masked or (response is not None and response.masked)
        find = partial(self._found, index_row, self._of_masked(index_row, request, response) if is_masked else [])
        exchange = Exchange(fields, key, request, response, findings, exchange_info, find)
        if key == _FETCH and is_incremental(request.body):
            exchange.find_fetched = partial(self._session_partitions, number, context.topic_names)
            exchange.find_first_fetched = partial(self._first_partitions, number)
        return exchange

    def _of_both(self, index_row: IndexRow) -> _OfBoth:
        """The fields of a row from `response_size` to `response_packet`."""
        sent, came = index_row.request_transfer_ns, index_row.response_transfer_ns
        if index_row.response == NO_FRAME:
            return None, None, sent, None, None, index_row.packet + 1, None
        between = index_row.response_time_ns - index_row.request_time_ns
        packet = int(self._indexer.frames.packet.values[index_row.response]) + 1
        return index_row.response_size, between + came, sent, between - sent, came, index_row.packet + 1, packet

    def _of_response(self, index_row: IndexRow, layout: MessageLayout, context: DecodingContext) -> DecodingContext:
        """What is known for the response to a request: to the first one of a connection what is known before it, unless
        it is sure to be all that the broker sent: it is alone in its segment, so that its size is right. A login may
        follow ApiVersions, whose response has no text but names of features: a malformed one with others may be that to
        another request."""
        state = self._indexer.conversation_state
        connection, packet = index_row.connection, index_row.packet
        before = context if context.may_have_secrets else state.context(connection, packet - 1)
        if not before.may_have_secrets:
            return context
        is_alone = self._indexer.frames.is_alone.values[index_row.response]
        if is_alone and state.begins_without_login(connection, packet) and not self._has_other_text(index_row, layout):
            before = state.common
        if (before.fetches_metadata, before.enveloped) == (context.fetches_metadata, context.enveloped):
            return before
        return replace(before, fetches_metadata=context.fetches_metadata, enveloped=context.enveloped)

    def _has_other_text(self, index_row: IndexRow, layout: MessageLayout) -> bool:
        if index_row.api_key != _API_VERSIONS:
            return False
        data, end = self._indexer.frames.read(index_row.response)
        if _TEXT.search(_FEATURE.sub(b"", data)) is None:
            return False
        return bool((UNREAD - {TRAILING}) & {each.code for each in read(data, layout, end).findings})

    def _may_be_of_another(self, index_row: IndexRow) -> bool:
        """Whether a response may be that to another request: it was cut, so that it does not show whether it fits, and
        the client used its correlation id more than once."""
        if self._indexer.frames.captured(index_row.response) == index_row.response_size:
            return False
        repeated = self._by_connection.repeated_ids(index_row.connection, self._indexer.generation)
        return index_row.correlation_id in repeated

    def _findings(self, index_row: IndexRow, response: ExchangeMessage | None) -> list[Finding]:
        """What is wrong with the response as a whole."""
        if response is None:
            is_expected = not index_row.flags & Flag.NO_RESPONSE_EXPECTED
            is_ended = any(self._connections.ended(index_row.connection))
            return [row_findings.missing_response(index_row.api_key, is_expected=is_expected, is_ended=is_ended)]
        is_cut = row_findings.ends_stream(self._indexer.frames, index_row.response, response) and any(
            self._connections.ended(index_row.connection)
        )
        return [row_findings.CUT_SHORT] if is_cut else []

    def _found(self, index_row: IndexRow, of_masked: list[Finding], exchange: Exchange) -> list[Finding]:
        """The findings about the errors of the response, which is decoded for it, and about messages that have another
        layout than their own; of masked ones they were found before."""
        found = error_response(index_row.api_key, exchange.response) + of_masked
        for message, is_request in ((exchange.request, True), (exchange.response, False)):
            if message is not None and not message.masked and _does_not_fit(message):
                found += self._other_reading(index_row, message, message.data, is_request=is_request)
        return found

    def _of_masked(
        self, index_row: IndexRow, request: ExchangeMessage, response: ExchangeMessage | None
    ) -> list[Finding]:
        """The findings about messages that have another layout than their own, of those that are masked: their bytes
        are in the store alone, which may be gone when findings are asked for."""
        found: list[Finding] = []
        for message, frame, is_request in ((request, index_row.request, True), (response, index_row.response, False)):
            if message is not None and message.masked and _does_not_fit(message):
                data, whole = self._indexer.frames.read(frame)
                if whole == len(data):
                    found += self._other_reading(index_row, message, data, is_request=is_request)
        return found

    def _other_reading(
        self, index_row: IndexRow, message: ExchangeMessage, data: bytes, *, is_request: bool
    ) -> list[Finding]:
        if message.is_cut or message.whole < len(message.data):
            return []
        kind = index_row.connection, index_row.api_key, index_row.version, is_request
        found = self._exact_readings.finding(kind, data, message.size, message.layout)
        return [] if found is None else [found]

    def fetch_session(self, number: int, *, names_topics: bool = True) -> dict[str, list[int]] | None:
        """The partitions of a row that is an incremental Fetch, by topic; None where they are unknown. They are known
        sooner if it names no topics."""
        names = self._indexer.conversation_state.topic_names
        return self._session_partitions(number, names, names_topics=names_topics)

    def first_of_fetch_session(self, number: int, most: int, *, names_topics: bool = True) -> FirstFetched:
        """Some of the same, without a copy of all: see `FetchSessions.first_partitions`. None of an unknown session."""
        return self._first_partitions(number, most, names_topics=names_topics) or ({}, 0)

    def _first_partitions(self, number: int, most: int, *, names_topics: bool = True) -> FirstFetched | None:
        names, generation = self._indexer.conversation_state.topic_names, self._indexer.generation
        found = self._fetch_sessions.first_partitions(number, generation, most, names_topics=names_topics)
        if found is None:
            return None
        return {names.get(topic, topic): numbers for topic, numbers in found[0].items()}, found[1]

    def fetch_session_changes(
        self, number: int, *, is_first: bool, names_topics: bool
    ) -> tuple[bool, list[SessionChange]]:
        """What changed in the session of a row since the Fetch of its connection that was asked for last: see
        `FetchSessions.changes`."""
        names = self._indexer.conversation_state.topic_names
        is_another, changes = self._fetch_sessions.changes(
            number, self._indexer.generation, is_first=is_first, names_topics=names_topics
        )
        return is_another, [change._replace(topic=names.get(change.topic, change.topic)) for change in changes]

    def _session_partitions(
        self, number: int, names: Mapping[str, str], *, names_topics: bool = True
    ) -> dict[str, list[int]] | None:
        generation = self._indexer.generation
        found = self._fetch_sessions.partitions(number, generation, names_topics=names_topics)
        if found is None:
            return None
        if generation != self._named_by[0] or names is not self._named_by[1]:
            self._named.clear()
            self._named_by = generation, names
        named = self._named.get(found)
        if named is None:
            by_name: dict[str, frozenset[int]] = {}
            for topic, numbers in found.items():  # a topic that was deleted and created again has two ids
                name = names.get(topic, topic)
                by_name[name] = by_name[name] | numbers if name in by_name else numbers
            named = {topic: sorted(numbers) for topic, numbers in by_name.items()}
            self._named.put(found, named, LISTED * (TOPIC_SIZE * len(named) + sum(map(len, named.values()))))
        return named


def _does_not_fit(message: ExchangeMessage) -> bool:
    """Whether a message has another size or layout than its own."""
    missing = message.size - len(message.data)  # as many as a prefix, if the size counts itself
    if missing:
        return missing == PREFIX
    # Of a masked one the layout has them, and need not be traced.
    return any(each.code in DAMAGE for found in (message.layout, message.decoded) for each in found.findings)
