"""Contents of bytes that have no schema of Kafka's, such as SASL tokens and protobuf: a tree of named items.

The items tile the bytes. An item's span includes its delimiter (a comma, a NUL, a length); its value does not.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from dissector.core.json_text import finite


class SubtreeItem(NamedTuple):
    """A span of bytes with a name. `items` tile its end; the bytes before them belong to the item itself."""

    name: str
    kind: str
    start: int
    end: int
    value: object = None
    note: str = ""
    secret: tuple[int, int] | None = None
    """The span of the bytes to mask."""
    items: tuple["SubtreeItem", ...] = ()


@dataclass(frozen=True, slots=True)
class Subtree:
    """The content of bytes; `name` is the format's."""

    name: str
    items: tuple[SubtreeItem, ...]
    plain: bytes | None = None
    """The decompressed bytes that the items span, if the bytes are compressed."""
    codec: int = 0
    """Kafka's number of the codec, 0 for none."""

    def read(self, raw: bytes) -> dict[str, Any]:
        """Return plain values, as JSON has them; a repeated name has a list. `raw` is not read: the items
        were made of it."""
        return _values(self.items)

    def count(self) -> int:
        """Return the number of nodes that its items become."""
        return _count(self.items)


def _count(items: tuple[SubtreeItem, ...]) -> int:
    return len(items) + sum(1 + _count(item.items) for item in items if item.items)


def _values(items: tuple[SubtreeItem, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for item in items:
        value = _values(item.items) if item.items else finite(item.value)
        if item.name not in out:
            out[item.name] = value
        elif isinstance(out[item.name], list):
            out[item.name].append(value)
        else:
            out[item.name] = [out[item.name], value]
    return out
