"""Adds the contents of bytes fields to plain values: ``"metadata"`` and then ``"metadata_decoded"``.

The input is not changed; if there is nothing to add, it is returned as it is.
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
from dissector.protocol.schema.field_names import TOPIC_ID
from dissector.protocol.schema.loader import alternatives
from dissector.protocol.wire import LimitError

SUFFIX: Final = f"_{DECODED}"
TOPIC_IDS: Final = frozenset((TOPIC_ID,))
Chain = tuple[Mapping[str, Any], ...]


def with_annotations(
    message: str, version: int, values: Values, context: DecodingContext, decode_records: "RecordsDecoder | None" = None
) -> Values:
    """Return the values of a body with embedded formats, decoded records and names of topic ids.

    `decode_records` decodes its `records` fields; by default it is `records_decoder`.
    """
    if message in FORMATS:
        values = with_decoded(message, values, context)
    path = _to_topic_ids(message, version, context)
    if message in RECORDS_FIELDS:
        decode = decode_records or records_decoder(context, named=path is not None)
        values = with_records(message, values, context, decode)
    if path is None:
        return values
    # Contents of bytes have another layout: such a message is searched everywhere.
    unclear = message in FORMATS or alternatives(message, version)
    return cast(Values, _with_topic_names(values, context)) if unclear else _with_topic_names_at(path, values, context)


def _to_topic_ids(message: str, version: int, context: DecodingContext) -> FieldPath | None:
    """Return the path to topic ids, if names of some are known."""
    return field_path(message, version, TOPIC_IDS) if context.topic_names else None


def has_names(message: str, version: int, context: DecodingContext) -> bool:
    """Return whether a message has topic ids, and names of some are known."""
    return _to_topic_ids(message, version, context) is not None


def _with_topic_names_at(path: FieldPath, struct: Values, context: DecodingContext) -> Values:
    """Return a copy of a structure with the names of the topic ids at `path`."""
    changed: Values = {}
    for name, below in path.inner:
        value = struct.get(name)
        if isinstance(value, list):
            changed[name] = [_with_topic_names_at(below, each, context) for each in value]
        elif isinstance(value, dict):
            changed[name] = _with_topic_names_at(below, value, context)
    found = context.topic_names.get(str(struct.get(TOPIC_ID))) if path.here else None
    out = struct | changed if changed else struct
    return out if found is None else _insert_after(out, TOPIC_ID, found)


def _with_topic_names(value: Any, context: DecodingContext) -> Any:
    """Return a copy of any values with the names of all topic ids in them."""
    if isinstance(value, list):
        return [_with_topic_names(each, context) for each in value] if value and isinstance(value[0], dict) else value
    if not isinstance(value, dict):
        return value
    out = {name: _with_topic_names(each, context) for name, each in value.items()}
    name = context.topic_names.get(str(value.get(TOPIC_ID)))
    return out if name is None else _insert_after(out, TOPIC_ID, name)


def with_decoded(message: str, values: Values, context: DecodingContext = EMPTY_CONTEXT, outer: Chain = ()) -> Values:
    """Return the values of a message with the contents of its bytes fields."""
    for path in FORMATS.get(message, ()):
        values = _at(values, path.split("."), (message, path), context, outer)
    return values


def _at(values: Values, names: list[str], place: tuple[str, str], context: DecodingContext, outer: Chain) -> Values:
    """Return a copy of `values`, changed along the path `names`."""
    name, rest = names[0], names[1:]
    value = values.get(name)
    chain = (*outer, values)
    if not rest:
        found = decoded_bytes(value, place, context, chain) if isinstance(value, bytes) else None
        return values if found is None else _insert_after(values, name, found)
    if isinstance(value, list):
        return values | {name: [_at(each, rest, place, context, chain) for each in value]}
    return values | {name: _at(value, rest, place, context, chain)} if isinstance(value, dict) else values


def _insert_after(values: Values, name: str, found: object) -> Values:
    """Return the values with `found` inserted after the field `name`."""
    out: Values = {}
    for each, value in values.items():
        out[each] = value
        if each == name:
            out[name + SUFFIX] = found
    return out


def decoded_bytes(raw: bytes, place: tuple[str, str], context: DecodingContext, chain: Chain) -> Values | None:
    """Return the contents of a bytes field, given by its message and its path; `chain` are the structures around it.
    None if they are not known."""
    try:
        found = match_format(*place, raw, lambda name: _nearest(chain, name), context)
    except LimitError:  # the tree has the finding
        return None
    return None if found is None else read_deep(found, raw, context, chain)


def read_deep(found: EmbeddedMessages | Subtree, raw: bytes, context: DecodingContext, chain: Chain) -> Values | None:
    """Return the values of embedded contents, with those embedded in them."""
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
    """Return the topic's name of a structure that has a topic, by name or by id."""
    name = topic.get("topic") or topic.get("name")
    if isinstance(name, str):
        return name
    topic_id = topic.get("topic_id")
    if topic_id == CLUSTER_METADATA_ID:
        return CLUSTER_METADATA
    return context.topic_names.get(str(topic_id))


def records_with_decoded(data: bytes, topic: str | None, budget: DecompressionBudget | None = None) -> dict[str, Any]:
    """Return a `records` field as an object, with internal topics' records and control records decoded."""
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
"""Returns the bytes of a `records` field as an object, given the structures of its topic and partition."""


def records_decoder(
    context: DecodingContext, budget: DecompressionBudget | None = None, *, named: bool = False
) -> RecordsDecoder:
    """Return the decoder of one message's `records` fields, which share one budget.

    With `named`, the contents of internal records get names of topic ids, too.
    """
    budget = budget or frame_budget()

    def decode(data: bytes, topic: Values, partition: Values) -> Values:
        name = topic_of(topic, context)
        value = records_with_decoded(data, name, budget)
        internal = named and (name in INTERNAL_TOPICS or any(batch.get("control") for batch in value["batches"]))
        return cast(Values, _with_topic_names(value, context)) if internal else value

    return decode


def with_records(
    message: str, values: Values, context: DecodingContext = EMPTY_CONTEXT, decode_records: RecordsDecoder | None = None
) -> Values:
    """Return the values of a body with its `records` fields as objects in place of bytes."""
    name, partitions, field = RECORDS_FIELDS[message].split(".")
    topics = values.get(name)
    if not isinstance(topics, list):
        return values
    to_object = decode_records or records_decoder(context)

    def of_topic(topic: Values) -> Values:
        structs = cast(list[dict[str, Any]], topic.get(partitions))
        if not structs:
            return topic
        return topic | {
            partitions: [
                each | {field: to_object(each[field], topic, each)} if each.get(field) is not None else each
                for each in structs
            ]
        }

    return values | {name: [of_topic(topic) for topic in topics]}
