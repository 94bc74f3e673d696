"""Plain values with what is inside bytes beside them: ``"metadata"`` and then ``"metadata_decoded"``.

The values given are left as they are; where nothing is inside, they are what comes back.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from dissector.protocol.codec.plan import has_field, plan
from dissector.protocol.embedded.context import NOTHING_KNOWN, Context
from dissector.protocol.embedded.formats import FIELDS, inside
from dissector.protocol.embedded.inside import DECODED, Inside, Values
from dissector.protocol.embedded.parts import Parts
from dissector.protocol.embedded.topics import (
    CLUSTER_METADATA,
    CLUSTER_METADATA_ID,
    NOTHING,
    RECORDS_FIELDS,
    TOPICS,
    control,
)
from dissector.protocol.records.compression import Budget
from dissector.protocol.records.objects import budget_of, records_object

SUFFIX: Final = f"_{DECODED}"
Chain = tuple[Mapping[str, Any], ...]


def with_all(message: str, version: int, values: Values, context: Context) -> Values:
    """The values of a body with all that can be said of it: embedded formats, internal records, names of topic ids."""
    values = with_records(message, with_decoded(message, values, context), context)
    return _with_topic_names(values, context) if context.topic_names and _has_topic_ids(message, version) else values


@cache
def _has_topic_ids(message: str, version: int) -> bool:
    return has_field(plan(message, version), "topic_id")


def _with_topic_names(value: Any, context: Context) -> Any:
    if isinstance(value, list):
        return [_with_topic_names(each, context) for each in value] if value and isinstance(value[0], dict) else value
    if not isinstance(value, dict):
        return value
    out = {name: _with_topic_names(each, context) for name, each in value.items()}
    name = context.topic_names.get(str(value.get("topic_id")))
    return out if name is None else _beside(out, "topic_id", name)


def with_decoded(message: str, values: Values, context: Context = NOTHING_KNOWN, outer: Chain = ()) -> Values:
    """The values of a message, and what its bytes fields hold."""
    for path in FIELDS.get(message, ()):
        values = _at(values, path.split("."), (message, path), context, outer)
    return values


def _at(values: Values, names: list[str], place: tuple[str, str], context: Context, outer: Chain) -> Values:
    """A copy of `values`, changed where the path goes through."""
    name, rest = names[0], names[1:]
    value = values.get(name)
    chain = (*outer, values)
    if not rest:
        found = _decoded(value, place, context, chain) if isinstance(value, bytes) else None
        return values if found is None else _beside(values, name, found)
    if isinstance(value, list):
        return values | {name: [_at(each, rest, place, context, chain) for each in value]}
    return values | {name: _at(value, rest, place, context, chain)} if isinstance(value, dict) else values


def _beside(values: Values, name: str, found: object) -> Values:
    """The values with what was found after the field that it was found in."""
    out: Values = {}
    for each, value in values.items():
        out[each] = value
        if each == name:
            out[name + SUFFIX] = found
    return out


def _decoded(raw: bytes, place: tuple[str, str], context: Context, chain: Chain) -> Values | None:
    found = inside(*place, raw, lambda name: _nearest(chain, name), context)
    return None if found is None else read_deep(found, raw, context, chain)


def read_deep(found: Inside | Parts, raw: bytes, context: Context, chain: Chain) -> Values | None:
    """What is inside, and what is inside of that."""
    values = found.read(raw)
    if values is None or isinstance(found, Parts):
        return values
    for piece in found.pieces:
        if piece.name == DECODED:
            values = with_decoded(piece.message, values, context, chain)
        else:
            inner = values[piece.name]
            assert isinstance(inner, dict)
            values[piece.name] = with_decoded(piece.message, inner, context, chain)
    return values


def _nearest(chain: Chain, name: str) -> object:
    return next((values[name] for values in reversed(chain) if values.get(name) is not None), None)


def topic_of(topic: Mapping[str, Any], context: Context) -> str | None:
    """The name of the topic that a structure is about, by name or by id."""
    name = topic.get("topic") or topic.get("name")
    if isinstance(name, str):
        return name
    topic_id = topic.get("topic_id")
    if topic_id == CLUSTER_METADATA_ID:
        return CLUSTER_METADATA
    return context.topic_names.get(str(topic_id))


def records_with_decoded(data: bytes, topic: str | None, budget: Budget | None = None) -> dict[str, Any]:
    """A `records` field as an object, and what the records of internal topics and control batches hold."""
    value = records_object(data, budget or budget_of())
    of_topic = TOPICS.get(topic or "")
    for batch in value["batches"]:
        form = control if batch.get("control") else of_topic
        if form is None:
            continue
        for number, record in enumerate(batch.get("records") or ()):
            key_value = form(record["key"], record["value"])
            if key_value is not NOTHING:
                batch["records"][number] = _record(record, key_value.key, key_value.value)
    return value


def _record(record: dict[str, Any], key: Inside | None, value: Inside | None) -> dict[str, Any]:
    for name, found in (("key", key), ("value", value)):
        decoded = read_deep(found, record[name], NOTHING_KNOWN, ()) if found is not None else None
        if decoded is not None:
            record = _beside(record, name, decoded)
    return record


def with_records(message: str, values: Values, context: Context = NOTHING_KNOWN) -> Values:
    """The values of a body, its `records` fields as objects in place of bytes. All share one budget."""
    path = RECORDS_FIELDS.get(message)
    topics = values.get(path.split(".")[0]) if path is not None else None
    if path is None or not isinstance(topics, list):
        return values
    name, *inner = path.split(".")
    budget = budget_of()
    return values | {name: [_with_records(topic, inner, topic_of(topic, context), budget) for topic in topics]}


def _with_records(topic: Values, path: list[str], name: str | None, budget: Budget) -> Values:
    partitions_name, field = path
    partitions = topic[partitions_name]
    assert isinstance(partitions, list)
    opened = [
        each | {field: records_with_decoded(each[field], name, budget)} if each.get(field) is not None else each
        for each in partitions
    ]
    return topic | {partitions_name: opened}
