"""Find the tree node of a compared field."""

from collections.abc import Mapping
from typing import Final

from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.message_leaves import IDENTIFYING, ElementLabel, LeafPath
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from dissector.protocol.tree import Node

BATCH_ATTRIBUTES: Final = frozenset(("compression", "timestamp_type", "transactional"))
"""Properties of a record batch that share the bits of its ``attributes`` field."""


def find_node(message: ExchangeMessage, path: LeafPath) -> Node | None:
    """Return the node of a field at its path in the message, or the nearest node above it if the field has no bytes, as
    an absent tagged field. Return None if the body could not be read."""
    node = next((child for child in message.tree.children if child.name == "body"), None)
    for step in path:
        if node is None:
            break
        topics = message.context.topic_names
        inner = _element(node, step, topics) if isinstance(step, ElementLabel) else _field(node, step)
        if inner is None:
            break
        node = inner
    return node


def _field(node: Node, name: str) -> Node | None:
    """Return a field of a structure, of what its bytes decode to, or of its first record batch."""
    for child in node.children:
        if child.name == name or (name in BATCH_ATTRIBUTES and child.name == "attributes"):
            return child
    within = (child for child in node.children if child.name in ("decoded", "(tagged fields)", "[0]"))
    return next((found for child in within if (found := _field(child, name)) is not None), None)


def _element(node: Node, label: ElementLabel, topics: Mapping[str, str]) -> Node | None:
    """Return the element of an array with a label; None without one."""
    if label.value is None:
        return None
    elements = (child for child in node.children if child.name.startswith("["))
    return next((element for element in elements if _has_label(label, _identity(element), topics)), None)


def _identity(element: Node) -> Node | None:
    keys = [child for child in element.children if child.schema is not None and child.schema.map_key]
    if len(keys) == 1:
        return keys[0]
    identifying = (child for child in element.children if child.name in IDENTIFYING and child.value != NO_TOPIC_ID)
    return next(identifying, None)


def _has_label(label: ElementLabel, key: Node | None, topics: Mapping[str, str]) -> bool:
    if key is None:
        return False
    if isinstance(label.value, EntityName):
        text = str(key.value)
        return label.value.text in (text, topics.get(text))
    return key.value == label.value
