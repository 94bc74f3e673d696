"""The words that redaction keeps: Kafka's, each in its fields. Any other text is a name, and is replaced.

A field is listed by its name, or with the field around it if its name is ambiguous (``configs.name``).
"""

import re
from typing import Final

from dissector.protocol.embedded.topics import INTERNAL_TOPICS
from dissector.protocol.tree import Node

_CLIENTS: Final = frozenset(
    ("aiokafka", "apache-kafka-java", "brod", "confluent-kafka-dotnet", "confluent-kafka-go",
     "confluent-kafka-javascript", "confluent-kafka-python", "cppkafka", "fluent-bit", "franz-go", "kafka-go",
     "kafka-node", "kafka-python", "kafka-python-ng", "kafka_ex", "kafkajs", "karafka", "kcat", "kdissect", "kgo",
     "librdkafka", "logstash", "modern-cpp-kafka", "node-rdkafka", "php-rdkafka", "pykafka", "rdkafka-ruby",
     "rskafka", "ruby-kafka", "rust-rdkafka", "sarama", "segmentio", "telegraf", "vector")
)  # fmt: skip
"""Known clients as they call themselves (KIP-511). A user may set any other name, so it is one of the user's."""
_MECHANISMS: Final = frozenset(
    ("ANONYMOUS", "AWS_MSK_IAM", "CRAM-MD5", "CRAM-SHA1", "DIGEST-MD5", "EXTERNAL", "GSSAPI", "LDAP", "LOGIN", "NTLM",
     "OAUTHBEARER", "PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512")
)  # fmt: skip
_VERSION: Final = re.compile(r"v?\d{1,4}(?:\.\d{1,4}){1,2}(?:-rdkafka-\d{1,4}(?:\.\d{1,4}){2})?", re.ASCII)
"""A client's version: two or three numbers, which is no address, and librdkafka's behind that of its binding."""
_EVERYWHERE: Final = frozenset(("*", *INTERNAL_TOPICS))
_PROTOCOL_TYPES: Final = frozenset(("consumer", "connect", "share", "streams"))
_ASSIGNORS: Final = frozenset(
    ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "simple", "stream", "default", "compatible",
     "sessioned", "RoundRobinAssigner", "highly_available")
)  # fmt: skip
_STATES: Final = frozenset(
    ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling", "NotReady",
     "Unknown", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence",
     "Classic", "Consumer", "Share", "Streams", "classic", "consumer", "share", "streams")
)  # fmt: skip
_FEATURES: Final = frozenset(
    ("metadata.version", "kraft.version", "transaction.version", "group.version", "share.version", "streams.version",
     "eligible.leader.replicas.version")
)  # fmt: skip
_ENTITY_TYPES: Final = frozenset(("user", "client-id", "ip", "User", "Group"))
_LISTENERS: Final = frozenset(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", "CONTROLLER", "BROKER"))
_TOPIC_CONFIGS: Final = frozenset(
    ("cleanup.policy", "compression.type", "delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms",
     "index.interval.bytes", "local.retention.bytes", "local.retention.ms", "max.compaction.lag.ms",
     "max.message.bytes", "message.format.version", "message.timestamp.type", "min.cleanable.dirty.ratio",
     "min.compaction.lag.ms", "min.insync.replicas", "preallocate", "remote.storage.enable", "retention.bytes",
     "retention.ms", "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms",
     "unclean.leader.election.enable")
)  # fmt: skip
_HOSTS: Final = frozenset(("localhost", "/localhost"))

_WORDS: Final = {
    "client_software_name": _CLIENTS,
    "mechanism": _MECHANISMS,
    "mechanisms": _MECHANISMS,
    "protocol_type": _PROTOCOL_TYPES,
    "protocols.name": _ASSIGNORS,
    "supported_protocols.name": _ASSIGNORS,
    "protocol_name": _ASSIGNORS,
    "protocol": _ASSIGNORS,
    "protocol_data": _ASSIGNORS,
    "server_assignor": _ASSIGNORS,
    "assignor_name": _ASSIGNORS,
    "group_state": _STATES,
    "state": _STATES,
    "states_filter": _STATES,
    "state_filters": _STATES,
    "transaction_state": _STATES,
    "group_type": _STATES,
    "types_filter": _STATES,
    "supported_features.name": _FEATURES,
    "finalized_features.name": _FEATURES,
    "feature": _FEATURES,
    "entity_type": _ENTITY_TYPES,
    "principal_type": _ENTITY_TYPES,
    "owner_principal_type": _ENTITY_TYPES,
    "listeners.name": _LISTENERS,
    "end_points.name": _LISTENERS,
    "listener": _LISTENERS,
    "configs.name": _TOPIC_CONFIGS,
    "synonyms.name": _TOPIC_CONFIGS,
    "configuration_keys": _TOPIC_CONFIGS,
    "topic_configs.key": _TOPIC_CONFIGS,
    "host": _HOSTS,
    "client_host": _HOSTS,
}


def is_allowed(node: Node, text: str) -> bool:
    """Return whether a string of a message is one of Kafka's words, not a user's."""
    *_, outer, name = ("", *_fields(node))
    if name == "client_software_version":
        return _VERSION.fullmatch(text) is not None
    return text in _EVERYWHERE or text in (_WORDS.get(name) or _WORDS.get(f"{outer}.{name}") or ())


def pseudonym_prefix(node: Node) -> str:
    """Return the kind of a name, for its pseudonym."""
    if node.schema is not None and node.schema.entity_type in _ENTITIES:
        return _ENTITIES[node.schema.entity_type]
    name = next(reversed(_fields(node)), "")
    return next((word for part, word in _PARTS.items() if part in name), "text")


_ENTITIES: Final = {"topicName": "topic", "groupId": "group", "transactionalId": "txn"}
_PARTS: Final = {
    "topic": "topic", "group_instance": "instance", "group": "group", "transactional": "txn", "client_id": "client",
    "software": "client", "mechanism": "MECHANISM", "member": "member", "host": "host", "rack": "rack",
    "principal": "user", "user": "user", "owner": "user", "cluster": "cluster", "coordinator": "group", "key": "key",
    "message": "message", "config": "config", "listener": "listener", "value": "value",
}  # fmt: skip


def _fields(node: Node) -> list[str]:
    """Return the field names on a node's path, without indexes and parts of the encoding."""
    names = (part.partition("[")[0] for part in node.path.split("."))
    return [name for name in names if name and not name.startswith("(")]
