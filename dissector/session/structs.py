"""Walking plain values: what a body has anywhere in it, whatever the API."""

from collections.abc import Iterator

from dissector.protocol.message import Values


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
