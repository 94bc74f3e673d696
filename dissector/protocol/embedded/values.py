"""Plain values with what is inside bytes beside them: ``"metadata"`` and then ``"metadata_decoded"``.

The values given are left as they are; where nothing is inside, they are what comes back.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from dissector.protocol.codec.field_path import FieldPath, field_path
from dissector.protocol.embedded.context import EMPTY_CONTEXT, DecodingContext
from dissector.protocol.embedded.formats import FORMATS, match_format
from dissector.protocol.embedded.messages import DECODED, EmbeddedMessages, Values
from dissector.protocol.embedded.subtree import Subtree
from dissector.protocol.embedded.topics import (
    CLUSTER_METADATA,
    CLUSTER_METADATA_ID,
    INTERNAL_TOPICS,
    NO_FORMAT,
    RECORDS_FIELDS,
    control_record,
)
from dissector.protocol.records.compression import DecompressionBudget
from dissector.protocol.records.to_json import frame_budget, records_object
from dissector.protocol.schema.loader import alternatives

SUFFIX: Final = f"_{DECODED}"
TOPIC_ID: Final = "topic_id"
TOPIC_IDS: Final = frozenset((TOPIC_ID,))
Chain = tuple[Mapping[str, Any], ...]


def with_annotations(
    message: str, version: int, values: Values, context: DecodingContext, opened: "RecordsDecoder | None" = None
) -> Values:
    """The values of a body with all that can be said of it: embedded formats, internal records, names of topic ids.
    Its `records` fields are as they are `opened`, or else as `with_records` does."""
    if message in FORMATS:
        values = with_decoded(message, values, context)
    to = _to_topic_ids(message, version, context)
    if message in RECORDS_FIELDS:
        values = with_records(message, values, context, opened or records_decoder(context, named=to is not None))
    if to is None:
        return values
    # What was found inside of bytes is of another layout: such a message is searched everywhere.
    unclear = message in FORMATS or alternatives(message, version)
    return cast(Values, _with_topic_names(values, context)) if unclear else _with_topic_names_at(to, values, context)


def _to_topic_ids(message: str, version: int, context: DecodingContext) -> FieldPath | None:
    """The way to topic ids, where names of some are known."""
    return field_path(message, version, TOPIC_IDS) if context.topic_names else None


def has_names(message: str, version: int, context: DecodingContext) -> bool:
    """Whether a message has topic ids, and names of some are known."""
    return _to_topic_ids(message, version, context) is not None


def _with_topic_names_at(to: FieldPath, struct: Values, context: DecodingContext) -> Values:
    """A copy of a structure with the names of topic ids, made along the way to them."""
    changed: Values = {}
    for name, below in to.inner:
        value = struct.get(name)
        if isinstance(value, list):
            changed[name] = [_with_topic_names_at(below, each, context) for each in value]
        elif isinstance(value, dict):
            changed[name] = _with_topic_names_at(below, value, context)
    found = context.topic_names.get(str(struct.get(TOPIC_ID))) if to.here else None
    out = struct | changed if changed else struct
    return out if found is None else _insert_after(out, TOPIC_ID, found)


def _with_topic_names(value: Any, context: DecodingContext) -> Any:
    """A copy of whatever values with the names of topic ids anywhere in them."""
    if isinstance(value, list):
        return [_with_topic_names(each, context) for each in value] if value and isinstance(value[0], dict) else value
    if not isinstance(value, dict):
        return value
    out = {name: _with_topic_names(each, context) for name, each in value.items()}
    name = context.topic_names.get(str(value.get(TOPIC_ID)))
    return out if name is None else _insert_after(out, TOPIC_ID, name)


def with_decoded(message: str, values: Values, context: DecodingContext = EMPTY_CONTEXT, outer: Chain = ()) -> Values:
    """The values of a message, and what its bytes fields hold."""
    for path in FORMATS.get(message, ()):
        values = _at(values, path.split("."), (message, path), context, outer)
    return values


def _at(values: Values, names: list[str], place: tuple[str, str], context: DecodingContext, outer: Chain) -> Values:
    """A copy of `values`, changed where the path goes through."""
    name, rest = names[0], names[1:]
    value = values.get(name)
    chain = (*outer, values)
    if not rest:
        found = _decoded(value, place, context, chain) if isinstance(value, bytes) else None
        return values if found is None else _insert_after(values, name, found)
    if isinstance(value, list):
        return values | {name: [_at(each, rest, place, context, chain) for each in value]}
    return values | {name: _at(value, rest, place, context, chain)} if isinstance(value, dict) else values


def _insert_after(values: Values, name: str, found: object) -> Values:
    """The values with what was found after the field that it was found in."""
    out: Values = {}
    for each, value in values.items():
        out[each] = value
        if each == name:
            out[name + SUFFIX] = found
    return out


def _decoded(raw: bytes, place: tuple[str, str], context: DecodingContext, chain: Chain) -> Values | None:
    found = match_format(*place, raw, lambda name: _nearest(chain, name), context)
    return None if found is None else read_deep(found, raw, context, chain)


def read_deep(found: EmbeddedMessages | Subtree, raw: bytes, context: DecodingContext, chain: Chain) -> Values | None:
    """What is inside, and what is inside of that."""
    values = found.read(raw)
    if values is None or isinstance(found, Subtree):
        return values
    for each in found.messages:
        if each.name == DECODED:
            values = with_decoded(each.message, values, context, chain)
        else:
            inner = values[each.name]
            assert isinstance(inner, dict)
            values[each.name] = with_decoded(each.message, inner, context, chain)
    return values


def _nearest(chain: Chain, name: str) -> object:
    return next((values[name] for values in reversed(chain) if values.get(name) is not None), None)


def topic_of(topic: Mapping[str, Any], context: DecodingContext) -> str | None:
    """The name of the topic that a structure is about, by name or by id."""
    name = topic.get("topic") or topic.get("name")
    if isinstance(name, str):
        return name
    topic_id = topic.get("topic_id")
    if topic_id == CLUSTER_METADATA_ID:
        return CLUSTER_METADATA
    return context.topic_names.get(str(topic_id))


def records_with_decoded(data: bytes, topic: str | None, budget: DecompressionBudget | None = None) -> dict[str, Any]:
    """A `records` field as an object, and what the records of internal topics and control batches hold."""
    value = records_object(data, budget or frame_budget())
    of_topic = INTERNAL_TOPICS.get(topic or "")
    for batch in value["batches"]:
        form = control_record if batch.get("control") else of_topic
        if form is None:
            continue
        for number, record in enumerate(batch.get("records") or ()):
            key_value = form(record["key"], record["value"])
            if key_value is not NO_FORMAT:
                batch["records"][number] = _record(record, key_value.key, key_value.value)
    return value


def _record(record: dict[str, Any], key: EmbeddedMessages | None, value: EmbeddedMessages | None) -> dict[str, Any]:
    for name, found in (("key", key), ("value", value)):
        decoded = read_deep(found, record[name], EMPTY_CONTEXT, ()) if found is not None else None
        if decoded is not None:
            record = _insert_after(record, name, decoded)
    return record


RecordsDecoder = Callable[[bytes, Values, Values], Values]
"""Makes an object of the bytes of a `records` field, of this topic and partition."""


def records_decoder(
    context: DecodingContext, budget: DecompressionBudget | None = None, *, named: bool = False
) -> RecordsDecoder:
    """Opens the `records` fields of one message. All share one budget. With `named` what internal records hold has the
    names of topic ids."""
    budget = budget or frame_budget()

    def opened(data: bytes, topic: Values, partition: Values) -> Values:
        called = topic_of(topic, context)
        value = records_with_decoded(data, called, budget)
        inner = named and (called in INTERNAL_TOPICS or any(batch.get("control") for batch in value["batches"]))
        return cast(Values, _with_topic_names(value, context)) if inner else value

    return opened


def with_records(
    message: str, values: Values, context: DecodingContext = EMPTY_CONTEXT, opened: RecordsDecoder | None = None
) -> Values:
    """The values of a body, its `records` fields as objects in place of bytes."""
    name, partitions, field = RECORDS_FIELDS[message].split(".")
    topics = values.get(name)
    if not isinstance(topics, list):
        return values
    to_object = opened or records_decoder(context)

    def of_topic(topic: Values) -> Values:
        held = cast(list[dict[str, Any]], topic[partitions])
        return topic | {
            partitions: [
                each | {field: to_object(each[field], topic, each)} if each.get(field) is not None else each
                for each in held
            ]
        }

    return values | {name: [of_topic(topic) for topic in topics]}
