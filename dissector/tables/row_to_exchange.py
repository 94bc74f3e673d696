"""Rebuilds exchanges from rows of the tables, so that filters and output formats work on tables too.

Frames are the bytes that were kept, or are encoded from the bodies. The conversation state (names of topics,
protocols of groups, SASL mechanisms) is taken from decoded values beside the bytes in the row.

Invariant: the exchange has the row's info column and findings, and its bodies are those of the row, whatever the frames
decode to.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

import orjson

from dissector.core.finding import Finding, Severity
from dissector.core.json_text import dumps
from dissector.exchange.finding_words import marked, with_words
from dissector.exchange.from_json import REQUEST, RESPONSE, frames_of_exchange, token
from dissector.exchange.model import STORED, UNKNOWN_API, Exchange, ExchangeMessage, ExchangeRow, worst
from dissector.exchange.row_findings import NO_RESPONSE
from dissector.exchange.to_json import PARTIAL_BYTES
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.formats import FORMATS, enveloped
from dissector.protocol.embedded.topics import CLUSTER_METADATA, RECORDS_FIELDS
from dissector.protocol.message import AUTH_BYTES, Decoded, Values
from dissector.protocol.message_layout import (
    SASL_TOKEN,
    UNFRAMED,
    UNKNOWN_RESPONSE,
    MessageLayout,
    request_layout,
    response_layout,
)
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api, api_named
from dissector.protocol.wire import EncodeError
from dissector.storage import indexes, segment
from dissector.tables.packing import as_sent, unpacked
from dissector.tls.session import TlsSession, TlsState

TLS_COLUMNS: Final = (
    "tls_version", "tls_cipher", "tls_sni", "tls_alpn", "tls_principal", "tls_resumed", "tls_state", "tls_ja4",
)  # fmt: skip
"""Of the table `connections`."""


class TableTlsSession(TlsSession):
    """The TLS of a connection as tables have it, without its hellos and certificates: its texts come from cells."""

    cells: Mapping[str, Any]

    @classmethod
    def of(cls, cells: Mapping[str, Any]) -> "TableTlsSession | None":
        """Return the session of a row; None if its connection is not encrypted."""
        if cells.get("tls_state") is None:
            return None
        session = cls(
            TlsState(cells["tls_state"]), is_resumed=cells["tls_resumed"], application_protocol=cells["tls_alpn"]
        )
        session.cells = cells
        return session

    @property
    def version(self) -> str | None:
        return self._text("tls_version")

    @property
    def cipher(self) -> str | None:
        return self._text("tls_cipher")

    @property
    def server_name(self) -> str | None:
        return self._text("tls_sni")

    @property
    def ja4(self) -> str | None:
        return self._text("tls_ja4")

    @property
    def principal(self) -> str | None:
        return self._text("tls_principal")

    def _text(self, name: str) -> str | None:
        found: str | None = self.cells[name]
        return found


Cells = Mapping[str, Any]
"""A row of `exchanges` and of `bodies` by column; `number`, `conn`, `findings` and the file's `path` beside them."""
SUFFIX: Final = "_decoded"
TOPIC_ID: Final = "topic_id"
DECODED_TOKEN: Final = f"{AUTH_BYTES}{SUFFIX}"
MOST_MASKED: Final = 1 << 20
"""Masked bytes of a row that are made again."""
_MECHANISMS: Final = ("GSSAPI", "OAUTHBEARER", "PLAIN", "SCRAM-SHA-256")


