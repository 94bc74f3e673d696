"""Walking plain values: what a body has anywhere in it, whatever the API.

`structs` looks everywhere; `structs_with` goes straight to where a layout has certain fields, worked out once a layout.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from dissector.protocol.codec.plan import ArrayPlan, StructPlan, TypePlan, plan
from dissector.protocol.message import Shape, Values
from dissector.protocol.schema.loader import alternatives


def structs(value: object) -> Iterator[Values]:
    """All structures in a body, outermost first."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            if isinstance(inner, dict | list):
                yield from structs(inner)
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        for inner in value:
            yield from structs(inner)


class _Way(NamedTuple):
    """Whether a structure has a field that is looked for, and which of its fields hold others that have."""

    here: bool
    inner: tuple[tuple[str, "_Way"], ...]


def structs_with(shape: Shape, body: Values, fields: frozenset[str]) -> list[Values]:
    """The structures of a body that have one of these fields, outermost first."""
    if shape.body is None or not body:
        return []
    if alternatives(shape.body, shape.body_version):
        return [struct for struct in structs(body) if not fields.isdisjoint(struct)]
    way = _way(shape.body, shape.body_version, fields)
    found: list[Values] = []
    if way is not None:
        _follow(way, body, found)
    return found


def _follow(way: _Way, struct: Values, found: list[Values]) -> None:
    if way.here:
        found.append(struct)
    for name, below in way.inner:
        value = struct.get(name)
        if isinstance(value, list):
            if below.inner:
                for each in value:
                    _follow(below, each, found)
            else:
                found += value
        elif isinstance(value, dict):
            _follow(below, value, found)


@lru_cache(maxsize=4096)
def _way(message: str, version: int, fields: frozenset[str]) -> _Way | None:
    return _way_in(plan(message, version), fields)


def _way_in(layout: TypePlan, fields: frozenset[str]) -> _Way | None:
    """The way through a layout; None where it has no such field."""
    if isinstance(layout, ArrayPlan):
        return _way_in(layout.element, fields)
    if not isinstance(layout, StructPlan):
        return None
    all_fields = (*layout.fields, *layout.tagged)
    ways = ((field.name, _way_in(field.type, fields)) for field in all_fields)
    inner = tuple((name, way) for name, way in ways if way is not None)
    here = any(field.name in fields for field in all_fields)
    return _Way(here, inner) if here or inner else None
