"""Structures inside a decoded body, whatever the API.

`structs` visits all of them; `structs_with` goes straight to those with certain fields, by a path computed per layout,
and `values_of` to the fields.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from dissector.protocol.codec.field_path import FieldPath, field_path, structs_at
from dissector.protocol.message import Values
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.schema.loader import alternatives

_ANYWHERE: Final = FieldPath((), ())


def structs(value: object) -> Iterator[Values]:
    """Yield all structures in a body, outermost first."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            if isinstance(inner, dict | list):
                yield from structs(inner)
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        for inner in value:
            yield from structs(inner)


def structs_with(layout: MessageLayout, body: Values, fields: frozenset[str]) -> list[Values]:
    """Return the structures of a body that have one of `fields`, outermost first."""
    path = _path(layout.body, layout.body_version, fields)
    if path is None or not body:
        return []
    if path is _ANYWHERE:
        return [struct for struct in structs(body) if not fields.isdisjoint(struct)]
    return structs_at(path, body)


def values_of(layout: MessageLayout, body: Values, fields: frozenset[str]) -> list[object]:
    """Return the values that `fields` have anywhere in a body, outermost first."""
    return [struct[name] for struct in structs_with(layout, body, fields) for name in fields if name in struct]


@lru_cache(maxsize=4096)
def _path(body: str | None, version: int, fields: frozenset[str]) -> FieldPath | None:
    """Return where a body has `fields`; `_ANYWHERE` if its version has several layouts, None if nowhere."""
    if body is None:
        return None
    return _ANYWHERE if alternatives(body, version) else field_path(body, version, fields)