class _EveryGroup(dict[str, str]):
    """A mapping with the same protocol for every group."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol

    def get(self, key: object, default: object = None) -> Any:
        return self._protocol


class TableExchange(Exchange):
    """An exchange whose findings are those of its row, cross-message ones included."""

    __slots__ = ()

    @property
    def findings(self) -> list[Finding]:
        return self.row_findings


@dataclass
class RowMessage(ExchangeMessage):
    """A message without bytes, whose values come from the row: its records, or more, were not kept. Bytes in it are
    hex."""

    content: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, message: ExchangeMessage, content: dict[str, Any]) -> Self:
        """Return a message with the contents of a row."""
        return cls(message.time_ns, message.size, b"", 0, message.layout, message.context, content=content)

    def _decode(self) -> Decoded:
        decoded = Decoded(header=self.content.get("header") or {}, rest=bytes.fromhex(self.content.get("rest", "")))
        if PARTIAL_BYTES in self.content:
            decoded.partial = self.decoded_body
            decoded.partial_bytes = bytes.fromhex(self.content[PARTIAL_BYTES])
        else:
            decoded.body = self.decoded_body
        return decoded

    @property
    def decoded_body(self) -> Values:
        return self.content.get("body") or {}

    @property
    def masked_size(self) -> int:
        return int(self.content.get("masked", 0))


def exchange_of_row(cells: Cells) -> Exchange:
    """Return the exchange of a row; of one without the columns of `bodies`, without messages."""
    exchange = _exchange_of_row(cells)
    exchange.tls = TableTlsSession.of(cells)
    return exchange


def _exchange_of_row(cells: Cells) -> Exchange:
    kind = cells["kind"]
    findings = [Finding(f["code"], Severity(f["severity"]), f["message"], f["path"]) for f in cells["findings"] or ()]
    row = ExchangeRow(
        cells["number"], kind, cells["time_ns"], cells["conn"] or 0, cells["client"] or "",
        cells["server"] or cells["path"], cells["api"], cells["api_version"], cells["correlation_id"],
        cells["client_id"], cells["request_size"], cells["response_size"], cells["latency_ns"],
        cells.get("request_transfer_ns"), cells.get("wait_ns"), cells.get("response_transfer_ns"),
        None if kind in STORED else cells["packet"], cells.get("response_packet"),
        with_words(marked(cells["info"] or "", _marks(findings)), [*findings, *NO_RESPONSE]), worst(findings),
    )  # fmt: skip
    if "rest" not in cells:  # a row without its body
        return TableExchange(row, cells["api_key"], None, None, findings)
    if kind != "exchange":
        request, response = _other_messages(cells, row)
        return TableExchange(row, None, request, response, findings)
    messages = messages_of_row(cells)
    exchange = TableExchange(row, cells["api_key"], messages.request, messages.response, findings)
    exchange.fetched = messages.fetched
    return exchange


def _marks(findings: list[Finding]) -> list[Finding]:
    """Return the findings that the info column has beside those of the row itself, by code."""
    if not findings:
        return []
    from dissector.findings.registry import EXAMINATION_CODES  # with all detectors

    return sorted((each for each in findings if each.code in EXAMINATION_CODES), key=lambda each: each.code)


class RowMessages(NamedTuple):
    """The messages of an exchange."""

    request: ExchangeMessage | None
    response: ExchangeMessage | None
    fetched: dict[str, list[int]] | None
    """The partitions of the session of an incremental Fetch."""


def messages_of_row(cells: Cells) -> RowMessages:
    """Return the messages of a row of kind `exchange`, given its columns of `bodies`, and those that name the API and
    the client."""
    request_json, response_json = (orjson.loads(cells[side]) if cells[side] else None for side in (REQUEST, RESPONSE))
    identity = {name: cells[name] for name in ("api_key", "api", "api_version", "correlation_id", "client_id")}
    if identity["api"] == UNKNOWN_API:
        identity["api"] = None
    request = _message(identity, REQUEST, request_json, cells["request_bytes"])
    inner = enveloped(request.body) if request is not None and cells["api_key"] == ApiKey.ENVELOPE else None
    response = _message(identity, RESPONSE, response_json, cells["response_bytes"], inner)
    return RowMessages(request, response, _fetched(request_json))


def stored_exchange(cells: Cells) -> Exchange:
    """Return an exchange that only has its messages, as they are stored: with records packed, and bytes as hex."""
    identity = {name: cells[name] for name in ("api_key", "api", "api_version")}
    contents = {side: orjson.loads(cells[side]) for side in (REQUEST, RESPONSE) if cells[side] is not None}
    row = ExchangeRow(
        0, "exchange", 0, 0, "", "", cells["api"], cells["api_version"], None, None, None, None, None, None, None, None,
        None, None, "", None,
    )  # fmt: skip
    messages = {side: _stored(identity, side, content) for side, content in contents.items()}
    exchange = Exchange(row, cells["api_key"], messages.get(REQUEST), messages.get(RESPONSE))
    exchange.fetched = _fetched(contents.get(REQUEST))
    return exchange


def _stored(identity: dict[str, Any], side: str, content: dict[str, Any]) -> ExchangeMessage:
    layout = _layout(identity, side, b"")
    context = DecodingContext(topic_names=dict(_topic_names(content.get("body"))))
    return RowMessage(content["time_ns"], content["size"], b"", 0, layout, context, content=content)


def _fetched(request: dict[str, Any] | None) -> dict[str, list[int]] | None:
    """Return the partitions of the session of an incremental Fetch."""
    if request is None or "fetch_session" not in request:
        return None
    return {each["topic"]: each["partitions"] for each in request["fetch_session"]}


def _message(
    identity: dict[str, Any], side: str, content: dict[str, Any] | None, kept: bytes | None,
    inner: tuple[int, int] | None = None,
) -> ExchangeMessage | None:  # fmt: skip
    if content is None:
        return None
    data = _frame(identity, side, content, kept)
    layout = _layout(identity, side, data or b"")
    if "masked" in content:
        return _masked(content, layout, data, kept)
    message = ExchangeMessage(
        content["time_ns"], content["size"], data or b"", len(data or b""), layout,
        DecodingContext(topic_names=dict(_topic_names(content.get("body"))), enveloped=inner),
    )  # fmt: skip
    if content.get(PARTIAL_BYTES) == "":  # the bytes were not kept
        return RowMessage.of(message, content)
    if data is not None and (_is_certain(message) or len(data) < content["size"]):
        return message
    if (name := _carrier(identity, side, content)) is not None:
        content = content | {"body": unpacked(content["body"], name)}
    candidates = () if data is None else (message, *_candidates(message))
    return next((each for each in candidates if _matches_row(each, content)), None) or RowMessage.of(message, content)


def _masked(content: dict[str, Any], layout: MessageLayout, data: bytes | None, kept: bytes | None) -> ExchangeMessage:
    """Return a message of which a part is masked, and so is no fields."""
    whole = kept or b""
    body = layout.body if PARTIAL_BYTES in content or content.get("body") else None
    plain = layout._replace(body=body, masked_from=max(0, len(whole) - content["masked"]), findings=())
    plain = plain if content.get("header") else plain._replace(header=None)
    message = ExchangeMessage(content["time_ns"], content["size"], whole, len(whole), plain, masked=True)
    if kept is not None:
        return message
    if data is None:
        return RowMessage.of(message, content)
    context = DecodingContext(topic_names=dict(_topic_names(content.get("body"))))
    end, masked = len(data), bytes(min(content["masked"], MOST_MASKED))  # its size says how much an array may hold
    shown = replace(
        message, data=data + masked, whole=end + len(masked), layout=plain._replace(masked_from=end), context=context
    )
    return RowMessage.of(message, content | {"header": shown.header, "body": shown.decoded_body})


def _carrier(identity: dict[str, Any], side: str, content: dict[str, Any]) -> str | None:
    """Return the name of the body's message in the schema, if it may have records."""
    known = api(identity["api_key"]) if identity["api_key"] is not None else None
    name = None if known is None else known.request if side == "request" else known.response
    return name if content.get("body") and name in RECORDS_FIELDS else None


