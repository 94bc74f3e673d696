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
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.log_entries import LogEntryKind, split_entries
from dissector.protocol.schema.field_enums import FetchSessionEpoch
from dissector.protocol.schema.model import Field


class ElementLabel(NamedTuple):
    """Which element of an array."""

    value: ComparedValue


PathStep = str | ElementLabel
LeafPath = tuple[PathStep, ...]
Leaf = tuple[LeafPath, ComparedValue]
ScalarReader = Callable[[object, Mapping[str, str]], ComparedValue]
"""Takes a scalar, and the names of topic ids."""
LeafWalker = Callable[[Any, LeafPath, Mapping[str, str], list[Leaf]], None]
"""Takes a value, its path, the names of topic ids, and the list that its leaves go to."""

EMPTY: Final = Placeholder("empty")
NOT_EMPTY: Final = Placeholder("elements")
TOPIC_ID: Final = "topic_id"
NAME: Final = "name"
"""Of a topic whose id is that of none."""
IDENTIFYING: Final = frozenset(
    ("partition", "partition_index", "partition_id", "index", "topic", "topic_id", "name", "topic_name", "api_key",
     "group_id", "node_id", "member_id", "coordinator_key", "key", "config_name")
)  # fmt: skip
"""Fields that tell elements apart where the schema has no key for it."""
UNLABELLED: Final = ElementLabel(None)
SESSION_ID: Final[LeafPath] = ("session_id",)
SESSION_EPOCH: Final[LeafPath] = ("session_epoch",)
NO_SESSION: Final = Placeholder("no session")
NEW_SESSION: Final = Placeholder("a new session")
# The final epoch of session 0 asks for all without making a session; of another session, it closes that.
WITHOUT_SESSION: Final = Placeholder("-1 FINAL_EPOCH (a full fetch without a session)")
CLOSING: Final = Placeholder("-1 FINAL_EPOCH (the session is closed)")
MAGIC_AT: Final = 16
"""Where a message of before 0.11 has its version (KIP-31)."""
INTEGERS: Final = frozenset(("int8", "int16", "int32", "int64", "uint16", "uint32"))
MOST_KNOWN: Final = 1_000
MOST_ELEMENTS: Final = 10_000
"""Of one array; what is behind them is not looked at."""


def message_leaves(message: ExchangeMessage) -> list[Leaf]:
    """The leaves of a body; of a response's records none, which are their producer's."""
    body = message.shape.body
    found: list[Leaf] = []
    if body is not None and message.body:
        values = message.body if body in RECORDS_FIELDS else message.decoded_body
        _walker(body, message.shape.body_version)(values, (), message.context.topic_names, found)
        if body == "FetchRequest":
            said = _session(values.get("session_id"), values.get("session_epoch"))
            return [(path, said.get(path, value)) for path, value in found] if said else found
    return found


def _session(number: object, epoch: object) -> dict[LeafPath, ComparedValue]:
    """What a Fetch says of its session, where its two numbers by themselves do not (KIP-227)."""
    if number == 0:
        if epoch == FetchSessionEpoch.FINAL:
            return {SESSION_ID: NO_SESSION, SESSION_EPOCH: WITHOUT_SESSION}
        return {SESSION_ID: NEW_SESSION}
    return {SESSION_EPOCH: CLOSING} if epoch == FetchSessionEpoch.FINAL else {}


@lru_cache(maxsize=1024)
def _walker(body: str, version: int) -> LeafWalker:
    """What walks one version of a message: made once, as its plan is."""
    return _struct(plan(body, version), records=body == "ProduceRequest")


def _struct(layout: StructPlan, *, records: bool) -> LeafWalker:
    """A scalar is taken here, at the cost of one call and not of two: most leaves are."""
    inside = [
        (field.name, field.name + SUFFIX, _field(field, records=records), _scalar(field))
        for field in (*layout.fields, *layout.tagged)
    ]
    defaults = [(field.name, default) for field in layout.tagged if (default := default_of(field.schema)) is not None]

    def walk(values: Any, path: LeafPath, topics: Mapping[str, str], found: list[Leaf]) -> None:
        if not isinstance(values, dict):
            found.append((path, compared_value(None, "", values)))
            return
        for name, decoded, inner, taken in inside:
            if name not in values:
                continue
            if decoded in values and name != TOPIC_ID:
                _plain(values[decoded], (*path, name), name, found)
            elif taken is not None:
                found.append(((*path, name), taken(values[name], topics)))
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


