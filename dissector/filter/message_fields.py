"""What a path means: the places in all messages that it leads to, with the kind of values that each has.

``request.topics.name`` begins anywhere in a request, ``request.body.topics.name`` at its top, ``topics.name`` anywhere
on either side, ``request.header.client_id`` in the header. What is inside bytes goes on behind ``_decoded``.
"""

from collections.abc import Iterable
from functools import cache
from typing import Final

from dissector.exchange.field_paths import DECODED, SIDES, STRUCT, FieldPlace, Path, header_fields, places
from dissector.filter.value_types import ValueKind, ValueType
from dissector.protocol.embedded.extra_schemas import extra_schemas
from dissector.protocol.schema.enums import enum_of
from dissector.protocol.schema.loader import entries, message
from dissector.protocol.schema.model import Field

HEADER, BODY = "header", "body"
ANY: Final = "any"
"""The type of what bytes hold, of which the tables of the message say nothing."""
MILLISECOND: Final = 10**6
_TYPES: Final = {
    STRUCT: ValueType.STRUCT, ANY: ValueType.ANY, "bool": ValueType.BOOLEAN, "float64": ValueType.FLOAT,
    "string": ValueType.TEXT,
    "uuid": ValueType.UUID, "bytes": ValueType.BYTES, "records": ValueType.BYTES,
}  # fmt: skip
_FREE: Final = ("SaslAuthenticateRequest", "SaslAuthenticateResponse", "PushTelemetryRequest")
"""Messages of which no table knows what is inside."""
_OF_PARTS: Final = frozenset(("version", "type", "frame_version", HEADER, BODY))
"""What the formats inside of bytes have beside the fields of messages."""


def lookup(name: str) -> tuple[FieldPlace, ...]:
    """The places that a name leads to; none where nothing is called so."""
    sides, path = _parted(name)
    if not path:
        return ()
    if path[0] == HEADER:
        return tuple(place for side in sides for place in headers(side) if place.path == path)
    anchored = path[0] == BODY
    path = path[1:] if anchored else path
    decoded = next((at + 1 for at, each in enumerate(path[:-1]) if each.endswith(DECODED)), len(path))
    path, rest = path[:decoded], path[decoded:]
    if not path:
        return ()
    found = [
        place for side in sides for place in by_last(side).get(path[-1], ())
        if place.called[-len(path) :] == path and (not anchored or place.called == path)
    ]  # fmt: skip
    return tuple(found) if not rest else _inside(found, rest)


def _parted(name: str) -> tuple[tuple[str, ...], Path]:
    first, *rest = name.split(".")
    return ((first,), tuple(rest)) if first in SIDES else (SIDES, (first, *rest))


def _inside(above: Iterable[FieldPlace], rest: Path) -> tuple[FieldPlace, ...]:
    """What is in the bytes of some places, if any format knows such a field."""
    return tuple(
        place._replace(path=(*place.path, *rest), called=(*place.called, *rest), type=ANY)
        for place in above
        if place.type == STRUCT and (place.message in _FREE or _names_inside().issuperset(rest))
    )


@cache
def headers(side: str) -> tuple[FieldPlace, ...]:
    """The places of a side's header; their message is called as the side."""
    return tuple(
        FieldPlace(side, side, None, (HEADER, field.snake_name), (HEADER, field.snake_name), field.type,
              field.versions, field)
        for field in header_fields(side)
    )  # fmt: skip


@cache
def by_last(side: str) -> dict[str, tuple[FieldPlace, ...]]:
    """The places of a side by the last name of what they are called."""
    found: dict[str, list[FieldPlace]] = {}
    for place in places(side):
        found.setdefault(place.called[-1], []).append(place)
    return {name: tuple(some) for name, some in found.items()}


@cache
def _names_inside() -> frozenset[str]:
    """The names of all fields of messages that stand inside of bytes."""
    names = set(_OF_PARTS)
    others = [message(each.name) for each in entries()]
    for each in (*others, *extra_schemas().values()):
        _gather(each.fields, names)
    return frozenset(names | {name + DECODED for name in names})


def _gather(fields: Iterable[Field], names: set[str]) -> None:
    for field in fields:
        names.add(field.snake_name)
        _gather(field.fields, names)


def kind_of(place: FieldPlace) -> ValueKind:
    """The kind of what stands at a place."""
    simple = _TYPES.get(place.type)
    if simple is not None:
        return ValueKind(simple, nullable=True)
    name = place.path[-1]
    enum = enum_of(_table(place), ".".join(place.path)) if place.field is not None else None
    if ("timestamp" in name and name != "timestamp_delta") or name.endswith("start_time_ms"):
        return ValueKind(ValueType.TIME, enum, scale=MILLISECOND, nullable=True)
    if name.endswith("_ms"):
        return ValueKind(ValueType.DURATION, enum, scale=MILLISECOND, nullable=True)
    return ValueKind(ValueType.INTEGER, enum, nullable=True)


def _table(place: FieldPlace) -> str:
    return f"{place.side.capitalize()}Header" if place.path[0] == HEADER else place.message
