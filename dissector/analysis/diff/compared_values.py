"""What a field's value is to a comparison: itself, a name that stands for something, or a position that moves.

A name of the run (a member id, a producer id, a topic's uuid) is compared as a symbol; a position (an offset, an
epoch, a time) only as being there: what it is depends on when the program ran. Told from Kafka's entity types and from
what fields are called, so a new API needs nothing here.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from dissector.core.text import counted
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from dissector.protocol.schema.model import Field


class EntityName(NamedTuple):
    """A name of something: equal names of a kind mean the same thing on one side."""

    kind: str
    text: str


class Placeholder(NamedTuple):
    """What is said in place of a value."""

    text: str


ComparedValue = str | int | float | bytes | bool | None | EntityName | Placeholder

POSITION: Final = Placeholder("a position")
"""An offset, an epoch, a sequence number, a time: some number that is not negative."""
ENTITIES: Final = {
    "topicName": "topic",
    "groupId": "group",
    "transactionalId": "transaction",
    "producerId": "producer",
    "brokerId": "broker",
}
NAMES: Final = {
    "topic": "topic", "topic_name": "topic", "group_id": "group", "transactional_id": "transaction",
    "member_id": "member", "leader": "member", "group_instance_id": "instance", "producer_id": "producer",
    "cluster_id": "cluster", "session_id": "fetch session", "node_id": "broker", "broker_id": "broker",
    "leader_id": "broker", "preferred_read_replica": "broker", "coordinator_id": "broker", "host": "host",
    "port": "port", "rack": "rack", "client_instance_id": "instance", "subscription_id": "subscription",
}  # fmt: skip
"""By a field's name, where the schema has no entity type for it."""
BROKERS: Final = frozenset(("leader_id", "replica_nodes", "isr_nodes", "offline_replicas", "controller_id"))
_MOVING: Final = re.compile(
    r"(^|_)(offset|offsets|epoch|sequence|high_watermark|generation_id|generation_id_or_member_epoch|timestamp"
    r"|timestamp_ms|append_time_ms)$"
)
SMALL: Final = frozenset(("", NO_TOPIC_ID))
"""Texts that are no name: the empty one, the zero uuid."""
MOST_TEXT: Final = 200


@lru_cache(maxsize=4096)
def entity_kind(name: str, entity: str | None, wire_type: str) -> str | None:
    """What a field names, if it names something."""
    if entity in ENTITIES:
        return ENTITIES[entity]
    if name in BROKERS:
        return "broker"
    if name in NAMES:
        return NAMES[name]
    return "uuid" if wire_type == "uuid" else None


@lru_cache(maxsize=4096)
def is_position(name: str) -> bool:
    """Whether a number of that name moves while a program runs."""
    return _MOVING.search(name) is not None


def compared_value(field: Field | None, name: str, raw: object) -> ComparedValue:
    """A scalar as the comparison takes it."""
    if isinstance(raw, bool) or raw is None or isinstance(raw, float):
        return raw
    kind = entity_kind(name, field.entity_type if field else None, field.element_type if field else "")
    if isinstance(raw, int):
        if raw >= 0 and is_position(name):
            return POSITION
        # No broker is -1, and session 0 is none.
        named = kind is not None and (raw > 0 or (raw == 0 and kind in ("broker", "producer")))
        return EntityName(kind, str(raw)) if named and kind is not None else raw
    if isinstance(raw, str):
        if kind is not None and raw not in SMALL:
            return EntityName(kind, raw)
        return raw if len(raw) <= MOST_TEXT else Placeholder(f"{raw[:MOST_TEXT]}… ({len(raw):,} characters)")
    if isinstance(raw, bytes):
        return raw if len(raw) <= MOST_TEXT else Placeholder(f"{counted(len(raw), 'byte')}")
    return Placeholder(type(raw).__name__)
