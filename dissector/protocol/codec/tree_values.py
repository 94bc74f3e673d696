"""Plain values of a tree: of a message that can't be read to its end, the fields that are whole.

Invariant: of a message that can be read, they are what `reader` returns.
"""

from collections.abc import Iterator
from typing import Final

from dissector.protocol.codec.reader import UNKNOWN_TAGS
from dissector.protocol.tree import Node

_ABSENT: Final = object()
"""The value of a node without a whole field."""


def struct_values(node: Node, data: bytes) -> dict[str, object]:
    """Return the fields of a structure by name; `data` is the frame that the tree is of."""
    values = {child.name: _value(child, data) for child in _fields(node)}
    values = {name: value for name, value in values.items() if value is not _ABSENT}
    unknown = list(_unknown_tags(node))
    return values | ({UNKNOWN_TAGS: unknown} if unknown else {})


def _fields(node: Node) -> list[Node]:
    return [child for child in node.children if not child.name.startswith("(")]


def _value(node: Node, data: bytes) -> object:
    if node.type.endswith("RECORDS") and node.children:
        return data[node.children[0].end : node.end]
    fields = _fields(node)
    if node.note == "null" and not fields:
        return None
    if node.type.endswith("ARRAY"):
        if not any(child.name == "(count)" for child in node.children):
            return _ABSENT
        values = [_value(child, data) for child in fields]
        return [value for value in values if value is not _ABSENT]
    if node.type.endswith("STRUCT"):
        return struct_values(node, data) or ({} if _has_end(node) else _ABSENT)
    is_tagged = any(child.name == "(tag)" for child in node.children)
    return node.value if not is_tagged or any(child.name == "(value)" for child in node.children) else _ABSENT


def _has_end(node: Node) -> bool:
    """Return whether the count of tagged fields is there, which ends a structure without fields."""
    return any(child.name == "(tagged fields)" for child in node.children)


def _unknown_tags(node: Node) -> Iterator[dict[str, object]]:
    for child in node.children:
        parts = {part.name: part.value for part in child.children}
        if child.type == "TAGGED_FIELD" and "(data)" in parts:
            yield {"tag": parts["(tag)"], "data": parts["(data)"]}
