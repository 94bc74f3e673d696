"""Checks of every tree: its leaves tile its sources; which values it holds."""

from collections.abc import Iterator

from dissector.protocol.message import Traced
from dissector.protocol.tree import Node

RECORDS = object()
"""Stands for the value of a `records` field: nodes here, bytes in what a reader gives."""


def assert_tiled(traced: Traced) -> None:
    """The leaves of each source follow each other from its first byte to its last; children stay inside parents."""
    leaves = traced.tree.leaves()
    for source in traced.sources:
        at = 0
        for leaf in leaves.get(source.number, []):
            assert leaf.start == at, f"{leaf.path} begins at {leaf.start}, {at} was expected"
            at = leaf.end
        assert at == len(source.data), f"{source.name}: the leaves end at {at} of {len(source.data)}"
    for node in traced.tree.walk():
        for child in node.children:
            if child.source == node.source:
                assert node.start <= child.start <= child.end <= node.end, child.path


def values_of(node: Node) -> object:
    """The plain values that a tree's nodes stand for, as a reader gives them."""
    fields = [child for child in node.children if not child.name.startswith("(")]
    if node.note == "null" and not fields:
        return None
    if node.type.endswith("RECORDS") and node.children:
        return RECORDS
    if node.type.endswith("ARRAY"):
        return [values_of(child) for child in fields]
    if node.type.endswith("STRUCT"):
        values = {child.name: values_of(child) for child in fields}
        unknown = list(_unknown_tags(node))
        return values | ({"unknown_tagged_fields": unknown} if unknown else {})
    return node.value


def _unknown_tags(node: Node) -> Iterator[dict[str, object]]:
    for child in node.children:
        if child.type == "TAGGED_FIELD":
            by_name = {part.name: part.value for part in child.children}
            yield {"tag": by_name["(tag)"], "data": by_name["(data)"]}


def same(traced: object, read: object) -> bool:
    """Whether a tree's values are those that were read; `records` are compared by the tiling alone."""
    if traced is RECORDS:
        return isinstance(read, bytes)
    if isinstance(traced, dict) and isinstance(read, dict):
        return traced.keys() == read.keys() and all(same(traced[name], read[name]) for name in traced)
    if isinstance(traced, list) and isinstance(read, list):
        return len(traced) == len(read) and all(map(same, traced, read))
    return traced == read or (traced != traced and read != read)  # a not-a-number is another's equal here
