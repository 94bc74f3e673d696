"""What an exchange shares with others, to follow it from row to row: a partition of a topic, a group and its
generation, a member, a producer and its epoch, a transactional id, a fetch session, a correlation id.

Keys are read from the values of a body by field name, as Kafka has few names for them. A topic with an id on the wire
has its name, if the capture teaches it.

Invariant: an exchange has a key exactly if `follow_keys` returns it. The bytes of a key only save decoding.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from dissector.protocol.schema.field_names import PARTITION_NUMBERS, TOPIC_FIELDS
from dissector.protocol.wire import EncodeError, uuid_bytes

_PARTITIONS: Final = ("partitions", "partition_indexes")
"""Arrays of plain numbers in some messages, of structures or a count in others."""
_GENERATION: Final = ("generation_id", "generation_id_or_member_epoch", "member_epoch")


@dataclass(frozen=True)
class FollowKey:
    """Something that exchanges share. Equal keys mean the same thing."""

    kind: str
    """``topic partition``, ``group``, ``group generation``, ``member``, ``producer``, ``transactional id``,
    ``fetch session``, ``correlation id``."""
    label: str
    """Which one; as on the wire, not cleaned."""
    path: str = field(compare=False, default="")
    """The first field with it: a path that begins with ``request`` or ``response``."""
    marks: tuple[bytes, ...] = field(compare=False, default=())
    """Every frame with the key has one of these bytes."""

    def holds(self, exchange: Exchange) -> bool:
        """Return whether an exchange has the key."""
        return any(key == self for key in _all(exchange))

    def first(self, capture: Capture, rows: Int64) -> int | None:
        """Return the first of these rows, from 0 and in the given order, that has the key; None without one."""
        for number, frames in zip(rows.tolist(), capture.frames.raw_bytes(rows), strict=True):
            if any(mark in frame for frame in frames for mark in self.marks):
                [exchange] = capture.at(range(number, number + 1))
                if self.holds(exchange):
                    return int(number)
        return None


def follow_keys(exchange: Exchange) -> list[FollowKey]:
    """Return the keys of an exchange, each once, in the order of its fields."""
    return list(dict.fromkeys(_all(exchange)))


def _all(exchange: Exchange) -> Iterator[FollowKey]:
    for side in ("request", "response"):
        message = getattr(exchange, side)
        if message is not None:
            yield from _KeyWalk(exchange, side, message.context.topic_names).values(message.body, f"{side}.body", "")
    row = exchange.fields
    if row.correlation_id is not None:
        mark = row.correlation_id.to_bytes(4, "big", signed=True)
        label = f"{row.correlation_id} on C{row.connection}"
        yield FollowKey("correlation id", label, "request.header.correlation_id", (mark,))


class _KeyWalk:
    """Reads the keys from the values of one message."""

    def __init__(self, exchange: Exchange, side: str, names: Mapping[str, str]) -> None:
        self._exchange = exchange
        self._names = names
        self._marks: dict[str, tuple[bytes, ...]] = {}
        """The marks of topics seen so far."""
        request = exchange.request.body if exchange.request is not None else {}
        self._group = _text(request.get("group_id")) if side == "response" else ""
        """A response does not name its group: the request does."""

    def values(self, value: Any, path: str, topic: str) -> Iterator[FollowKey]:
        if isinstance(value, list):
            for number, element in enumerate(value):
                if isinstance(element, dict):
                    yield from self.values(element, f"{path}[{number}]", topic)
        elif isinstance(value, dict):
            topic = self._topic(value) or topic
            yield from self._struct(value, path, topic)
            for name, inner in value.items():
                if isinstance(inner, dict | list) and "base_sequence" not in value:  # records have no keys
                    yield from self.values(inner, f"{path}.{name}", topic)

    def _topic(self, struct: Mapping[str, Any]) -> str:
        named = next((_text(struct.get(name)) for name in TOPIC_FIELDS if _text(struct.get(name))), "")
        return self._names.get(named, "" if named == NO_TOPIC_ID else named)

    def _struct(self, struct: Mapping[str, Any], path: str, topic: str) -> Iterator[FollowKey]:
        if topic:
            yield from self._partitions(struct, path, topic)
        group = _text(struct.get("group_id")) or self._group
        if group:
            yield FollowKey("group", group, f"{path}.group_id", (_bytes(group),))
            for name in _GENERATION:
                if isinstance(struct.get(name), int) and struct[name] >= 0:
                    label = f"{group} generation {struct[name]}"
                    yield FollowKey("group generation", label, f"{path}.{name}", (_bytes(group),))
        for name, kind in (("member_id", "member"), ("transactional_id", "transactional id")):
            if text := _text(struct.get(name)):
                yield FollowKey(kind, text, f"{path}.{name}", (_bytes(text),))
        producer = struct.get("producer_id")
        if isinstance(producer, int) and producer >= 0:
            label = f"{producer} epoch {struct.get('producer_epoch', '?')}"
            yield FollowKey("producer", label, f"{path}.producer_id", (producer.to_bytes(8, "big"),))
        session = struct.get("session_id")
        if isinstance(session, int) and session and self._exchange.fields.api == "Fetch":
            label = f"{session} of {self._exchange.fields.server}"
            yield FollowKey("fetch session", label, f"{path}.session_id", (session.to_bytes(4, "big", signed=True),))

    def _partitions(self, struct: Mapping[str, Any], path: str, topic: str) -> Iterator[FollowKey]:
        for name in PARTITION_NUMBERS:
            if isinstance(struct.get(name), int):
                yield self._partition(topic, struct[name], f"{path}.{name}")
        for name in _PARTITIONS:
            numbers = struct.get(name)
            for at, number in enumerate(numbers if isinstance(numbers, list) else ()):
                if isinstance(number, int):
                    yield self._partition(topic, number, f"{path}.{name}[{at}]")

    def _partition(self, topic: str, number: int, path: str) -> FollowKey:
        if topic not in self._marks:
            self._marks[topic] = self._topic_marks(topic)
        return FollowKey("topic partition", f"{topic}-{number}", path, self._marks[topic])

    def _topic_marks(self, topic: str) -> tuple[bytes, ...]:
        """Return the bytes of a topic on the wire: its name and its ids."""
        ids = [id_ for id_, name in self._names.items() if topic in (id_, name)] or [topic]
        return (_bytes(topic), *filter(None, map(_id_bytes, ids)))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _id_bytes(text: str) -> bytes:
    """Return the bytes of a topic id; empty for other texts."""
    try:
        return uuid_bytes(text)
    except EncodeError:
        return b""
