"""Annotates ids in a tree with the names that the conversation gave: of topics, nodes, members, producers."""

from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.tree import Node

BROKER = "brokerId"
"""The `entityType` of integers that are node ids, in Kafka's schemas."""


def annotate_ids(tree: Node, context: DecodingContext) -> None:
    """Add a note to every id that has a name and no note yet."""
    if not (context.topic_names or context.nodes or context.members or context.producers):
        return
    for node in tree.walk():
        if node.value is not None and not node.note:
            node.note = _name(node, context)


def _name(node: Node, context: DecodingContext) -> str:
    if isinstance(node.value, int):
        if node.schema is not None and node.schema.entity_type == BROKER:
            return context.nodes.get(node.value, "")
        return context.producers.get(node.value, "") if node.name == "producer_id" else ""
    if not isinstance(node.value, str):
        return ""
    if node.type == "UUID":
        return context.topic_names.get(node.value, "")
    return context.members.get(node.value, "") if node.name == "member_id" else ""
