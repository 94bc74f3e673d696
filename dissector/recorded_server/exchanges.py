"""Recorded exchanges, as a server answers from them: of a capture, or of frames that a program has.

Secrets are not masked: who serves a recording gives clients what was recorded, as an exported capture does. Rows that
are no whole exchange (orphans, gaps, raw tokens, damaged messages) can't answer anybody; they are counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.protocol.codec.reader import DECODE_ERRORS, reader
from dissector.protocol.codec.writer import ZERO_UUID
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import (
    PREFIX,
    REQUEST_ID,
    RESPONSE_ID,
    key_and_version,
    request_layout,
    response_layout,
)
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.recorded_server.entities import Entities, error_in, requested

MOST_BYTES: Final = 1 << 30
"""Bytes of messages that are held; exchanges past it are left out."""


@dataclass(slots=True)
class RecordedExchange:
    """A request and its response, whole and decoded."""

    number: int
    """Of its row, from 1."""
    key: int
    version: int
    request: bytes
    """The frame, its size prefix included; so is the response's."""
    response: bytes | None
    """None where brokers send none, or where it was not captured."""
    connection: int
    time_ns: int
    latency_ns: int
    asked: Values
    answered: Values
    answered_version: int
    """Of the response's body: 0 where a broker lacks the version of ApiVersions (KIP-511)."""
    body_at: int
    """Where the body of the request begins."""
    entities: Entities = field(default_factory=frozenset)
    has_error: bool = False
    is_opaque: bool = False
    """Whether it can't be read, of a newer version or damaged: it answers its own API and version, as it is."""

    @property
    def body(self) -> bytes:
        return self.request[self.body_at :]


@dataclass(slots=True)
class RecordedExchanges:
    """All that can be answered from."""

    exchanges: list[RecordedExchange] = field(default_factory=list)
    left_out: int = 0
    """Rows that are no whole exchange."""
    topics: dict[str, str] = field(default_factory=dict)
    """Names of topics by their ids."""

    def __post_init__(self) -> None:
        for each in self.exchanges:
            learn_topics(each.answered, self.topics)
        for each in self.exchanges:
            each.entities = requested(each.key, each.asked, self.topics)


def recording_of(capture: Capture) -> RecordedExchanges:
    """Read a capture, which shows its secrets, to its end."""
    for _ in () if capture.is_read else capture.read():
        pass
    whole: list[RecordedExchange] = []
    size = 0
    for exchange in capture.at(range(len(capture))):
        found = _of_exchange(exchange) if size < MOST_BYTES else None
        if found is not None:
            size += len(found.request) + len(found.response or b"")
            whole.append(found)
    return RecordedExchanges(whole, len(capture) - len(whole))


def recording_of_frames(frames: Iterable[tuple[bytes, bytes | None]]) -> RecordedExchanges:
    """Take frames of requests and of their responses, size prefixes included. The same request as one without a
    response gets none: whoever chose the frames means it, while a capture often ends before a response."""
    found = [
        _recorded(number, 1, 0, 0, request, response, may_be_silent=True)
        for number, (request, response) in enumerate(frames, 1)
    ]
    whole = [each for each in found if each is not None]
    return RecordedExchanges(whole, len(found) - len(whole))


def learn_topics(body: Values, names: dict[str, str]) -> None:
    """Add the names of topics of a body that has names and ids."""
    for topics in (body.get("topics"), body.get("responses")):
        for each in topics if isinstance(topics, list) else ():
            if isinstance(each, Mapping):
                name, topic_id = each.get("name") or each.get("topic"), each.get("topic_id")
                if isinstance(name, str) and isinstance(topic_id, str) and topic_id != ZERO_UUID:
                    names.setdefault(topic_id, name)


def _of_exchange(exchange: Exchange) -> RecordedExchange | None:
    if exchange.is_stored or exchange.fields.kind != "exchange" or exchange.request is None:
        return None
    if any(each is not None and each.whole != each.size for each in (exchange.request, exchange.response)):
        return None
    request, response = exchange.request, exchange.response
    return _recorded(
        exchange.fields.number, exchange.fields.connection, request.time_ns, exchange.fields.latency_ns or 0,
        request.data, None if response is None else response.data,
    )  # fmt: skip


def _recorded(
    number: int,
    connection: int,
    time_ns: int,
    latency_ns: int,
    request: bytes,
    response: bytes | None,
    *,
    may_be_silent: bool = False,
) -> RecordedExchange | None:
    """Return an exchange; None if it can't be read."""
    if len(request) < REQUEST_ID.stop:
        return None
    key, version = key_and_version(request)
    known = api(key)
    asked, body_at = read_request(request, key, version)
    is_silent = key == ApiKey.PRODUCE and asked is not None and asked.get("acks") == 0
    if response is None and not (is_silent or may_be_silent):
        return None
    if response is not None and len(response) < RESPONSE_ID.stop:
        return None
    answered: Values = {}
    answered_version = version
    is_opaque = asked is None or known is None or not known.versions.contains(version)
    if response is not None and not is_opaque:
        layout = response_layout(key, version, response)
        decoded = read(response, layout)
        is_opaque = layout.body is None or bool(decoded.rest or decoded.partial)
        answered, answered_version = decoded.body, layout.body_version
    if asked is None or is_opaque:
        return RecordedExchange(
            number, key, version, request, response, connection, time_ns, latency_ns, {}, {}, version, REQUEST_ID.stop,
            is_opaque=True,
        )  # fmt: skip
    return RecordedExchange(
        number, key, version, request, response, connection, time_ns, latency_ns, asked, answered, answered_version,
        body_at, has_error=error_in(answered),
    )  # fmt: skip


def read_request(frame: bytes, key: int, version: int) -> tuple[Values | None, int]:
    """Return the body of a request and where it begins; None for one that its layout does not explain."""
    layout = request_layout(key, version)
    if layout.header is None or layout.body is None:
        return None, 0
    try:
        _, at = reader(layout.header, layout.header_version)(frame, PREFIX, len(frame))
        body, end = reader(layout.body, layout.body_version)(frame, at, len(frame))
    except DECODE_ERRORS:
        return None, 0
    return (body if end == len(frame) else None), at
