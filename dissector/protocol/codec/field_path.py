"""Where a layout has certain fields, worked out once: so that no body need be searched for them.

Invariant: what `structs_at` finds is what a search of the whole body would find: a property test.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from dissector.protocol.codec.plan import ArrayPlan, StructPlan, TypePlan, plan


class FieldPath(NamedTuple):
    """Whether a structure has a field that is looked for, and which of its fields hold structures that lead to one."""

    here: bool
    inner: tuple[tuple[str, "FieldPath"], ...]


@lru_cache(maxsize=4096)
def field_path(message: str, version: int, fields: frozenset[str]) -> FieldPath | None:
    """The way to the structures of a message that have one of these fields; None where none has."""
    return _path_in(plan(message, version), fields)


def _path_in(layout: TypePlan, fields: frozenset[str]) -> FieldPath | None:
    if isinstance(layout, ArrayPlan):
        return _path_in(layout.element, fields)
    if not isinstance(layout, StructPlan):
        return None
    every = (*layout.fields, *layout.tagged)
    ways = ((field.name, _path_in(field.type, fields)) for field in every)
    inner = tuple((name, below) for name, below in ways if below is not None)
    here = any(field.name in fields for field in every)
    return FieldPath(here, inner) if here or inner else None


def structs_at(to: FieldPath, struct: Mapping[str, Any]) -> list[dict[str, object]]:
    """The structures of a body that the way leads to, outermost first."""
    found: list[dict[str, object]] = []
    _follow(to, struct, found)
    return found


def _follow(to: FieldPath, struct: Any, found: list[dict[str, object]]) -> None:
    if to.here:
        found.append(struct)
    for name, below in to.inner:
        value = struct.get(name)
        if isinstance(value, dict):
            _follow(below, value, found)
        elif value and not below.inner:
            found += value
        elif value:
            for each in value:
                _follow(below, each, found)
