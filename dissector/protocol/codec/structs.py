"""Walking plain values: what a body has anywhere in it, whatever the API.

`structs` looks everywhere; `structs_with` goes straight to where a layout has certain fields, worked out once a layout.
"""

from collections.abc import Iterator

from dissector.protocol.codec.field_path import field_path, structs_at
from dissector.protocol.message import MessageLayout, Values
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


def structs_with(layout: MessageLayout, body: Values, fields: frozenset[str]) -> list[Values]:
    """The structures of a body that have one of these fields, outermost first."""
    if layout.body is None or not body:
        return []
    if alternatives(layout.body, layout.body_version):
        return [struct for struct in structs(body) if not fields.isdisjoint(struct)]
    to = field_path(layout.body, layout.body_version, fields)
    return structs_at(to, body) if to is not None else []
