"""From a row of the index to what a person looks at: its words, its two messages, its findings."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NEVER
from dissector.core.finding import Finding, Severity
from dissector.core.store import Store
from dissector.detection.kafka_detector import NOBODY, Endpoints
from dissector.detection.other_protocols import OtherProtocol
from dissector.exchange import message_rules
from dissector.exchange.inference_words import certainty, claimed, shape
from dissector.exchange.info_column import info, session_words
from dissector.exchange.model import UNKNOWN_API, Exchange, ExchangeMessage, ExchangeRow, worst
from dissector.exchange.response_inference import ResponseInference
from dissector.index.advertised_versions import AdvertisedVersions
from dissector.index.exchange_table import NO_FRAME, Flag, RowKind
from dissector.index.fetch_sessions import FetchSessions, is_incremental
from dissector.index.indexer import Indexer
from dissector.index.rows_by_connection import RowsByConnection
from dissector.index.shared_state import Offer, SharedState
from dissector.protocol.embedded.context import EMPTY_CONTEXT, DecodingContext
from dissector.protocol.embedded.formats import enveloped
from dissector.protocol.message import SASL_TOKEN, UNFRAMED, MessageLayout, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api

ORPHAN: Final = Finding("orphan", Severity.WARNING, "response without a request in this capture", "response")
UNANSWERED: Final = Finding("unanswered", Severity.WARNING, "no response in this capture", "request")
CLOSED: Final = Finding("unanswered", Severity.WARNING, "no response before the connection was closed", "request")
CUT_SHORT: Final = Finding(
    "cut-short", Severity.ERROR, "the connection was closed before the response was whole", "response"
)
ACKS_0: Final = Finding("no-response-expected", Severity.NOTE, "acks=0: the broker sends no response", "request")

KIND_NAMES: Final = [kind.name.lower() for kind in RowKind]
"""Of rows, by the number of their kind."""
TOGETHER: Final = 256
"""Rows that are looked up in the index's columns at once."""
KEPT_ENDS: Final = 4096
"""Connections whose ends are kept as text."""


class IndexRow(NamedTuple):
    """A row of the index as plain numbers, with what the frame table has of its two frames: zeros where it has none."""

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
    asked_ns: int
    answered_ns: int
    asked_at: int
    answered_at: int
    """The address of a frame in one piece; a negative number for others."""
    asked_size: int
    answered_size: int