def _frame(identity: dict[str, Any], side: str, content: dict[str, Any], kept: bytes | None) -> bytes | None:
    """Return the captured bytes of a message; None if they can't be encoded."""
    if kept is not None and len(kept) == content["size"]:
        return kept
    try:
        if (name := _carrier(identity, side, content)) is not None:
            content = content | {"body": as_sent(content["body"], name)}
        found = frames_of_exchange(identity | {side: content})[0 if side == "request" else 1]
    except EncodeError:
        return None
    return found.data if found is not None else None


def _layout(identity: dict[str, Any], side: str, data: bytes) -> MessageLayout:
    key, version = identity["api_key"], identity["api_version"]
    if key is None and identity["api"] is not None:
        known = api_named(identity["api"].removesuffix("?"))
        key = known.key if known is not None else None
    if key is None or version is None:
        return UNKNOWN_RESPONSE
    return request_layout(key, version, data) if side == "request" else response_layout(key, version, data)


def _topic_names(value: object) -> Iterator[tuple[str, str]]:
    """Yield topic ids with the names beside them."""
    if isinstance(value, list):
        for each in value:
            yield from _topic_names(each)
    elif isinstance(value, dict):
        if TOPIC_ID + SUFFIX in value:
            yield value[TOPIC_ID], value[TOPIC_ID + SUFFIX]
        for each in value.values():
            yield from _topic_names(each)


