"""Which topics and partitions a message names, and how many bytes of records it has of each.

The layout says where: a field that the schema calls a topic's name (`entityType` topicName), or `topic_id`; beside it,
or below, an array of partitions. Worked out once a layout, so that a new API needs nothing here.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan, VariablePlan, plan

INDEXES: Final = ("partition_index", "index", "partition", "partition_id")
ERRORS: Final = ("error_code", "partition_error_code", "acknowledge_error_code")
TOPIC_ID: Final = "topic_id"
NO_TOPIC_ID: Final = "A" * 22
"""The uuid that stands for none."""
_NO_NAMES: Final = (None, "", NO_TOPIC_ID)


class TopicMention(NamedTuple):
    """A topic, or a partition of it, in a message. `partition` is None for the topic itself."""

    topic: str
    partition: int | None
    bytes: int
    error: int
    """An error code; 0 for none, and in requests."""


class PartitionFields(NamedTuple):
    """An array of partitions: its field; in each of its structures the field with the number, with records, with an
    error code; None for what they lack. Without a number it is an array of numbers."""

    field: str
    number: str | None = None
    records: str | None = None
    error: str | None = None


class TopicStruct(NamedTuple):
    """Where a message has structures that name a topic: the fields to follow from the top, then the fields of each."""

    way: tuple[str, ...]
    names: tuple[str, ...]
    """The first of them that is there says which topic."""
    lists: tuple[str, ...]
    """Arrays of plain names."""
    parts: tuple[PartitionFields, ...]
    own: PartitionFields
    """What the structure has beside the name: an error of the topic's, or of the one partition that it is about."""


def topic_mentions(message: ExchangeMessage) -> Iterator[TopicMention]:
    """All that a message names, in its order."""
    shape = message.shape
    if shape.body is None:
        return
    for place in topic_structs(shape.body, shape.body_version):
        for struct in _follow(message.body, place.way):
            for each in place.lists:
                yield from (TopicMention(name, None, 0, 0) for name in struct.get(each) or () if isinstance(name, str))
            for name in place.names:
                topic = struct.get(name)
                if topic not in _NO_NAMES:
                    yield from _mentions_of_topic(message.context.topic_names.get(topic, topic), struct, place)
                    break


def _mentions_of_topic(topic: str, struct: Mapping[str, Any], place: TopicStruct) -> Iterator[TopicMention]:
    own = place.own
    yield TopicMention(topic, None, 0, struct.get(own.error) or 0 if own.error else 0)
    if own.number is not None and own.number in struct:
        yield TopicMention(topic, struct[own.number], 0, struct.get(own.error) or 0 if own.error else 0)
    for field, number, records, error in place.parts:
        for each in struct.get(field) or ():
            if isinstance(each, int):
                yield TopicMention(topic, each, 0, 0)
            elif number is not None and isinstance(each, dict):  # another layout of the version may have other fields
                size = len(each.get(records) or b"") if records else 0
                yield TopicMention(topic, each.get(number), size, each.get(error) or 0 if error else 0)


def _follow(value: Any, way: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """The structures that a way leads to."""
    if isinstance(value, list):
        for each in value:
            yield from _follow(each, way)
    elif isinstance(value, dict):
        if way:
            yield from _follow(value.get(way[0]), way[1:])
        else:
            yield value


@lru_cache(maxsize=4096)
def topic_structs(message: str, version: int) -> tuple[TopicStruct, ...]:
    """Where that version of a message names topics."""
    return tuple(_topic_structs(plan(message, version), ()))


def _topic_structs(layout: StructPlan, way: tuple[str, ...]) -> Iterator[TopicStruct]:
    fields = (*layout.fields, *layout.tagged)
    names = tuple(field.name for field in fields if _names_topic(field) and not isinstance(field.type, ArrayPlan))
    lists = tuple(field.name for field in fields if _names_topic(field) and isinstance(field.type, ArrayPlan))
    if names or lists:
        parts = tuple(found for field in fields if (found := _partition_array(field)) is not None)
        yield TopicStruct(way, names, lists, parts, _partition_fields(layout, ""))
    for field in fields:
        inner = _element_struct(field.type)
        if inner is not None:
            yield from _topic_structs(inner, (*way, field.name))


def _partition_fields(layout: StructPlan, field: str) -> PartitionFields:
    """What a structure has about a partition."""
    scalars = {each.name for each in (*layout.fields, *layout.tagged) if not _element_struct(each.type)}
    found = (next((name for name in known if name in scalars), None) for known in (INDEXES, ("records",), ERRORS))
    return PartitionFields(field, *found)


def _partition_array(field: FieldPlan) -> PartitionFields | None:
    """The array of partitions that a field of a structure that names a topic is; None for another field."""
    if not isinstance(field.type, ArrayPlan):
        return None
    inner = _element_struct(field.type)
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


def _element_struct(layout: TypePlan) -> StructPlan | None:
    if isinstance(layout, ArrayPlan):
        return _element_struct(layout.element)
    return layout if isinstance(layout, StructPlan) else None