class ExchangeDecoder:
    """Decodes rows on demand; keeps none of them."""

    def __init__(
        self,
        session: Indexer,
        store: Store,
        flows: Endpoints,
        ignored: Callable[[int], int],
        asked: tuple[int, int] | None,
        *,
        show_secrets: bool,
    ) -> None:
        self._show_secrets = show_secrets
        self._session = session
        self._store = store
        by_connection = RowsByConnection(session.table)
        self._sessions = FetchSessions(session.frames, session.table, by_connection)
        self._flows = flows
        self._ignored = ignored
        """Bytes of each direction that is not Kafka."""
        self.asked = asked
        """API key and version that a response answers of which the request was not seen."""
        self.ends = lru_cache(maxsize=KEPT_ENDS)(self._look_up_ends)
        """The client's end of a connection and the server's, as `host:port`."""
        self._generation = -1
        self._offers = AdvertisedVersions(session.knowledge, self._server, flows.first_packet)
        self._inference = ResponseInference(
            session.frames,
            session.table,
            by_connection,
            session.knowledge,
            self._offers,
            self._is_opened,
        )

    def exchange(self, number: int) -> Exchange:
        """Row `number` of the index, from 0."""
        [exchange] = self.exchanges(range(number, number + 1))
        return exchange

    def exchanges(self, rows: range | Int64) -> Iterator[Exchange]:
        """Rows of the index by number, or one after the other: a few at a time are looked up together."""
        for first in range(0, len(rows), TOGETHER):
            self.learn()
            some = rows[first : first + TOGETHER]
            numbers = some if isinstance(some, range) else some.tolist()
            for number, line in zip(numbers, self._lines(some), strict=True):
                yield self._of(number, line)

    def sizes(self, start: int, stop: int) -> Int64:
        """Bytes of the frames of each row from `start` to before `stop`, `(n,)`."""
        table, size = self._session.table, self._session.frames.size
        both = np.zeros(stop - start, np.int64)
        for column in (table.request, table.response):
            frames = column.values[start:stop]
            there = frames != NO_FRAME
            both[there] += size.values[frames[there]]
        return both

    def learn(self) -> None:
        """Learn what the conversations teach, if there is more of them than the last time."""
        generation = self._session.generation
        if generation != self._generation:
            self._generation = generation
            self.ends.cache_clear()
            self._session.knowledge.learn(generation)

    def offered(self, connection: int) -> Offer:
        """The versions that the server of a connection said it has, there or elsewhere, by API key."""
        return self._offers.of(connection, self._session.generation)

    def lessons(self) -> SharedState:
        """What this part of a capture, which was read to its end, teaches others."""
        self.learn()
        offers = dict(self._offers.known(self._session.generation))
        return replace(self._session.knowledge.lessons(), offers=offers, asked=self._inference.asked())

    def take(self, lessons: SharedState) -> None:
        """What the whole capture teaches: for a part of it, which was read to its end."""
        self.learn()
        self._session.knowledge.take(lessons)
        self._offers.take(lessons.offers)
        self._inference.take(lessons.asked)

    def keep(self, rows: Int64, connections: Int64) -> Int64:
        """Get ready to be pickled: of what is known of rows and of connections only these will be there. Of some more
        rows, which are told, it will ask again."""
        self.learn()
        generation = self._session.generation
        needed = self._sessions.keep(connections, rows, generation)
        self._offers.keep(generation)
        self._inference.keep(np.union1d(rows, needed), connections)
        self._session.knowledge.keep(set(connections.tolist()))
        return needed

    def closed(self, connection: int) -> tuple[int, bool] | None:
        """When a connection was closed, and whether the client did so first; None where that was not seen."""
        time_ns, side = self._flows.closed(connection)
        return None if time_ns == NEVER else (time_ns, side == self._client_side(connection))

    def _lines(self, rows: range | Int64) -> Iterator[IndexRow]:
        table, frames = self._session.table, self._session.frames
        at = slice(rows.start, rows.stop) if isinstance(rows, range) else rows
        columns = [getattr(table, name).values[at] for name in IndexRow._fields[: IndexRow._fields.index("asked_ns")]]
        pair = table.request.values[at], table.response.values[at]
        there = [each != NO_FRAME for each in pair]
        for values in (frames.time_ns.values, frames.contiguous, frames.size.values):
            for side, some in zip(pair, there, strict=True):
                found = np.zeros(len(side), np.int64)
                found[some] = values(side[some]) if callable(values) else values[side[some]]
                columns.append(found)
        return map(IndexRow._make, zip(*(column.tolist() for column in columns), strict=True))

    def _of(self, number: int, line: IndexRow) -> Exchange:
        kind = RowKind(line.kind)
        row = self._row(number, line)
        if kind is RowKind.EXCHANGE:
            return self._exchange(number, line, row)
        if line.request == line.response == NO_FRAME:
            return self._stranger(row, kind)
        if kind is RowKind.SASL:
            return self._token(line, row)
        return self._between_frames(line, row, kind)

    def _row(self, number: int, line: IndexRow) -> ExchangeRow:
        """What a row of any kind has."""
        if line.request == line.response == NO_FRAME:
            time_ns = self._flows.first_time_ns(line.connection)
        else:
            time_ns = line.answered_ns if line.request == NO_FRAME else line.asked_ns
        client, server = self.ends(line.connection)
        kind = KIND_NAMES[line.kind]
        return ExchangeRow(
            number + 1, kind, time_ns, line.connection + 1, client, server, kind,
            None, None, None, None, None, None, "", None,
        )  # fmt: skip

    def _client_side(self, connection: int) -> int:
        recogniser = self._session.recogniser
        side = recogniser.client(connection)
        if side == NOBODY:
            kafka = recogniser.kafka_side(connection)
            return 0 if kafka is None else 1 - kafka
        return side

    def _server(self, connection: int) -> str:
        return self.ends(connection)[1]

    def _is_opened(self, connection: int) -> bool:
        return self._flows.syn_side(connection) >= 0

    def _look_up_ends(self, connection: int) -> tuple[str, str]:
        ends = [
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self._flows.endpoints(connection)
        ]
        side = self._client_side(connection)
        return ends[side], ends[1 - side]

    def _request(
        self, line: IndexRow, shape: MessageLayout, context: DecodingContext = EMPTY_CONTEXT
    ) -> ExchangeMessage:
        return self._message(line.request, line.asked_at, line.asked_size, line.asked_ns, shape, context)

    def _response(
        self, line: IndexRow, shape: MessageLayout, context: DecodingContext = EMPTY_CONTEXT
    ) -> ExchangeMessage:
        return self._message(line.response, line.answered_at, line.answered_size, line.answered_ns, shape, context)

    def _message(
        self, frame: int, address: int, size: int, time_ns: int, shape: MessageLayout, context: DecodingContext
    ) -> ExchangeMessage:
        if address >= 0:
            data, whole = bytes(self._store.read(address, size)), size
        else:
            data, whole = self._session.frames.read(frame)
        return ExchangeMessage.of_frame(time_ns, size, data, whole, shape, context, show_secrets=self._show_secrets)

    def _exchange(self, number: int, line: IndexRow, row: ExchangeRow) -> Exchange:
        key, version = line.api_key, line.version
        context = self._context(line)
        if line.request == NO_FRAME:
            return self._orphan(line, row._replace(correlation_id=line.correlation_id), context)
        known = api(key)
        newer = known is not None and version > known.versions.high
        data = self._session.frames.read(line.request)[0] if newer else b""
        request = self._request(line, request_layout(key, version, data), context)
        if key == ApiKey.ENVELOPE:
            context = replace(context, enveloped=enveloped(request.body))
        response = None
        if line.response != NO_FRAME:
            response = self._response(line, self._response_shape(key, version, line.response, newer=newer), context)
        facts = ExchangeRow(
            row.number, row.kind, row.time_ns, row.connection, row.client, row.server,
            known.name if known else f"API {key}", version, line.correlation_id,
            self._session.client_ids.texts[line.client_id], line.asked_size,
            None if response is None else line.answered_size,
            None if response is None else line.answered_ns - line.asked_ns, "", None,
        )  # fmt: skip
        own = self._exchange_findings(line.connection, line.flags, key, request, response)
        if response is not None and self._is_cut_short(line.response, response):
            own.insert(0, CUT_SHORT)
        exchange = Exchange(facts, key, request, response, own, _words)
        if key == ApiKey.FETCH:
            exchange.fetched = self._fetched(number, request, context)
        return exchange

    def _orphan(self, line: IndexRow, row: ExchangeRow, context: DecodingContext) -> Exchange:
        """A response without its request: as the user said what it answers, or by inference, and labelled so."""
        if self.asked is not None:
            return self._answer_to(self.asked, line, row, context)
        verdict = self._inference.verdict(line.response, line.connection, self._session.generation)
        response = self._response(line, shape(verdict), context)
        exchange = Exchange(row, None, None, response, [ORPHAN])
        row = row._replace(api=UNKNOWN_API, response_size=response.size, info=ORPHAN.message)
        best = claimed(verdict)
        if best is not None:
            exchange.own_findings += message_rules.MESSAGE_RULES.find(best.layout.api.key, None, response)
            words = info(None, response, exchange.own_findings, context.topic_names)
            told = ": ".join(filter(None, (f"by inference, {certainty(verdict)}", words)))
            row = row._replace(api=f"{best.layout.api.name}?", version=best.version, info=told)
        exchange.row = row._replace(severity=worst(exchange.findings))
        return exchange

    def _answer_to(
        self, asked: tuple[int, int], line: IndexRow, row: ExchangeRow, context: DecodingContext
    ) -> Exchange:
        """A response alone, to a request that the user named."""
        key, version = asked
        response = self._response(line, self._response_shape(key, version, line.response, newer=False), context)
        finding = Finding("orphan", Severity.NOTE, f"read as a response to {api_name(key)} v{version}", "response")
        exchange = Exchange(row, key, None, response, [finding, *message_rules.MESSAGE_RULES.find(key, None, response)])
        exchange.row = row._replace(
            api=api_name(key), version=version, response_size=response.size,
            info=info(None, response, exchange.own_findings, context.topic_names), severity=worst(exchange.findings),
        )  # fmt: skip
        return exchange

    def _fetched(self, number: int, request: ExchangeMessage, context: DecodingContext) -> dict[str, list[int]] | None:
        """The partitions that an incremental Fetch asks for; None for what is no such thing."""
        if not is_incremental(request.body):
            return None
        found = self._sessions.partitions(number, self._session.generation)
        if found is None:
            return None
        return {context.topic_names.get(topic, topic): sorted(numbers) for topic, numbers in found.items()}

    def _response_shape(self, key: int, version: int, frame: int, *, newer: bool) -> MessageLayout:
        """ApiVersions alone may be answered in another version than asked: its bytes tell. They also tell whether a
        version `newer` than those known reads as the newest."""
        looks = key == ApiKey.API_VERSIONS or newer
        return response_layout(key, version, self._session.frames.read(frame)[0] if looks else b"")

    def _context(self, line: IndexRow) -> DecodingContext:
        """What the conversation says for a row."""
        return self._session.knowledge.context(line.connection, line.packet)

    def _token(self, line: IndexRow, row: ExchangeRow) -> Exchange:
        """A bare token of a login, of one side."""
        context = self._context(line)
        asked = self._request(line, SASL_TOKEN, context) if line.request != NO_FRAME else None
        answered = self._response(line, SASL_TOKEN, context) if line.response != NO_FRAME else None
        side = "client" if asked is not None else "server"
        exchange = Exchange(
            row._replace(
                api="SASL token",
                request_size=asked.size if asked is not None else None,
                response_size=answered.size if answered is not None else None,
                info=" ".join(filter(None, (context.mechanism, f"token of the {side}, without a header"))),
            ),
            None, asked, answered,
        )  # fmt: skip
        exchange.row = exchange.row._replace(severity=worst(exchange.findings))
        return exchange

    def _between_frames(self, line: IndexRow, row: ExchangeRow, kind: RowKind) -> Exchange:
        """A gap, or bytes without frames."""
        asks = line.request != NO_FRAME
        size = line.asked_size if asks else line.answered_size
        words = "were not captured" if kind is RowKind.GAP else "without a frame that could be told"
        finding = Finding(kind.name.lower(), Severity.ERROR, f"{size:,} bytes {words}")
        row = row._replace(info=finding.message, severity=finding.severity)
        message = None
        if kind is RowKind.UNPARSED:
            message = self._request(line, UNFRAMED) if asks else self._response(line, UNFRAMED)
        if asks:
            return Exchange(row._replace(request_size=size), None, message, None, [finding])
        return Exchange(row._replace(response_size=size), None, None, message, [finding])

    def _stranger(self, row: ExchangeRow, kind: RowKind) -> Exchange:
        """A connection on Kafka's port that speaks something else."""
        connection = row.connection - 1
        side = self._client_side(connection)
        sizes = [self._ignored(2 * connection + n) for n in (side, 1 - side)]
        words = "encrypted: TLS" if kind is RowKind.TLS else self._strange_words(connection)
        finding = Finding(kind.name.lower(), Severity.WARNING, words)
        row = row._replace(request_size=sizes[0], response_size=sizes[1], info=words, severity=finding.severity)
        return Exchange(row, None, None, None, [finding])

    def _strange_words(self, connection: int) -> str:
        """What a connection on Kafka's port is."""
        spoken = OtherProtocol(int(self._session.recogniser.spoken.values[connection]))
        if spoken > OtherProtocol.UNKNOWN:
            return f"{spoken.words} on Kafka's port, not Kafka"
        if spoken is OtherProtocol.DOUBTFUL:
            return "on Kafka's port, but no frame of Kafka's could be told in it"
        return "on Kafka's port, but not Kafka"

    def _exchange_findings(
        self, connection: int, flags: int, key: int, request: ExchangeMessage, response: ExchangeMessage | None
    ) -> list[Finding]:
        """Findings that are neither of the request's bytes nor of the response's alone."""
        found = message_rules.MESSAGE_RULES.find(key, request, response)
        if response is not None:
            return found
        if flags & Flag.NO_RESPONSE_EXPECTED:
            return [ACKS_0, *found]
        return [CLOSED if any(self._flows.ended(connection)) else UNANSWERED, *found]

    def _is_cut_short(self, frame: int, response: ExchangeMessage) -> bool:
        """Whether a connection ended in the middle of a response: its end is not there, and nothing came after it."""
        if len(response.data) == response.size or response.whole < len(response.data):
            return False
        frames = self._session.frames
        direction = frames.direction.values[frame]
        later = (frames.direction.values == direction) & (frames.start.values > frames.start.values[frame])
        return any(self._flows.ended(int(direction) >> 1)) and not later.any()


def _words(exchange: Exchange) -> str:
    """The info column of an exchange with a request."""
    request = exchange.request
    assert request is not None
    session = "" if request.body.get("topics") else session_words(exchange.fetched)
    said = info(request, exchange.response, exchange.own_findings, request.context.topic_names)
    words = " · ".join(filter(None, (session, said)))
    return words or next((finding.message for finding in exchange.own_findings), "")


def api_name(key: int) -> str:
    """An API's name, or its number where it is not known."""
    known = api(key)
    return known.name if known else f"API {key}"
