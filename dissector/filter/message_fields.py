"""Look up field paths: the places in all messages that a path means, with the kind of their values.

``request.topics.name`` begins anywhere in a request, ``request.body.topics.name`` at its top, ``topics.name`` anywhere
on either side, ``request.header.client_id`` in the header. Fields of embedded formats follow ``_decoded``.
"""

from collections.abc import Iterable
from functools import cache
from typing import Final

from dissector.core.times import MILLISECOND
from dissector.exchange.field_paths import DECODED, SIDES, STRUCT, FieldPlace, Path, header_fields, places_named
from dissector.filter.value_types import ValueKind, ValueType
from dissector.protocol.embedded.extra_schemas import extra_schemas
from dissector.protocol.schema.enums import enum_of
from dissector.protocol.schema.loader import entries, message
from dissector.protocol.schema.model import Field

HEADER, BODY = "header", "body"
ANY: Final = "any"
"""The type of fields in embedded formats, which the schema of the message doesn't have."""
_TYPES: Final = {
    STRUCT: ValueType.STRUCT, ANY: ValueType.ANY, "bool": ValueType.BOOLEAN, "float64": ValueType.FLOAT,
    "string": ValueType.TEXT,
    "uuid": ValueType.UUID, "bytes": ValueType.BYTES, "records": ValueType.BYTES,
}  # fmt: skip
_OPAQUE: Final = ("SaslAuthenticateRequest", "SaslAuthenticateResponse", "PushTelemetryRequest")
"""Messages with embedded formats that have no schema."""
_EMBEDDED_KEYS: Final = frozenset(("version", "type", "frame_version", HEADER, BODY))
"""Keys of embedded formats that are not fields of messages."""


def lookup(name: str) -> tuple[FieldPlace, ...]:
    """Return the places that a name means; none for an unknown name."""
    sides, path = _split(name)
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
        place for side in sides for place in places_named(side, path[-1])
        if place.called[-len(path) :] == path and (not anchored or place.called == path)
    ]  # fmt: skip
    return tuple(found) if not rest else _inside(found, rest)


def _split(name: str) -> tuple[tuple[str, ...], Path]:
    first, *rest = name.split(".")
    return ((first,), tuple(rest)) if first in SIDES else (SIDES, (first, *rest))


def _inside(above: Iterable[FieldPlace], rest: Path) -> tuple[FieldPlace, ...]:
    """Return places in the embedded formats of other places, if any format has such fields."""
    return tuple(
        place._replace(path=(*place.path, *rest), called=(*place.called, *rest), type=ANY)
        for place in above
        if place.type == STRUCT and (place.message in _OPAQUE or _names_inside().issuperset(rest))
    )


@cache
def headers(side: str) -> tuple[FieldPlace, ...]:
    """Return the places of a side's header; their message has the name of the side."""
    return tuple(
        FieldPlace(side, side, None, (HEADER, field.snake_name), (HEADER, field.snake_name), field.type,
              field.versions, field)
        for field in header_fields(side)
    )  # fmt: skip


@cache
def _names_inside() -> frozenset[str]:
    """Return the names of all fields that embedded formats have."""
    names = set(_EMBEDDED_KEYS)
    for each in (*(message(entry.name) for entry in entries()), *extra_schemas().values()):
        _add_names(each.fields, names)
    return frozenset(names | {name + DECODED for name in names})


def _add_names(fields: Iterable[Field], names: set[str]) -> None:
    for field in fields:
        names.add(field.snake_name)
        _add_names(field.fields, names)


def value_kind(place: FieldPlace) -> ValueKind:
    """Return the kind of the values at a place."""
    simple = _TYPES.get(place.type)
    if simple is not None:
        return ValueKind(simple, nullable=True)
    name = place.path[-1]
    enum = enum_of(_schema_name(place), ".".join(place.path)) if place.field is not None else None
    if ("timestamp" in name and name != "timestamp_delta") or name.endswith("start_time_ms"):
        return ValueKind(ValueType.TIME, enum, scale=MILLISECOND, nullable=True)
    if name.endswith("_ms"):
        return ValueKind(ValueType.DURATION, enum, scale=MILLISECOND, nullable=True)
    return ValueKind(ValueType.INTEGER, enum, nullable=True)


def _schema_name(place: FieldPlace) -> str:
    return f"{place.side.capitalize()}Header" if place.path[0] == HEADER else place.message