def _scalar(field: FieldPlan) -> ScalarReader | None:
    """What takes a field that is one value; None for one that holds others."""
    plain = isinstance(field.type, ScalarPlan | VariablePlan) and field.schema.type != "records"
    return _taken(field.schema) if plain else None


def _array(field: FieldPlan, layout: ArrayPlan, *, records: bool) -> LeafWalker:
    element = layout.element
    if isinstance(element, StructPlan):
        inner, key = _struct(element, records=records), _identity(element)
        identity = _taken(key.schema) if key else None
        name = key.name if key else ""
        called = next((field for field in element.fields if field.name == NAME), None)
        named = _taken(called.schema) if called else None
    else:
        taken = _taken(field.schema)

    def walk(value: Any, path: LeafPath, topics: Mapping[str, str], found: list[Leaf]) -> None:
        if not isinstance(value, list):
            found.append((path, compared_value(None, "", value)))
            return
        found.append((path, NOT_EMPTY if value else EMPTY))
        for each in value[:MOST_ELEMENTS]:
            if isinstance(element, StructPlan):
                label = UNLABELLED
                if identity and isinstance(each, dict):
                    own = each.get(name)
                    label = ElementLabel(
                        named(each.get(NAME), topics) if own == NO_TOPIC_ID and named else identity(own, topics)
                    )
                inner(each, (*path, label), topics, found)
            else:
                found.append(((*path, UNLABELLED), taken(each, topics)))

    return walk


def _taken(field: Field) -> ScalarReader:
    """What takes a field's scalars; a topic's id is its name, where the conversation taught it."""
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
    known: dict[object, ComparedValue] = {}

    def take(value: object, _: Mapping[str, str]) -> ComparedValue:
        """Of each value, what it is is worked out once."""
        if not isinstance(value, str | int):
            return compared_value(field, name, value)
        if value not in known:
            if len(known) >= MOST_KNOWN:
                known.clear()
            known[value] = compared_value(field, name, value)
        return known[value]

    return take


def _nothing(value: Any, path: LeafPath, topics: Mapping[str, str], found: list[Leaf]) -> None:
    """What is no part of the comparison."""


def _identity(layout: StructPlan) -> FieldPlan | None:
    """The field that tells elements apart: the schema's key, or one of a telling name."""
    keys = [field for field in layout.fields if field.schema.map_key]
    if len(keys) == 1:
        return keys[0]
    return next((field for field in layout.fields if field.name in IDENTIFYING), None)


def _plain(value: object, path: LeafPath, name: str, found: list[Leaf]) -> None:
    """What was found inside of bytes: of no layout that is known here."""
    if isinstance(value, dict):
        for inner, content in value.items():
            if inner + SUFFIX not in value:
                _plain(content, (*path, inner.removesuffix(SUFFIX)), inner, found)
    elif isinstance(value, list):
        found.append((path, NOT_EMPTY if value else EMPTY))
        for element in value[:MOST_ELEMENTS]:
            _plain(element, (*path, UNLABELLED), name, found)
    else:
        # An assignment's topics are plain texts in an array of that name.
        topic = name == "topics" and isinstance(value, str)
        found.append((path, EntityName("topic", str(value)) if topic else compared_value(None, name, value)))


def _batches(value: Any, path: LeafPath, topics: Mapping[str, str], found: list[Leaf]) -> None:
    """What the headers of record batches say beside the records."""
    records = value if isinstance(value, bytes) else b""
    for part in split_entries(records):
        if part.kind is LogEntryKind.BATCH:
            batch = Batch.read(records[part.start : part.end])
            found.append(((*path, "magic"), batch.magic))
            found.append(((*path, "compression"), batch.compression))
            found.append(((*path, "timestamp_type"), batch.timestamp_type))
            found.append(((*path, "transactional"), batch.is_transactional))
            found.append(((*path, "producer_id"), compared_value(None, "producer_id", batch.producer_id)))
        elif part.kind is LogEntryKind.MESSAGE:
            found.append(((*path, "magic"), records[part.start + MAGIC_AT]))


def default_of(field: Field) -> ComparedValue:
    """The default that the schema states, as a value; None where it states none, or null."""
    raw = field.default
    if raw is None or raw == "null":
        return None
    if isinstance(raw, str) and field.type.startswith(("int", "uint")):
        return compared_value(field, field.snake_name, int(raw, 0))
    if isinstance(raw, str) and field.type == "bool":
        return raw.lower() == "true"
    return compared_value(field, field.snake_name, raw)


def path_without_labels(path: LeafPath) -> str:
    """The path without labels: ``topics.partitions.partition``."""
    return ".".join(step for step in path if isinstance(step, str))
