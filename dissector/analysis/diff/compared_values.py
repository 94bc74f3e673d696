"""Turn a field's value into what is compared: the value itself, the name of an entity, or a placeholder.

Names that a run generates (a member id, a producer id, a topic's uuid) are matched between the sides; of a position (an
offset, an epoch, a time) only whether there is one is compared, as it depends on when the program ran. Kafka's entity
types and field names decide, so a new API needs no change here.
"""

import base64
import re
from functools import lru_cache
from typing import Final, NamedTuple

from dissector.core.text import counted
from dissector.protocol.embedded.topics import NO_TOPIC_ID
from dissector.protocol.schema.model import Field


class EntityName(NamedTuple):
    """The name of an entity: on one side, equal names of a kind mean the same entity."""

    kind: str
    text: str


class Placeholder(NamedTuple):
    """A text that is compared in place of a value."""

    text: str


ComparedValue = str | int | float | bytes | bool | None | EntityName | Placeholder

POSITION: Final = Placeholder("a position")
"""An offset, an epoch, a sequence number, a time, how much a disk holds: any number that is not negative."""
A_STATE: Final = Placeholder("a state")
SESSION: Final = "fetch session"
KIND_BY_ENTITY_TYPE: Final = {
    "topicName": "topic",
    "groupId": "group",
    "transactionalId": "transaction",
    "producerId": "producer",
    "brokerId": "broker",
}
KIND_BY_FIELD: Final = {
    "topic": "topic", "topic_name": "topic", "group_id": "group", "transactional_id": "transaction",
    "member_id": "member", "leader": "member", "group_instance_id": "instance", "producer_id": "producer",
    "cluster_id": "cluster", "session_id": SESSION, "node_id": "broker", "broker_id": "broker",
    "leader_id": "broker", "preferred_read_replica": "broker", "coordinator_id": "broker", "host": "host",
    "port": "port", "rack": "rack", "client_instance_id": "instance", "subscription_id": "subscription",
    "process_id": "process", "url": "worker", "leader_url": "worker",
}  # fmt: skip
"""Kinds of entities by field name, for fields without an entity type in the schema."""
COUNTED_KINDS: Final = frozenset((SESSION, "member"))
"""Kinds of entities of which a side has as many as it has consumers."""
BROKER_FIELDS: Final = frozenset(("leader_id", "replica_nodes", "isr_nodes", "offline_replicas", "controller_id"))
_POSITION_NAME: Final = re.compile(
    r"(^|_)(offset|offsets|epoch|sequence|high_watermark|generation_id|generation_id_or_member_epoch|timestamp"
    r"|timestamp_ms|append_time_ms|partition_size|total_bytes|usable_bytes|offset_sum|unique_field)$"
)
"""The last two are what members of Streams say when they join: how much of its state a task has, and a number that is
another one each time."""
STATES: Final = frozenset(("group_state",))
"""Fields that say what a group does at the moment."""
METADATA_FIELDS: Final = frozenset(("committed_metadata", "metadata"))
"""Texts that a client commits with an offset."""
_STREAMS_METADATA: Final = re.compile(r"A[A-Za-z0-9+/]{11}")
"""Nine bytes, the first of them below 4."""
STREAMS_TIMES_MS: Final = range(0, 1 << 42)
"""Until the year 2109: what a text of other programs has there is mostly later."""
NO_NAME: Final = frozenset(("", NO_TOPIC_ID))
"""Texts that name nothing: the empty one, the zero uuid."""
MAX_TEXT: Final = 200


@lru_cache(maxsize=4096)
def entity_kind(name: str, entity: str | None, wire_type: str) -> str | None:
    """Return the kind of entity that a field names; None for other fields."""
    if entity in KIND_BY_ENTITY_TYPE:
        return KIND_BY_ENTITY_TYPE[entity]
    if name in BROKER_FIELDS:
        return "broker"
    if name in KIND_BY_FIELD:
        return KIND_BY_FIELD[name]
    return "uuid" if wire_type == "uuid" else None


def _streams_metadata(text: str) -> int:
    """Return the version of what Streams commits with an offset, 0 for other texts: in base64 a version byte, a time of
    eight bytes, -1 for none, and from version 2 on what processors add (`TopicPartitionMetadata`)."""
    if not _STREAMS_METADATA.match(text):
        return 0
    head = base64.b64decode(text[:12])
    time_ms = int.from_bytes(head[1:9], "big", signed=True)
    return head[0] if head[0] in (1, 2) and (time_ms == -1 or time_ms in STREAMS_TIMES_MS) else 0


@lru_cache(maxsize=4096)
def is_position(name: str) -> bool:
    """Return whether a field of this name holds a position, which moves while a program runs."""
    return _POSITION_NAME.search(name) is not None


def compared_value(field: Field | None, name: str, raw: object) -> ComparedValue:
    """Return what is compared for a scalar."""
    if isinstance(raw, bool) or raw is None or isinstance(raw, float):
        return raw
    kind = entity_kind(name, field.entity_type if field else None, field.element_type if field else "")
    if isinstance(raw, int):
        if raw >= 0 and is_position(name):
            return POSITION
        # -1 is no broker, and 0 is no session.
        is_name = kind is not None and (raw > 0 or (raw == 0 and kind in ("broker", "producer")))
        return EntityName(kind, str(raw)) if is_name and kind is not None else raw
    if isinstance(raw, str):
        if name in STATES and raw:
            return A_STATE
        if name in METADATA_FIELDS and (version := _streams_metadata(raw)):
            return Placeholder(f"a time of Streams, version {version}")
        if kind is not None and raw not in NO_NAME:
            return EntityName(kind, raw)
        return raw if len(raw) <= MAX_TEXT else Placeholder(f"{raw[:MAX_TEXT]}… ({len(raw):,} characters)")
    if isinstance(raw, bytes):
        return raw if len(raw) <= MAX_TEXT else Placeholder(f"{counted(len(raw), 'byte')}")
    return Placeholder(type(raw).__name__)
