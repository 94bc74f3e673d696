"""What an exchange has in common with others, so that one can go along it: a partition of a topic, a group and its
generation, a member, a producer and its epoch, a transactional id, a fetch session, a correlation id.

Read off plain values, wherever they stand in a body: Kafka's names for these are few. Topics are told by name also
where the wire has their ids, as far as the capture teaches the names.

Invariant: an exchange is on a thread exactly if `follow_keys` gives it. What a thread's bytes are only saves decoding.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.exchange.model import Exchange
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from dissector.protocol.wire.writing import EncodeError, uuid_bytes

_TOPIC_NAMES: Final = ("topic", "name", "topic_name", "topic_id")
_PARTITION: Final = ("partition_index", "partition", "partition_id", "index")
_PARTITIONS: Final = ("partitions", "partition_indexes")
"""Arrays of plain numbers in some messages, of structures or a count in others."""
_GENERATION: Final = ("generation_id", "generation_id_or_member_epoch", "member_epoch")


@dataclass(frozen=True)
class FollowKey:
    """One thing in common. Two are equal if it is the same thing."""

    kind: str
    """``topic partition``, ``group``, ``group generation``, ``member``, ``producer``, ``transactional id``,
    ``fetch session``, ``correlation id``."""
    label: str
    """Which one; as the wire has it, not cleaned."""
    path: str = field(compare=False, default="")
    """Where the exchange says so first: a path that begins with ``request`` or ``response``."""
    marks: tuple[bytes, ...] = field(compare=False, default=())
    """Every frame on it has one of these."""

    def holds(self, exchange: Exchange) -> bool:
        """Whether an exchange is on it."""
        return any(thread == self for thread in _all(exchange))

    def first(self, capture: Capture, rows: Int64) -> int | None:
        """The first of these rows, from 0, in the order given, that is on it."""
        for number, frames in zip(rows.tolist(), capture.index.raw_frames(rows), strict=True):
            if any(mark in frame for frame in frames for mark in self.marks):
                [exchange] = capture.at(range(number, number + 1))
                if self.holds(exchange):
                    return int(number)
        return None


def follow_keys(exchange: Exchange) -> list[FollowKey]:
    """All that an exchange is on, each once, in the order in which it says so."""
    return list(dict.fromkeys(_all(exchange)))


def _all(exchange: Exchange) -> Iterator[FollowKey]:
    for side in ("request", "response"):
        message = getattr(exchange, side)
        if message is not None:
            yield from _KeyWalk(exchange, side, message.context.topic_names).values(message.body, f"{side}.body", "")
    facts = exchange.fields
    if facts.correlation_id is not None:
        mark = facts.correlation_id.to_bytes(4, "big", signed=True)
        label = f"{facts.correlation_id} on C{facts.connection}"
        yield FollowKey("correlation id", label, "request.header.correlation_id", (mark,))


class _KeyWalk:
    """Through the values of one message."""

    def __init__(self, exchange: Exchange, side: str, names: Mapping[str, str]) -> None:
        self._exchange = exchange
        self._names = names
        self._marks: dict[str, tuple[bytes, ...]] = {}
        """Of topics that were met."""
        asked = exchange.request.body if exchange.request is not None else {}
        self._group = _text(asked.get("group_id")) if side == "response" else ""
        """A response does not say which group it is about: its request does."""

    def values(self, value: Any, path: str, topic: str) -> Iterator[FollowKey]:
        if isinstance(value, list):
            for number, element in enumerate(value):
                if isinstance(element, dict):
                    yield from self.values(element, f"{path}[{number}]", topic)
        elif isinstance(value, dict):
            topic = self._topic(value) or topic
            yield from self._struct(value, path, topic)
            for name, inner in value.items():
                if isinstance(inner, dict | list) and "base_sequence" not in value:  # records are on no other thread
                    yield from self.values(inner, f"{path}.{name}", topic)

    def _topic(self, struct: Mapping[str, Any]) -> str:
        named = next((_text(struct.get(name)) for name in _TOPIC_NAMES if _text(struct.get(name))), "")
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
        for name in _PARTITION:
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
        """A topic on the wire: its name, and its ids."""
        ids = [id_ for id_, name in self._names.items() if topic in (id_, name)] or [topic]
        return (_bytes(topic), *filter(None, map(_id_bytes, ids)))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _id_bytes(text: str) -> bytes:
    """The bytes of a topic id; none of what is no id."""
    try:
        return uuid_bytes(text)
    except EncodeError:
        return b""
