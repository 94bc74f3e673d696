"""From a row of the index to what a person looks at: its words, its two messages, its findings."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from dissector.findings import Finding, Severity
from dissector.protocol.embedded.context import NOTHING_KNOWN, Context
from dissector.protocol.embedded.formats import enveloped
from dissector.protocol.message import API_VERSIONS, SASL_TOKEN, UNFRAMED, Shape, request_shape, response_shape
from dissector.protocol.schema.loader import api
from dissector.session.exchange import UNKNOWN_API, Exchange, Message, Row, worst
from dissector.session.fetch_sessions import FETCH, FetchSessions, is_incremental
from dissector.session.inference import Inference
from dissector.session.recogniser import Flows
from dissector.session.session import Session
from dissector.session.strangers import Protocol
from dissector.session.summary import error_findings, info, session_words
from dissector.session.table import NO_FRAME, Flag, RowKind
from dissector.session.verdicts import certainty, claimed, shape

ORPHAN: Final = Finding("orphan", Severity.WARNING, "response without a request in this capture", "response")
UNANSWERED: Final = Finding("unanswered", Severity.WARNING, "no response in this capture", "request")
CLOSED: Final = Finding("unanswered", Severity.WARNING, "no response before the connection was closed", "request")
CUT_SHORT: Final = Finding(
    "cut-short", Severity.ERROR, "the connection was closed before the response was whole", "response"
)
ACKS_0: Final = Finding("no-response-expected", Severity.NOTE, "acks=0: the broker sends no response", "request")


class Lookup:
    """Decodes rows on demand; keeps none of them."""

    def __init__(
        self,
        session: Session,
        flows: Flows,
        ignored: Callable[[int], int],
        asked: tuple[int, int] | None,
        *,
        show_secrets: bool,
    ) -> None:
        self._show_secrets = show_secrets
        self._session = session
        self._sessions = FetchSessions(session.frames, session.table)
        self._flows = flows
        self._ignored = ignored
        """Bytes of each direction that is not Kafka."""
        self._asked = asked
        """API key and version that a response answers of which the request was not seen."""
        self._inference = Inference(
            session.frames,
            session.table,
            session.knowledge,
            server=lambda connection: self._ends(connection)[1],
            opened=lambda connection: flows.syn_side(connection) >= 0,
        )

    def exchange(self, number: int) -> Exchange:
        """Row `number` of the index, from 0."""
        table = self._session.table
        kind = RowKind(int(table.kind.values[number]))
        request, response = int(table.request.values[number]), int(table.response.values[number])
        row = self._row(number, kind, request if request != NO_FRAME else response)
        if kind is RowKind.EXCHANGE:
            return self._exchange(number, row, request, response)
        if request == response == NO_FRAME:
            return self._stranger(row, kind)
        if kind is RowKind.SASL:
            return self._token(number, row, request, response)
        return self._between_frames(row, kind, request, response)

    def _row(self, number: int, kind: RowKind, frame: int) -> Row:
        """What a row of any kind has."""
        connection = int(self._session.table.connection.values[number])
        if frame == NO_FRAME:
            time_ns = self._flows.first_time_ns(connection)
        else:
            time_ns = int(self._session.frames.time_ns.values[frame])
        client, server = self._ends(connection)
        return Row(
            number + 1, kind.name.lower(), time_ns, connection + 1, client, server,
            kind.name.lower(), None, None, None, None, None, None, "", None,
        )  # fmt: skip

    def _client_side(self, connection: int) -> int:
        recogniser = self._session.recogniser
        side = recogniser.client_side.get(connection)
        if side is None:
            kafka = recogniser.kafka_side(connection)
            return 0 if kafka is None else 1 - kafka
        return side

    def _ends(self, connection: int) -> tuple[str, str]:
        """The client's end and the server's, as `host:port`."""
        ends = [
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self._flows.endpoints(connection)
        ]
        side = self._client_side(connection)
        return ends[side], ends[1 - side]

    def _message(self, frame: int, shape: Shape, context: Context = NOTHING_KNOWN) -> Message | None:
        if frame == NO_FRAME:
            return None
        frames = self._session.frames
        data, whole = frames.read(frame)
        return Message.of_frame(
            int(frames.time_ns.values[frame]), int(frames.size.values[frame]), data, whole, shape, context,
            show_secrets=self._show_secrets,
        )  # fmt: skip

    def _exchange(self, number: int, row: Row, asked: int, answered: int) -> Exchange:
        table = self._session.table
        key, version = int(table.api_key.values[number]), int(table.version.values[number])
        row = row._replace(correlation_id=int(table.correlation_id.values[number]))
        context = self._context(number, row)
        if asked == NO_FRAME:
            return self._orphan(row, answered, context)
        known = api(key)
        newer = known is not None and version > known.versions.high
        data = self._session.frames.read(asked)[0] if newer else b""
        request = self._message(asked, request_shape(key, version, data), context)
        assert request is not None
        context = replace(context, enveloped=enveloped(request.body))
        response = self._message(answered, self._response_shape(key, version, answered, newer=newer), context)
        flags = int(table.flags.values[number])
        exchange = Exchange(row, key, request, response, self._own_findings(row.connection - 1, flags, response))
        if response is not None and self._is_cut_short(answered, response):
            exchange.own_findings.insert(0, CUT_SHORT)
        exchange.fetched = self._fetched(number, key, request, context)
        session = "" if request.body.get("topics") else session_words(exchange.fetched)
        answer = response.body if response else {}
        said = info(request.body, answer, exchange.own_findings, context.topic_names)
        words = " · ".join(filter(None, (session, said)))
        exchange.row = row._replace(
            api=api_name(key),
            version=version,
            client_id=self._session.client_ids.texts[int(table.client_id.values[number])],
            request_size=request.size,
            response_size=response.size if response else None,
            latency_ns=response.time_ns - request.time_ns if response else None,
            info=words or next((finding.message for finding in exchange.own_findings), ""),
            severity=worst(exchange.findings),
        )
        return exchange

    def _orphan(self, row: Row, answered: int, context: Context) -> Exchange:
        """A response without its request: as the user said what it answers, or by inference, and labelled so."""
        if self._asked is not None:
            return self._answer_to(self._asked, row, answered, context)
        verdict = self._inference.verdict(answered, row.connection - 1, self._session.generation)
        response = self._message(answered, shape(verdict), context)
        assert response is not None
        exchange = Exchange(row, None, None, response, [ORPHAN])
        row = row._replace(api=UNKNOWN_API, response_size=response.size, info=ORPHAN.message)
        best = claimed(verdict)
        if best is not None:
            exchange.own_findings += [finding.under("response") for finding in error_findings(response.body)]
            words = info({}, response.body, exchange.own_findings, context.topic_names)
            told = ": ".join(filter(None, (f"by inference, {certainty(verdict)}", words)))
            row = row._replace(api=f"{best.layout.api.name}?", version=best.version, info=told)
        exchange.row = row._replace(severity=worst(exchange.findings))
        return exchange

    def _answer_to(self, asked: tuple[int, int], row: Row, answered: int, context: Context) -> Exchange:
        """A response alone, to a request that the user named."""
        key, version = asked
        response = self._message(answered, self._response_shape(key, version, answered, newer=False), context)
        assert response is not None
        finding = Finding("orphan", Severity.NOTE, f"read as a response to {api_name(key)} v{version}", "response")
        exchange = Exchange(row, key, None, response, [finding, *self._own_findings(row.connection - 1, 0, response)])
        exchange.row = row._replace(
            api=api_name(key), version=version, response_size=response.size,
            info=info({}, response.body, exchange.own_findings, context.topic_names), severity=worst(exchange.findings),
        )  # fmt: skip
        return exchange

    def _fetched(self, number: int, key: int, request: Message, context: Context) -> dict[str, list[int]] | None:
        """The partitions that an incremental Fetch asks for; None for what is no such thing."""
        if key != FETCH or not is_incremental(request.body):
            return None
        found = self._sessions.partitions(number, self._session.generation)
        if found is None:
            return None
        return {context.topic_names.get(topic, topic): sorted(numbers) for topic, numbers in found.items()}

    def _response_shape(self, key: int, version: int, frame: int, *, newer: bool) -> Shape:
        """ApiVersions alone may be answered in another version than asked: its bytes tell. They also tell whether a
        version `newer` than those known reads as the newest."""
        looks = (key == API_VERSIONS or newer) and frame != NO_FRAME
        return response_shape(key, version, self._session.frames.read(frame)[0] if looks else b"")

    def _context(self, number: int, row: Row) -> Context:
        """What the conversation says for row `number`."""
        knowledge = self._session.knowledge
        knowledge.learn(self._session.generation)
        return knowledge.context(row.connection - 1, int(self._session.table.packet.values[number]))

    def _token(self, number: int, row: Row, request: int, response: int) -> Exchange:
        """A bare token of a login, of one side."""
        context = self._context(number, row)
        asked, answered = (self._message(frame, SASL_TOKEN, context) for frame in (request, response))
        side = "client" if asked is not None else "server"
        return Exchange(
            row._replace(
                api="SASL token",
                request_size=asked.size if asked is not None else None,
                response_size=answered.size if answered is not None else None,
                info=" ".join(filter(None, (context.mechanism, f"token of the {side}, without a header"))),
            ),
            None, asked, answered,
        )  # fmt: skip

    def _between_frames(self, row: Row, kind: RowKind, request: int, response: int) -> Exchange:
        """A gap, or bytes without frames."""
        frame = request if request != NO_FRAME else response
        size = int(self._session.frames.size.values[frame])
        words = "were not captured" if kind is RowKind.GAP else "without a frame that could be told"
        finding = Finding(kind.name.lower(), Severity.ERROR, f"{size:,} bytes {words}")
        row = row._replace(info=finding.message, severity=finding.severity)
        message = self._message(frame, UNFRAMED) if kind is RowKind.UNPARSED else None
        if request != NO_FRAME:
            return Exchange(row._replace(request_size=size), None, message, None, [finding])
        return Exchange(row._replace(response_size=size), None, None, message, [finding])

    def _stranger(self, row: Row, kind: RowKind) -> Exchange:
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
        spoken = Protocol(int(self._session.recogniser.spoken.values[connection]))
        if spoken > Protocol.UNKNOWN:
            return f"{spoken.words} on Kafka's port, not Kafka"
        if spoken is Protocol.DOUBTFUL:
            return "on Kafka's port, but no frame of Kafka's could be told in it"
        return "on Kafka's port, but not Kafka"

    def _own_findings(self, connection: int, flags: int, response: Message | None) -> list[Finding]:
        """What only both sides together tell."""
        if response is not None:
            return [finding.under("response") for finding in error_findings(response.body)]
        if flags & Flag.NO_RESPONSE_EXPECTED:
            return [ACKS_0]
        return [CLOSED if any(self._flows.ended(connection)) else UNANSWERED]

    def _is_cut_short(self, frame: int, response: Message) -> bool:
        """Whether a connection ended in the middle of a response: its end is not there, and nothing came after it."""
        if len(response.data) == response.size or response.whole < len(response.data):
            return False
        frames = self._session.frames
        direction = frames.direction.values[frame]
        later = (frames.direction.values == direction) & (frames.start.values > frames.start.values[frame])
        return any(self._flows.ended(int(direction) >> 1)) and not later.any()


def api_name(key: int) -> str:
    """An API's name, or its number where it is not known."""
    known = api(key)
    return known.name if known else f"API {key}"
