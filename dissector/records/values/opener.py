"""Opens keys and values of records: whatever they are, and by the schemas that they name.

Invariants:
  * any bytes give a value, in bounded time and memory; what can't be opened is text or bytes, with a finding;
  * without schemas nothing is asked and nothing imported.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from dissector.core import limits
from dissector.core.text import counted
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.messages import EmbeddedMessages
from dissector.protocol.embedded.topics import INTERNAL_TOPICS, control_record
from dissector.protocol.embedded.values import read_deep
from dissector.protocol.records.batch import RecordHeader
from dissector.records.values.json_values import looks_like_json, read_json
from dissector.records.values.opened import (
    BYTES,
    JSON,
    KAFKA,
    NULL,
    PAYLOAD,
    TEXT,
    OpenedValue,
    UnreadableError,
    problem,
)
from dissector.records.values.schema_reference import SUBJECT, SchemaKey, SchemaReference, in_front, in_headers

if TYPE_CHECKING:  # without schemas no reader is needed
    from dissector.records.values.schemas import Schemas

_NO_TEXT: Final = frozenset((*range(9), 11, 12, *range(14, 27), *range(28, 32)))
"""Control characters that text has not: all but tab, line ends, and escape, which a hostile text may have."""
_NOTHING: Final = OpenedValue(NULL, None)
_CONNECT: Final = frozenset(("schema", PAYLOAD))
_DEBEZIUM: Final = frozenset(("before", "after", "source", "op"))
_CLOUD_EVENT: Final = frozenset(("specversion", "id", "source", "type"))
OPERATIONS: Final = {
    "c": "create", "u": "update", "d": "delete", "r": "read", "t": "truncate", "m": "message",
}  # fmt: skip
"""Debezium's operations by their letter."""


class ValueOpener:
    """Opens values, by the schemas of one source if there is one."""

    def __init__(self, schemas: "Schemas | None" = None, bounds: limits.Limits = limits.DEFAULT) -> None:
        self._schemas = schemas
        self._bounds = bounds

    def open(
        self, data: bytes | None, topic: str = "", headers: Sequence[RecordHeader] = (), *, is_key: bool = False
    ) -> OpenedValue:
        """Open a key or a value."""
        if data is None:
            return _NOTHING
        if len(data) > self._bounds.value_bytes:
            words = f"{counted(len(data), 'byte')}: at most {self._bounds.value_bytes:,} are opened"
            return _plain(data)._replace(problem=problem(words, "over-limit"))
        named = in_headers(headers, is_key=is_key) if headers else None
        if named is not None:
            return self._framed(data, named)
        found = in_front(data) if data[:1] == b"\x00" else None
        if found is not None:
            return self._framed(data, found)
        return self._by_subject(data, topic, is_key=is_key) or _as_json(data) or _plain(data)

    def missing(
        self, data: bytes | None, headers: Sequence[RecordHeader] = (), *, is_key: bool = False
    ) -> SchemaKey | None:
        """Return the schema that a registry has to be asked for before a value can be opened; None if it opens at
        once."""
        if self._schemas is None or not self._schemas.is_remote or data is None:
            return None
        found = (in_headers(headers, is_key=is_key) if headers else None) or in_front(data)
        return found.key if found is not None and self._schemas.known(found.key) is None else None

    def fetch(self, key: SchemaKey) -> None:
        """Get a schema, however long that takes."""
        if self._schemas is not None:
            self._schemas.find(key)

    def open_internal(
        self, key: bytes | None, value: bytes | None, topic: str, *, is_control: bool
    ) -> "tuple[OpenedValue, OpenedValue] | None":
        """Open a record of one of Kafka's internal topics, or one that ends a transaction; None for any other."""
        form = control_record if is_control else INTERNAL_TOPICS.get(topic)
        if form is None:
            return None
        found = form(key, value)
        return _of_kafka(found.key, key), _of_kafka(found.value, value)

    def _framed(self, data: bytes, found: SchemaReference) -> OpenedValue:
        """Open data whose schema is named."""
        payload = data[found.start :]
        opened = self._by_schema(payload, found.key, data, found)
        if opened is not None:
            return opened
        inner = _as_json(payload)
        return _plain(data, found.key) if inner is None else inner._replace(schema=found.key.words)

    def _by_schema(
        self, payload: bytes, key: SchemaKey, whole: bytes, front: SchemaReference | None
    ) -> OpenedValue | None:
        """Open data by a schema; None without one."""
        if self._schemas is None:
            return None
        schema = self._schemas.find(key)
        if schema.is_json:
            opened = _as_json(payload)
            return opened and opened._replace(schema=key.words)
        if schema.reader is None:
            words = schema.error or f"{key.words} is not among the schemas"
            opened = _as_json(payload)  # what is plain to see needs no schema
            return opened or _plain(whole, key)._replace(problem=problem(words, "no-schema"))
        try:
            name, value = schema.reader.read(payload, front, self._bounds)
        except UnreadableError as error:
            return _plain(whole, key)._replace(problem=problem(f"{key.words}: {error}"))
        words = f"{key.words} {name}" if name else key.words
        return OpenedValue(schema.reader.form, value, words, envelope(value))

    def _by_subject(self, data: bytes, topic: str, *, is_key: bool) -> OpenedValue | None:
        """Open data without an id by the schema of their topic; None without one. What is plainly JSON is JSON."""
        if self._schemas is None or not topic:
            return None
        key = SchemaKey(SUBJECT, f"{topic}-{'key' if is_key else 'value'}")
        schema = self._schemas.find(key)
        return None if schema.reader is None and not schema.error else self._by_schema(data, key, data, None)


def _as_json(data: bytes) -> OpenedValue | None:
    """Open JSON; None for what is none."""
    if not looks_like_json(data):
        return None
    try:
        value = read_json(data)
    except UnreadableError as error:
        return None if str(error).startswith("not JSON") else _plain(data)._replace(problem=problem(str(error)))
    return OpenedValue(JSON, value, envelope=envelope(value))


def _plain(data: bytes, key: SchemaKey | None = None) -> OpenedValue:
    """Return text or bytes as they are."""
    schema = "" if key is None else key.words
    if _NO_TEXT.isdisjoint(data[:4096]):
        try:
            return OpenedValue(TEXT, data.decode(), schema)
        except UnicodeDecodeError:
            pass
    return OpenedValue(BYTES, data, schema)


def _of_kafka(found: EmbeddedMessages | None, data: bytes | None) -> OpenedValue:
    if data is None:
        return _NOTHING
    values = read_deep(found, data, EMPTY_CONTEXT, ()) if found is not None else None
    if values is None or found is None:
        return _plain(data)
    return OpenedValue(KAFKA, values, " ".join(dict.fromkeys(each.message for each in found.messages)))


def envelope(value: object) -> str:
    """Return the name of the envelope that a value is; empty for any other value. `Connect` is what Kafka Connect's
    JSON converter writes: a schema beside the payload, which may be Debezium's."""
    if not isinstance(value, dict):
        return ""
    names = value.keys()
    if len(names) == 2 and names == _CONNECT and isinstance(value["schema"], dict | None):
        inner = envelope(value[PAYLOAD])
        return f"Connect, {inner}" if inner else "Connect"
    if names >= _DEBEZIUM and isinstance(value["op"], str):
        return f"Debezium {OPERATIONS.get(value['op'], value['op'][:16])}"
    return "CloudEvents" if names >= _CLOUD_EVENT else ""
