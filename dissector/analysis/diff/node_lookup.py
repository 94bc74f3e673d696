"""Find the tree node of a compared field: one, or many of a message."""

from collections.abc import Hashable, Mapping
from typing import Final

from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.message_leaves import IDENTIFYING, ElementLabel, LeafPath, PathStep
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


class FieldNodes:
    """Finds the nodes of many fields of a message: each array is read once, and each node above them found once."""

    def __init__(self, message: ExchangeMessage) -> None:
        self._topics = message.context.topic_names
        body = next((child for child in message.tree.children if child.name == "body"), None)
        self._found: dict[LeafPath, Node | None] = {(): body}
        self._elements: dict[int, dict[Hashable, Node]] = {}
        """The elements of an array by what its labels may have, by the array's id."""

    def at(self, path: LeafPath) -> Node | None:
        """Return the node at exactly this path; None if there is none, as of an element without a label."""
        if path not in self._found:
            above = self.at(path[:-1])
            self._found[path] = None if above is None else self._below(above, path[-1])
        return self._found[path]

    def _below(self, node: Node, step: PathStep) -> Node | None:
        if not isinstance(step, ElementLabel):
            return _field(node, step)
        if id(node) not in self._elements:
            self._elements[id(node)] = self._by_label(node)
        value = step.value
        return self._elements[id(node)].get(EntityName("", value.text) if isinstance(value, EntityName) else value)

    def _by_label(self, array: Node) -> dict[Hashable, Node]:
        found: dict[Hashable, Node] = {}
        for element in (child for child in array.children if child.name.startswith("[")):
            key = _identity(element)
            if key is None or not isinstance(key.value, Hashable):
                continue
            text = str(key.value)
            for label in (key.value, *(EntityName("", each) for each in (text, self._topics.get(text)) if each)):
                if label is not None:
                    found.setdefault(label, element)
        return found


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
