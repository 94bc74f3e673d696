"""Paths to certain fields of a layout, computed once per layout, so that no body has to be searched for them.

Invariant: `structs_at` returns what a search of the whole body would return (a property test).
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from dissector.protocol.codec.plan import ArrayPlan, StructPlan, TypePlan, plan


class FieldPath(NamedTuple):
    """Which of the wanted fields a structure has (`here`), and which of its fields lead to one (`inner`)."""

    here: tuple[str, ...]
    inner: tuple[tuple[str, "FieldPath"], ...]


@lru_cache(maxsize=4096)
def field_path(message: str, version: int, fields: frozenset[str]) -> FieldPath | None:
    """Return the path to the structures of a message that have one of `fields`, or None if none has."""
    return _path_in(plan(message, version), fields)


def _path_in(layout: TypePlan, fields: frozenset[str]) -> FieldPath | None:
    if isinstance(layout, ArrayPlan):
        return _path_in(layout.element, fields)
    if not isinstance(layout, StructPlan):
        return None
    every = (*layout.fields, *layout.tagged)
    paths = ((field.name, _path_in(field.type, fields)) for field in every)
    inner = tuple((name, below) for name, below in paths if below is not None)
    here = tuple(field.name for field in every if field.name in fields)
    return FieldPath(here, inner) if here or inner else None


def structs_at(path: FieldPath, struct: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return the structures of a body at `path`, outermost first."""
    found: list[dict[str, object]] = []
    _follow(path, struct, found)
    return found


def _follow(path: FieldPath, struct: Any, found: list[dict[str, object]]) -> None:
    if path.here:
        found.append(struct)
    for name, below in path.inner:
        value = struct.get(name)
        if isinstance(value, dict):
            _follow(below, value, found)
        elif value and not below.inner:
            found += value
        elif value:
            for each in value:
                _follow(below, each, found)
