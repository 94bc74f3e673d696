"""Flatten a message into leaves: each value with its path, array elements labeled by what identifies them.

A path is a tuple of field names and `ElementLabel`s, the parts in brackets of ``topics[orders].partitions[0]``. An
array is also a leaf itself, for whether it has elements. A tagged field that is not on the wire has its default, which
is what its absence means (KIP-482).

Invariants: values are those of `compared_values`: no offset, no time; content that the layout does not expect (another
layout of the same version) is a leaf too, never an exception.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from dissector.analysis.diff.compared_values import (
    POSITION,
    ComparedValue,
    EntityName,
    Placeholder,
    compared_value,
    is_position,
)
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, VariablePlan, plan
from dissector.protocol.embedded.topics import NO_TOPIC_ID, RECORDS_FIELDS
from dissector.protocol.embedded.values import SUFFIX
from dissector.protocol.records.batch import LOG_APPEND_TIME, Batch
from dissector.protocol.records.compression import CODEC_MASK, codec_name
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from dissector.protocol.schema.field_enums import FetchSessionEpoch
from dissector.protocol.schema.field_names import TOPIC_ID
from dissector.protocol.schema.model import Field


class ElementLabel(NamedTuple):
    """Identifies an element of an array."""

    value: ComparedValue


PathStep = str | ElementLabel
LeafPath = tuple[PathStep, ...]
Leaf = tuple[LeafPath, ComparedValue]
ScalarReader = Callable[[object, Mapping[str, str]], ComparedValue]
"""Takes a scalar and the names of topic ids; returns what is compared."""
LeafWalker = Callable[[Any, LeafPath, Mapping[str, str], list[Leaf]], None]
"""Takes a value, its path and the names of topic ids; appends the leaves to a list."""

EMPTY: Final = Placeholder("empty")
NOT_EMPTY: Final = Placeholder("not empty")
NAME: Final = "name"
"""Identifies a topic whose id is the zero uuid."""
IDENTIFYING: Final = frozenset(
    ("partition", "partition_index", "partition_id", "index", "topic", "topic_id", "name", "topic_name", "api_key",
     "group_id", "node_id", "member_id", "coordinator_key", "key", "config_name")
)  # fmt: skip
"""Fields that identify an element if the schema has no map key."""
RESOURCE: Final = "resource_name"
RESOURCE_TYPE: Final = "resource_type"
"""Identify what has configs, together."""
RESOURCE_KINDS: Final[dict[object, str]] = {2: "topic", 32: "group"}
"""Kinds of names by `ConfigResource.Type`."""
RESOURCE_WORDS: Final[dict[object, str]] = {4: "broker", 8: "logger of broker"}
OF_ACLS: Final = frozenset(("acls", "principal"))
"""What resources have that have ACLs and not configs: several may be of one name, and types have other numbers."""
UNLABELED: Final = ElementLabel(None)
SESSION_ID: Final[LeafPath] = ("session_id",)
SESSION_EPOCH: Final[LeafPath] = ("session_epoch",)
NO_SESSION: Final = Placeholder("no session")
NEW_SESSION: Final = Placeholder("new session")
# The final epoch of session 0 asks for all without making a session; of another session, it closes that.
WITHOUT_SESSION: Final = Placeholder("-1 FINAL_EPOCH (full fetch without a session)")
CLOSING: Final = Placeholder("-1 FINAL_EPOCH (closes the session)")
FETCH_LIMITS: Final[frozenset[LeafPath]] = frozenset(
    (name,) for name in ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level")
)
"""What a request that closes a session has no use for: each client puts something else there."""
TOPIC_CREATION: Final[LeafPath] = ("allow_auto_topic_creation",)
"""What a request for no topics has no use for."""
ABOUT: Final = "about "
TIMES_LEFT: Final = frozenset(("max_wait_ms", "timeout_ms"))
"""Times for which a broker may wait. Some clients send what is left until a deadline, a few milliseconds less than the
setting (kafka-go); others what several requests of one call have left of its timeout (Java's admin)."""
LEAST_LEFT_MS: Final = 1_000
TIME_UNITS_MS: Final = ((1_000, 0.05), (100, 0.01))
"""Units in which times are set, and which share of the time may have passed."""
SET_UNIT_MS: Final = 250
"""A multiple of it is set."""
BYTE_LIMITS: Final = frozenset(("max_bytes", "partition_max_bytes"))
RESPONSE_BESIDES: Final = 58
"""Bytes that kafka-go adds to its `MaxBytes` besides those of the topic's name: the response v2 without records."""
SIZE_UNITS: Final = (1_000, 1_024)
"""Sizes are set in such units."""
PRODUCER_FIELDS: Final = ("producer_id", "producer_epoch", "base_sequence")
"""Those of a batch that idempotence sets (KIP-98)."""
MAGIC_OFFSET: Final = 16
"""Where a message of magic 0 or 1 has its magic (KIP-31)."""
INTEGERS: Final = frozenset(("int8", "int16", "int32", "int64", "uint16", "uint32"))
MAX_CACHED: Final = 1_000
USER_DATA: Final = "user_data"
"""What an assignor adds to a subscription or an assignment: Streams has ids and times of the run in it."""
MOST_VERSIONS: Final = 256
"""More than any format of user data has: most begin with a version of four bytes."""
MAX_ELEMENTS: Final = 10_000
"""Elements of one array that are compared; further ones are ignored."""


def message_leaves(message: ExchangeMessage) -> list[Leaf]:
    """Return the leaves of a body. A response's records have none: they depend on their producer."""
    body = message.layout.body
    found: list[Leaf] = []
    if body is not None and message.body:
        values = message.body if body in RECORDS_FIELDS else message.decoded_body
        _walker(body, message.layout.body_version)(values, (), message.context.topic_names, found)
        if body == "MetadataRequest" and values.get("topics") == []:
            found = [each for each in found if each[0] != TOPIC_CREATION]
        if body == "FetchRequest":
            found = [each for each in _with_limits_set(values, found) if not _is_forgotten(each[0])]
            session = _session(values.get("session_id"), values.get("session_epoch"))
            if CLOSING in session.values():
                found = [(path, value) for path, value in found if path not in FETCH_LIMITS]
            return [(path, session.get(path, value)) for path, value in found] if session else found
    return found


def _is_forgotten(path: LeafPath) -> bool:
    """Return whether a leaf says which partition a session no longer needs: that it needs fewer is compared."""
    return path[0] == "forgotten_topics_data" and len(path) > 1


def _with_limits_set(values: Mapping[str, Any], leaves: list[Leaf]) -> list[Leaf]:
    """Return the leaves of a Fetch request; with the limits that a client seems to have set, if it adds what else the
    response has for the one partition that it asks for, which depends on the topic's name."""
    match values.get("topics"):
        case [{"topic": str(topic), "partitions": [_]}]:
            besides = RESPONSE_BESIDES + len(topic.encode(errors="surrogateescape"))
            return [(path, _limit_set(value, besides) if path[-1] in BYTE_LIMITS else value) for path, value in leaves]
    return leaves


def _limit_set(value: ComparedValue, besides: int) -> ComparedValue:
    if isinstance(value, int) and value > besides and not _is_round(value) and _is_round(value - besides):
        return Placeholder(f"{ABOUT}{value - besides}")
    return value


def _is_round(limit: int) -> bool:
    return any(limit % unit == 0 for unit in SIZE_UNITS)


def _session(number: object, epoch: object) -> dict[LeafPath, ComparedValue]:
    """Return what the session id and epoch of a Fetch mean together (KIP-227)."""
    if number == 0:
        if epoch == FetchSessionEpoch.FINAL:
            return {SESSION_ID: NO_SESSION, SESSION_EPOCH: WITHOUT_SESSION}
        return {SESSION_ID: NEW_SESSION}
    return {SESSION_EPOCH: CLOSING} if epoch == FetchSessionEpoch.FINAL else {}


@lru_cache(maxsize=1024)
def _walker(body: str, version: int) -> LeafWalker:
    """Return the walker for one version of a message: built once, like its plan."""
    return _struct(plan(body, version), records=body == "ProduceRequest")


def _struct(layout: StructPlan, *, records: bool) -> LeafWalker:
    """Read scalars here: most leaves are scalars, and this saves a call for each."""
    inside = [
        (field.name, field.name + SUFFIX, _field(field, records=records), _field_reader(field))
        for field in (*layout.fields, *layout.tagged)
    ]
    defaults = [(field.name, default) for field in layout.tagged if (default := default_of(field.schema)) is not None]

    def walk(values: Any, path: LeafPath, topics: Mapping[str, str], found: list[Leaf]) -> None:
        if not isinstance(values, dict):
            found.append((path, compared_value(None, "", values)))
            return
        for name, decoded, inner, reader in inside:
            if name not in values:
                continue
            if decoded in values and name != TOPIC_ID:
                _decoded(values[decoded], (*path, name), name, found)
            elif reader is not None:
                found.append(((*path, name), reader(values[name], topics)))
            else:
                inner(values[name], (*path, name), topics, found)
        for name, default in defaults:
            if name not in values:
                found.append(((*path, name), default))

    return walk


def _field(field: FieldPlan, *, records: bool) -> LeafWalker:
    layout = field.type
    if isinstance(layout, StructPlan):
        return _struct(layout, records=records)
    if isinstance(layout, ArrayPlan):
        return _array(field, layout, records=records)
    return _batches if records and field.schema.type == "records" else _nothing


def _field_reader(field: FieldPlan) -> ScalarReader | None:
    """Return the reader of a field with a single value; None for a field that holds others."""
    is_scalar = isinstance(field.type, ScalarPlan | VariablePlan) and field.schema.type != "records"
    return _scalar_reader(field.schema) if is_scalar else None


def _array(field: FieldPlan, layout: ArrayPlan, *, records: bool) -> LeafWalker:
    element = layout.element
    if isinstance(element, StructPlan):
        inner, key = _struct(element, records=records), _identity(element)
        identity = _scalar_reader(key.schema) if key else None
        name = key.name if key else ""
        name_field = next((field for field in element.fields if field.name == NAME), None)
        name_reader = _scalar_reader(name_field.schema) if name_field else None
    else:
        reader = _scalar_reader(field.schema)

    def walk(value: Any, path: LeafPath, topics: Mapping[str, str], found: list[Leaf]) -> None:
        if not isinstance(value, list):
            found.append((path, compared_value(None, "", value)))
            return
        found.append((path, NOT_EMPTY if value else EMPTY))
        for each in value[:MAX_ELEMENTS]:
            if isinstance(element, StructPlan):
                label = UNLABELED
                if identity and isinstance(each, dict):
                    raw = each.get(name)
                    if raw == NO_TOPIC_ID and name_reader:
                        label = ElementLabel(name_reader(each.get(NAME), topics))
                    elif name == RESOURCE:
                        label = ElementLabel(_resource(each.get(RESOURCE_TYPE), raw))
                    else:
                        label = ElementLabel(identity(raw, topics))
                inner(each, (*path, label), topics, found)
            else:
                found.append(((*path, UNLABELED), reader(each, topics)))

    return walk


def _scalar_reader(field: Field) -> ScalarReader:
    """Return the reader of a field's scalars. A topic id is read as the topic's name, if that is known."""
    name = field.snake_name
    if name == TOPIC_ID:
        return lambda value, topics: (
            EntityName("topic", topics[value])
            if isinstance(value, str) and value in topics
            else compared_value(field, name, value)
        )
    if is_position(name) and field.element_type in INTEGERS:
        return lambda value, _: (
            POSITION if isinstance(value, int) and value >= 0 else compared_value(field, name, value)
        )
    if name in TIMES_LEFT:
        return lambda value, _: _time_left(compared_value(field, name, value))
    known: dict[object, ComparedValue] = {}

    def read(value: object, _: Mapping[str, str]) -> ComparedValue:
        """Read each value once."""
        if not isinstance(value, str | int):
            return compared_value(field, name, value)
        if value not in known:
            if len(known) >= MAX_CACHED:
                known.clear()
            known[value] = compared_value(field, name, value)
        return known[value]

    return read


def _time_left(value: ComparedValue) -> ComparedValue:
    """Return the time that a client seems to have set, if a little of it has passed."""
    if isinstance(value, int) and value >= LEAST_LEFT_MS and value % SET_UNIT_MS:
        for unit, share in TIME_UNITS_MS:
            passed = -value % unit
            if passed <= share * value:
                return Placeholder(f"{ABOUT}{value + passed}")
    return value


def time_set(value: ComparedValue) -> ComparedValue:
    """Return the time that a time left is about; other values as they are."""
    if isinstance(value, Placeholder) and value.text.startswith(ABOUT):
        return int(value.text.removeprefix(ABOUT))
    return value


def _nothing(value: Any, path: LeafPath, topics: Mapping[str, str], found: list[Leaf]) -> None:
    """Ignore a field that is not compared."""


def _identity(layout: StructPlan) -> FieldPlan | None:
    """Return the field that identifies elements: the schema's map key, the name of what has configs, or a field in
    `IDENTIFYING`."""
    by_name = {field.name: field for field in layout.fields}
    keys = [field for field in layout.fields if field.schema.map_key]
    if len(keys) == 1:
        return keys[0]
    if by_name.keys() >= {RESOURCE, RESOURCE_TYPE} and by_name.keys().isdisjoint(OF_ACLS):
        return by_name[RESOURCE]
    return next((field for name, field in by_name.items() if name in IDENTIFYING), None)


def _resource(kind: object, name: object) -> ComparedValue:
    """Return what identifies something that has configs."""
    if kind in RESOURCE_KINDS and isinstance(name, str):
        return EntityName(RESOURCE_KINDS[kind], name)
    return " ".join(filter(None, (RESOURCE_WORDS.get(kind, ""), str(name))))


def _decoded(value: object, path: LeafPath, name: str, found: list[Leaf]) -> None:
    """Add what was decoded inside of bytes, by its values alone: its schema is not known here."""
    if isinstance(value, dict):
        for inner, content in value.items():
            if inner + SUFFIX not in value:
                _decoded(content, (*path, inner.removesuffix(SUFFIX)), inner, found)
    elif isinstance(value, list):
        found.append((path, NOT_EMPTY if value else EMPTY))
        for element in value[:MAX_ELEMENTS]:
            _decoded(element, (*path, UNLABELED), name, found)
    else:
        found.append((path, _decoded_value(name, value)))


def _decoded_value(name: str, value: object) -> ComparedValue:
    if name == "topics" and isinstance(value, str):  # an assignment's topics are texts in an array of that name
        return EntityName("topic", value)
    if name == USER_DATA and isinstance(value, bytes) and value:
        version = int.from_bytes(value[:4], "big")
        return Placeholder(f"data of version {version}" if len(value) >= 4 and version < MOST_VERSIONS else "data")
    return compared_value(None, name, value)


def _batches(value: Any, path: LeafPath, topics: Mapping[str, str], found: list[Leaf]) -> None:
    """Add the fields of record batch headers."""
    records = value if isinstance(value, bytes) else b""
    for part in split_entries(records):
        if part.kind is RecordsEntryKind.BATCH:
            batch = Batch.read(records[part.start : part.end])
            found.append(((*path, "magic"), batch.magic))
            found.append(((*path, "compression"), batch.compression))
            found.append(((*path, "timestamp_type"), batch.timestamp_type))
            found.append(((*path, "transactional"), batch.is_transactional))
            found.extend(((*path, name), compared_value(None, name, getattr(batch, name))) for name in PRODUCER_FIELDS)
        elif part.kind is RecordsEntryKind.MESSAGE:
            magic, attributes = records[part.start + MAGIC_OFFSET : part.start + MAGIC_OFFSET + 2]
            found.append(((*path, "magic"), magic))
            found.append(((*path, "compression"), codec_name(attributes & CODEC_MASK)))
            if magic == 1:
                is_append_time = attributes & LOG_APPEND_TIME
                found.append(((*path, "timestamp_type"), "LogAppendTime" if is_append_time else "CreateTime"))


def default_of(field: Field) -> ComparedValue:
    """Return the schema's default; None if it has none, or null."""
    raw = field.default
    if raw is None or raw == "null":
        return None
    if isinstance(raw, str) and field.type.startswith(("int", "uint")):
        return compared_value(field, field.snake_name, int(raw, 0))
    if isinstance(raw, str) and field.type == "bool":
        return raw.lower() == "true"
    return compared_value(field, field.snake_name, raw)


def path_without_labels(path: LeafPath) -> str:
    """Return ``topics.partitions.partition``."""
    return ".".join(step for step in path if isinstance(step, str))
