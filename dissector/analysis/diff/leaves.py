"""A message as its leaves: each value with its path, elements of arrays told apart by what identifies them.

A path is a tuple of names and of `Label`s: what stands between the brackets of ``topics[orders].partitions[0]``. An
array is a leaf of its own too, for whether it has elements. A tagged field that the wire lacks has its default, for
that is what it means (KIP-482).

Invariant: values are those of `kinds`: no offset, no time.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from dissector.analysis.diff.kinds import Symbol, Value, Word, value_of
from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, StructPlan, plan
from dissector.protocol.embedded.topics import RECORDS_FIELDS
from dissector.protocol.embedded.values import SUFFIX
from dissector.protocol.records.batch import Batch
from dissector.protocol.records.parts import PartKind, split
from dissector.protocol.schema.model import Field
from dissector.session.exchange import Message


class Label(NamedTuple):
    """Which element of an array."""

    value: Value


Step = str | Label
Path = tuple[Step, ...]
Leaf = tuple[Path, Value]

EMPTY: Final = Word("empty")
FILLED: Final = Word("elements")
TOPIC_ID: Final = "topic_id"
IDENTIFYING: Final = frozenset(
    ("partition", "partition_index", "partition_id", "index", "topic", "topic_id", "name", "topic_name", "api_key",
     "group_id", "node_id", "member_id", "coordinator_key", "key", "config_name")
)  # fmt: skip
"""Fields that tell elements apart where the schema has no key for it."""
NO_NAMES: Final[Mapping[str, str]] = {}
MOST_ELEMENTS: Final = 10_000
"""Of one array; what is behind them is not looked at."""


def leaves(message: Message) -> Iterator[Leaf]:
    """The leaves of a body; of a response's records none, which are their producer's."""
    body = message.shape.body
    if body is None or not message.body:
        return
    values = message.body if body in RECORDS_FIELDS else message.decoded_body
    layout = plan(body, message.shape.body_version)
    yield from _struct(layout, values, (), message.context.topic_names, records=body == "ProduceRequest")


def _struct(
    layout: StructPlan, values: Mapping[str, Any], path: Path, topics: Mapping[str, str], *, records: bool
) -> Iterator[Leaf]:
    for field in (*layout.fields, *layout.tagged):
        name = field.name
        if name in values:
            decoded = values.get(name + SUFFIX)
            if decoded is None or name == TOPIC_ID:
                yield from _field(field, values[name], (*path, name), topics, records=records)
            else:
                yield from _plain(decoded, (*path, name), name)
        elif field.tag is not None and (default := default_of(field.schema)) is not None:
            yield (*path, name), default


def _field(field: FieldPlan, value: Any, path: Path, topics: Mapping[str, str], *, records: bool) -> Iterator[Leaf]:
    layout = field.type
    if isinstance(layout, StructPlan):
        if value is None:
            yield path, None
        else:
            yield from _struct(layout, value, path, topics, records=records)
    elif isinstance(layout, ArrayPlan):
        yield path, None if value is None else FILLED if value else EMPTY
        if value and isinstance(layout.element, StructPlan):
            key = _identity(layout.element)
            for element in value[:MOST_ELEMENTS]:
                label = Label(_named(key.schema, element.get(key.name), topics) if key else None)
                yield from _struct(layout.element, element, (*path, label), topics, records=records)
        elif value:
            inner = (*path, Label(None))
            for element in value[:MOST_ELEMENTS]:
                yield inner, _named(field.schema, element, topics)
    elif field.schema.type == "records":
        if records and isinstance(value, bytes):
            yield from _batches(value, path)
    else:
        yield path, _named(field.schema, value, topics)


def _named(field: Field, value: object, topics: Mapping[str, str]) -> Value:
    """A scalar; a topic's id as its name, where the conversation taught it."""
    if field.snake_name == TOPIC_ID and isinstance(value, str) and value in topics:
        return Symbol("topic", topics[value])
    return value_of(field, field.snake_name, value)


@lru_cache(maxsize=1024)
def _identity(layout: StructPlan) -> FieldPlan | None:
    """The field that tells elements apart: the schema's key, or one of a telling name."""
    keys = [field for field in layout.fields if field.schema.map_key]
    if len(keys) == 1:
        return keys[0]
    return next((field for field in layout.fields if field.name in IDENTIFYING), None)


def _plain(value: object, path: Path, name: str) -> Iterator[Leaf]:
    """What was found inside of bytes: of no layout that is known here."""
    if isinstance(value, dict):
        for inner, content in value.items():
            if inner + SUFFIX not in value:
                yield from _plain(content, (*path, inner), inner)
    elif isinstance(value, list):
        yield path, FILLED if value else EMPTY
        for element in value[:MOST_ELEMENTS]:
            yield from _plain(element, (*path, Label(None)), name)
    else:
        # An assignment's topics are plain texts in an array of that name.
        yield (
            path,
            Symbol("topic", value) if name == "topics" and isinstance(value, str) else value_of(None, name, value),
        )


def _batches(records: bytes, path: Path) -> Iterator[Leaf]:
    """What the headers of record batches say beside the records."""
    for part in split(records):
        if part.kind is PartKind.BATCH:
            batch = Batch.read(records[part.start : part.end])
            yield (*path, "magic"), batch.magic
            yield (*path, "compression"), batch.compression
            yield (*path, "timestamp_type"), batch.timestamp_type
            yield (*path, "transactional"), batch.is_transactional
            yield (*path, "producer_id"), value_of(None, "producer_id", batch.producer_id)
        elif part.kind is PartKind.MESSAGE:
            yield (*path, "magic"), records[part.start + 16]


@lru_cache(maxsize=4096)
def default_of(field: Field) -> Value:
    """The default that the schema states, as a value; None where it states none, or null."""
    raw = field.default
    if raw is None or raw == "null":
        return None
    if isinstance(raw, str) and field.type.startswith(("int", "uint")):
        return value_of(field, field.snake_name, int(raw, 0))
    if isinstance(raw, str) and field.type == "bool":
        return raw.lower() == "true"
    return value_of(field, field.snake_name, raw)


def wildcard(path: Path) -> str:
    """The path without labels: ``topics.partitions.partition``."""
    return ".".join(step for step in path if isinstance(step, str))