def _is_certain(message: ExchangeMessage) -> bool:
    """Whether a message is certain to decode to the row's values: not if embedded bytes depend on the conversation
    state, nor if the frame has another size than the captured one."""
    return message.layout.body not in FORMATS and len(message.data) == message.size


def _matches_row(message: ExchangeMessage, content: dict[str, Any]) -> bool:
    """Whether a message decodes to the row's values."""
    return _plain(message.decoded_body) == content.get("body")


def _candidates(message: ExchangeMessage) -> Iterator[ExchangeMessage]:
    """Yield the message with other conversation states."""
    for protocol in ("consumer", "connect", "something else"):
        yield replace(message, context=replace(message.context, group_protocols=_EveryGroup(protocol)))
    for mechanism in _MECHANISMS:
        yield replace(message, context=replace(message.context, mechanism=mechanism))


def _plain(value: object) -> object:
    return orjson.loads(dumps(value))


def _other_messages(cells: Cells, row: ExchangeRow) -> tuple[ExchangeMessage | None, ExchangeMessage | None]:
    """Return the messages of a row that is not an exchange."""
    content = orjson.loads(cells["rest"]) if cells["rest"] else {}
    if row.kind in STORED:
        body = {name: value for name, value in content.items() if name != "size"}
        found = entry_of_row(row, body, cells["request_bytes"])
        return found or RowMessage.of(
            ExchangeMessage(row.time_ns, row.request_size or 0, b"", 0, UNFRAMED), {"body": body}
        ), None
    if row.kind != "sasl" and "masked" not in content:
        return None, None
    data = b"" if "masked" in content else token(content).data
    layout = SASL_TOKEN if row.kind == "sasl" else UNFRAMED
    message = ExchangeMessage(row.time_ns, content["size"], data, len(data), layout)
    if "masked" in content:
        message = RowMessage.of(message, content)
    elif DECODED_TOKEN in content:
        decoded = content[DECODED_TOKEN]
        known = (each for each in _candidates(message) if _plain(each.decoded_body.get(DECODED_TOKEN)) == decoded)
        message = next(known, message)
    return (message, None) if content["direction"] == "request" else (None, message)


INDEX: Final = "index"
Body = dict[str, Any]


def entry_of_row(row: ExchangeRow, body: Body, kept: bytes | None) -> ExchangeMessage | None:
    """Return the entry of one of Kafka's own files with the JSON body `body`, its fields in the order of the file; None
    if its bytes were not `kept` and can't be encoded.

    How records are decoded depends on the topic: that of the file's folder, or the metadata topic, which a log also
    shows by its first record. So both are tried, and compared with the row."""
    if row.kind == INDEX:
        found = indexes.entry_of(body)
        return None if found is None else found.message
    data = kept or _written(body)
    if data is None or len(data) != row.request_size:
        return None
    read = (_read(data, body, topic) for topic in (segment.partition_of(row.server)[0], CLUSTER_METADATA))
    return next((each for each in read if kept or orjson.loads(dumps(each.body)) == body), None)


def _read(data: bytes, body: Body, topic: str) -> ExchangeMessage:
    return segment.entry_of(data, body["position"], topic).message


def _written(body: Body) -> bytes | None:
    try:
        return records_bytes({"batches": [body]})
    except EncodeError:
        return None
