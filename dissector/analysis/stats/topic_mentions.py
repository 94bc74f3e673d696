"""Find the topics and partitions that a message mentions, and which of its records are theirs.

The schema shows where they are: a field of entity type ``topicName``, or `topic_id`; beside it, or below, an array of
partitions. Computed once for each layout, so a new API needs no change here.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from dissector.exchange.field_paths import found
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.plan import (
    ArrayPlan,
    FieldPlan,
    ScalarPlan,
    StructPlan,
    VariablePlan,
    plan,
    struct_of,
)
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from dissector.protocol.message import Values
from dissector.protocol.schema.field_names import PARTITION_NUMBERS, TOPIC_ID

ERRORS: Final = ("error_code", "partition_error_code", "acknowledge_error_code")
_NO_NAMES: Final = (None, "", NO_TOPIC_ID)


class TopicMention(NamedTuple):
    """A topic or a partition in a message. `partition` is None for the topic itself."""

    topic: str
    partition: int | None
    records: int | None
    """The place of its records among those of the message; None for none."""
    error: int
    """An error code; 0 for none, and in requests."""


class PartitionFields(NamedTuple):
    """An array of partitions: its field, and the fields of its elements with the number, the records, the error code;
    None without such a field. Without a number field, the elements are numbers."""

    field: str
    number: str | None = None
    records: str | None = None
    error: str | None = None


class TopicStruct(NamedTuple):
    """Structures that name a topic: the path from the top, and their fields."""

    path: tuple[str, ...]
    names: tuple[str, ...]
    """The first one present names the topic."""
    lists: tuple[str, ...]
    """Arrays of names."""
    partitions: tuple[PartitionFields, ...]
    beside: PartitionFields
    """The fields beside the name: the topic's error, or a single partition."""


def topic_mentions(message: ExchangeMessage, body: Values) -> Iterator[TopicMention]:
    """Yield all topics and partitions of a message, in its order. `body` is its own, with places instead of records."""
    layout = message.layout
    if layout.body is None:
        return
    for struct_fields in topic_structs(layout.body, layout.body_version):
        for struct in found(body, struct_fields.path):
            if not isinstance(struct, dict):
                continue
            for each in struct_fields.lists:
                yield from (
                    TopicMention(name, None, None, 0) for name in struct.get(each) or () if isinstance(name, str)
                )
            for name in struct_fields.names:
                topic = struct.get(name)
                if topic not in _NO_NAMES:
                    yield from _mentions_of_topic(message.context.topic_names.get(topic, topic), struct, struct_fields)
                    break


def _mentions_of_topic(topic: str, struct: Mapping[str, Any], struct_fields: TopicStruct) -> Iterator[TopicMention]:
    beside = struct_fields.beside
    yield TopicMention(topic, None, None, struct.get(beside.error) or 0 if beside.error else 0)
    if beside.number is not None and beside.number in struct:
        yield TopicMention(topic, struct[beside.number], None, struct.get(beside.error) or 0 if beside.error else 0)
    for field, number, records, error in struct_fields.partitions:
        for each in struct.get(field) or ():
            if isinstance(each, int):
                yield TopicMention(topic, each, None, 0)
            elif number is not None and isinstance(each, dict):  # the version's other layout may have other fields
                place = each.get(records) if records else None
                yield TopicMention(topic, each.get(number), place, each.get(error) or 0 if error else 0)


@lru_cache(maxsize=4096)
def topic_structs(message: str, version: int) -> tuple[TopicStruct, ...]:
    """Return the structures of a message version that name topics."""
    return tuple(_topic_structs(plan(message, version), ()))


def _topic_structs(layout: StructPlan, path: tuple[str, ...]) -> Iterator[TopicStruct]:
    fields = (*layout.fields, *layout.tagged)
    names = tuple(field.name for field in fields if _names_topic(field) and not isinstance(field.type, ArrayPlan))
    lists = tuple(field.name for field in fields if _names_topic(field) and isinstance(field.type, ArrayPlan))
    if names or lists:
        parts = tuple(found for field in fields if (found := _partition_array(field)) is not None)
        yield TopicStruct(path, names, lists, parts, _partition_fields(layout, ""))
    for field in fields:
        inner = struct_of(field.type)
        if inner is not None:
            yield from _topic_structs(inner, (*path, field.name))


def _partition_fields(layout: StructPlan, field: str) -> PartitionFields:
    """Return the fields of a structure about a partition."""
    scalars = {each.name for each in (*layout.fields, *layout.tagged) if not struct_of(each.type)}
    known = (PARTITION_NUMBERS, ("records",), ERRORS)
    return PartitionFields(field, *(next((name for name in names if name in scalars), None) for names in known))


def _partition_array(field: FieldPlan) -> PartitionFields | None:
    """Return a field as an array of partitions; None for another field."""
    if not isinstance(field.type, ArrayPlan):
        return None
    inner = struct_of(field.type)
    if inner is None:
        numbers = isinstance(field.type.element, ScalarPlan) and field.name.startswith("partition")
        return PartitionFields(field.name) if numbers else None
    parts = _partition_fields(inner, field.name)
    return parts if parts.number is not None else None


def _names_topic(field: FieldPlan) -> bool:
    kind = field.type.element if isinstance(field.type, ArrayPlan) else field.type
    if field.name == TOPIC_ID:
        return isinstance(kind, ScalarPlan)
    return field.schema.entity_type == "topicName" and isinstance(kind, VariablePlan)
