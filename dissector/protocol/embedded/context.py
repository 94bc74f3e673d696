"""What is known of a message from its conversation: names of ids, protocols of groups; and the notes that ids in a tree
get of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dissector.protocol.tree import Node


@dataclass(frozen=True)
class DecodingContext:
    """Filled by `index.conversation_state`. What is learned late applies to earlier messages, too."""

    topic_names: Mapping[str, str] = field(default_factory=dict)
    """Topic names by topic id, as Kafka prints a uuid."""
    group_protocols: Mapping[str, str] = field(default_factory=dict)
    """Protocol types by group id: ``consumer``, ``connect``."""
    nodes: Mapping[int, str] = field(default_factory=dict)
    """``host:port`` by node id."""
    members: Mapping[str, str] = field(default_factory=dict)
    """Client ids by member id."""
    producers: Mapping[int, str] = field(default_factory=dict)
    """Transactional ids by producer id."""
    enveloped: tuple[int, int] | None = None
    """API key and version of the request inside an envelope, for the response to that envelope."""
    mechanism: str | None = None
    """The SASL mechanism that the connection agreed on before the message."""
    may_have_secrets: bool = False
    """Whether the connection logs in or has other secrets, or may: what can't be read of it may then be one."""
    has_secrets: bool = False
    """Whether it sends a request that logs in, or has other secrets."""
    may_cut_secrets: bool = False
    """Whether a message that is there in part may have bytes of another one, with a secret."""
    fetches_metadata: bool = False
    """Whether the message answers a Fetch that names the metadata log."""


EMPTY_CONTEXT = DecodingContext()
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
