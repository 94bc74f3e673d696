"""What an exchange is about, whatever its API calls it: errors, topics, partitions, groups.

The tables say which fields these are: by Kafka's own marks (`entityType`), by the enum of their numbers, and by names
that mean the same in every message. A new API needs nothing here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dissector.exchange.field_paths import SIDES, STRUCT, FieldPlace, Path, found, places
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.filter.row_columns import IndexRows, Sets
from dissector.filter.value_types import Kind, Type
from dissector.protocol.schema.enums import ERROR_CODE
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.field_enums import CoordinatorType

TOPIC_ID: Final = "topic_id"
PARTITIONS: Final = frozenset(("partition", "partition_index", "partition_id", "partition_indexes"))
_INTEGERS: Final = ("int8", "int16", "int32", "int64")


@dataclass(frozen=True)
class Subject:
    """A field by name that only bodies have. `is_one` tells the places it stands at; `values` makes them of what stands
    there. `also` are values that no field of the message has."""

    name: str
    words: str
    kind: Kind
    is_one: Callable[[FieldPlace], bool]
    values: Callable[[ExchangeMessage, Iterable[object]], Iterable[object]] = lambda _, values: values
    also: Callable[[Exchange], Iterable[object]] = lambda _: ()
    column: Callable[[IndexRows], Sets] | None = None
    """Where it is kept once a row was looked at."""

    @cached_property
    def paths(self) -> Mapping[str, tuple[Path, ...]]:
        """By message."""
        by_message: dict[str, list[Path]] = {}
        for place in self.places:
            by_message.setdefault(place.message, []).append(place.path)
        return {name: tuple(some) for name, some in by_message.items()}

    @cached_property
    def places(self) -> tuple[FieldPlace, ...]:
        """All of them, of both sides."""
        return tuple(
            place for side in SIDES for place in places(side)
            if place.api_key is not None and not place.opened and place.type != STRUCT and self.is_one(place)
        )  # fmt: skip

    def of(self, exchange: Exchange) -> Iterator[object]:
        """What an exchange has of it."""
        if exchange.facts.kind != "exchange":
            return
        for message in (exchange.request, exchange.response):
            if message is not None and (to := self.paths.get(message.shape.body or "")):
                yield from self.values(message, [each for path in to for each in found(message.body, path)])
        yield from self.also(exchange)


def _is_error(place: FieldPlace) -> bool:
    name = place.path[-1]
    return place.side == "response" and (name == "error_code" or name.endswith("_error_code"))


def _errors(message: ExchangeMessage, codes: Iterable[object]) -> Iterable[object]:
    """Its errors; of a response that was read and has none, that it has none."""
    errors = [code for code in codes if code]
    return errors or ([ErrorCode.NONE] if message.body else [])


def _is_topic(place: FieldPlace) -> bool:
    marked = place.field is not None and place.field.entity_type == "topicName"
    return marked or place.path[-1] in ("topic", "topic_name", TOPIC_ID)


def _topics(message: ExchangeMessage, values: Iterable[object]) -> Iterable[object]:
    """Names; where the wire has an id, the name that the capture gives it, too."""
    for value in values:
        yield value
        name = message.context.topic_names.get(str(value))
        if name is not None:
            yield name


def _is_partition(place: FieldPlace) -> bool:
    name = place.path[-1]
    if place.type not in _INTEGERS:
        return False
    return (
        name in PARTITIONS
        or (name == "partitions" and place.is_array)
        or (name == "index" and place.path[-2:-1] != () and place.path[-2].startswith("partition"))
    )


def _is_group(place: FieldPlace) -> bool:
    marked = place.field is not None and place.field.entity_type == "groupId"
    return marked or place.path[-1] == "group_id" or _is_coordinator_key(place)


def _is_coordinator_key(place: FieldPlace) -> bool:
    return place.message == "FindCoordinatorRequest" and place.path[-1] in ("key", "coordinator_keys")


def _groups(message: ExchangeMessage, values: Iterable[object]) -> Iterable[object]:
    """Of a request for a coordinator only where it is a group's. Before version 1 all are."""
    return values if message.body.get("key_type", CoordinatorType.GROUP) == CoordinatorType.GROUP else ()


ERROR: Final = Subject(
    "error", "any error of the response, at any depth, by name or code; NONE: it has none",
    Kind(Type.INTEGER, ERROR_CODE), _is_error, _errors, column=IndexRows.error,
)  # fmt: skip
SUBJECTS: Final = (
    ERROR,
    Subject("topic", "any topic, by name, also where the wire has its id", Kind(Type.TEXT), _is_topic, _topics,
            lambda exchange: exchange.fetched or ()),
    Subject("partition", "any partition, by number", Kind(Type.INTEGER), _is_partition,
            also=lambda exchange: [n for numbers in (exchange.fetched or {}).values() for n in numbers]),
    Subject("group", "any consumer group, by name", Kind(Type.TEXT), _is_group, _groups),
)  # fmt: skip
