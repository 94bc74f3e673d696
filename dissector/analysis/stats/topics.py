"""Which topics and partitions a message names, and how many bytes of records it has of each.

The layout says where: a field that the schema calls a topic's name (`entityType` topicName), or `topic_id`; beside it,
or below, an array of partitions. Worked out once a layout, so that a new API needs nothing here.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, ScalarPlan, StructPlan, TypePlan, VariablePlan, plan
from dissector.session.exchange import Message

INDEXES: Final = ("partition_index", "index", "partition", "partition_id", "partition_indexes")
ERRORS: Final = ("error_code", "partition_error_code", "acknowledge_error_code")
TOPIC_ID: Final = "topic_id"
NO_TOPIC_ID: Final = "A" * 22
"""The uuid that stands for none."""
_NO_NAMES: Final = (None, "", NO_TOPIC_ID)


class Named(NamedTuple):
    """A topic, or a partition of it, in a message. `partition` is None for the topic itself."""

    topic: str
    partition: int | None
    bytes: int
    error: int
    """An error code; 0 for none, and in requests."""


class Place(NamedTuple):
    """Where a message has structures that name a topic: the fields to follow from the top, then the fields of each."""

    way: tuple[str, ...]
    names: tuple[str, ...]
    """The first of them that is there says which topic."""
    partitions: tuple[str, ...]
    lists: tuple[str, ...]
    """Arrays of plain names, where the structure has no partitions."""


def named(message: Message) -> Iterator[Named]:
    """All that a message names, in its order."""
    shape = message.shape
    if shape.body is None:
        return
    for place in places(shape.body, shape.body_version):
        for struct in _follow(message.body, place.way):
            for each in place.lists:
                yield from (Named(name, None, 0, 0) for name in struct.get(each) or () if isinstance(name, str))
            topic = next((struct[name] for name in place.names if struct.get(name) not in _NO_NAMES), None)
            if isinstance(topic, str):
                yield from _of_topic(message.context.topic_names.get(topic, topic), struct, place)


def _of_topic(topic: str, struct: Mapping[str, Any], place: Place) -> Iterator[Named]:
    yield Named(topic, None, 0, _error(struct))
    for name in place.partitions:
        for each in struct.get(name) or ():
            if isinstance(each, int):
                yield Named(topic, each, 0, 0)
                continue
            number = next((each[index] for index in INDEXES if index in each), None)
            if isinstance(number, int):
                records = each.get("records")
                yield Named(topic, number, len(records) if isinstance(records, bytes) else 0, _error(each))
    if not place.partitions and isinstance(number := next((struct[i] for i in INDEXES if i in struct), None), int):
        yield Named(topic, number, 0, _error(struct))


def _error(struct: Mapping[str, Any]) -> int:
    return next((code for name in ERRORS if isinstance(code := struct.get(name), int) and code), 0)


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
def places(message: str, version: int) -> tuple[Place, ...]:
    """Where that version of a message names topics."""
    return tuple(_places(plan(message, version), ()))


def _places(layout: StructPlan, way: tuple[str, ...]) -> Iterator[Place]:
    fields = (*layout.fields, *layout.tagged)
    names = tuple(field.name for field in fields if _names_topic(field) and not isinstance(field.type, ArrayPlan))
    lists = tuple(field.name for field in fields if _names_topic(field) and isinstance(field.type, ArrayPlan))
    if names or lists:
        yield Place(way, names, tuple(field.name for field in fields if _holds_partitions(field)), lists)
    for field in fields:
        inner = _struct(field.type)
        if inner is not None:
            yield from _places(inner, (*way, field.name))


def _names_topic(field: FieldPlan) -> bool:
    kind = field.type.element if isinstance(field.type, ArrayPlan) else field.type
    if field.name == TOPIC_ID:
        return isinstance(kind, ScalarPlan)
    return field.schema.entity_type == "topicName" and isinstance(kind, VariablePlan)


def _holds_partitions(field: FieldPlan) -> bool:
    """Whether a field of a structure that names a topic is an array of its partitions."""
    if not isinstance(field.type, ArrayPlan):
        return False
    if isinstance(field.type.element, ScalarPlan):
        return field.name.startswith("partition")
    inner = _struct(field.type)
    return inner is not None and any(each.name in INDEXES and not _struct(each.type) for each in inner.fields)


def _struct(layout: TypePlan) -> StructPlan | None:
    if isinstance(layout, ArrayPlan):
        return _struct(layout.element)
    return layout if isinstance(layout, StructPlan) else None
