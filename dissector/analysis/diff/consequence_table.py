"""Which differences follow from which others, wherever both are: the causes, the fields that change with each, and what
brokers copy from requests into responses."""

from typing import Final

from dissector.analysis.diff.message_leaves import PRODUCER_FIELDS
from dissector.analysis.diff.result import DiffEntry
from dissector.protocol.embedded.messages import MISSING

FieldKey = tuple[str, str, str]
"""API, part and path."""
SUBSCRIPTION: Final = "protocols.metadata."
BATCHES: Final = "topic_data.partition_data.records."
INSTANCE: Final[FieldKey] = ("JoinGroup", "request", "group_instance_id")
CONNECTIONS: Final[FieldKey] = ("", "", "connections")
PROTOCOLS: Final[FieldKey] = ("JoinGroup", "request", "protocols")
CONSEQUENCES: Final[dict[FieldKey, tuple[FieldKey, ...]]] = {
    ("Fetch", "request", "session_id"): (
        ("Fetch", "request", "session_epoch"),
        ("Fetch", "request", "topics"),
        ("Fetch", "request", "forgotten_topics_data"),
        ("Fetch", "response", "session_id"),
        ("Fetch", "response", "responses"),
    ),
    ("Fetch", "request", "session_epoch"): (("Fetch", "response", "session_id"),),
    ("Fetch", "request", "isolation_level"): (
        ("ListOffsets", "request", "isolation_level"),
        ("Fetch", "response", "responses.partitions.aborted_transactions"),
    ),
    ("Fetch", "request", "rack_id"): (
        ("JoinGroup", "request", f"{SUBSCRIPTION}rack_id"),
        ("ConsumerGroupHeartbeat", "request", "rack_id"),
    ),
    ("InitProducerId", "", ""): (
        *(("Produce", "request", f"{BATCHES}{name}") for name in PRODUCER_FIELDS),
        ("Fetch", "response", "responses.partitions.aborted_transactions"),
    ),
    ("Produce", "request", f"{BATCHES}producer_epoch"): (("Produce", "request", f"{BATCHES}base_sequence"),),
    ("Produce", "", "linger"): (("Produce", "", ""),),
    ("Produce", "", "version"): (("Produce", "request", f"{BATCHES}magic"),),
    ("Produce", "request", f"{BATCHES}magic"): tuple(
        ("Produce", "request", BATCHES + name) for name in ("timestamp_type", "transactional")
    ),
    PROTOCOLS: (
        ("JoinGroup", "response", "protocol_name"),
        ("SyncGroup", "request", "protocol_name"),
        ("SyncGroup", "response", "protocol_name"),
    ),
    ("JoinGroup", "request", f"{SUBSCRIPTION}{MISSING}"): (
        ("JoinGroup", "request", f"{SUBSCRIPTION}owned_partitions"),
    ),
    ("JoinGroup", "request", f"{SUBSCRIPTION}version"): tuple(
        ("JoinGroup", "request", SUBSCRIPTION + name) for name in ("owned_partitions", "generation_id", "rack_id")
    ),
    ("ApiVersions", "request", "client_software_name"): (("ApiVersions", "request", "client_software_version"),),
    ("ApiVersions", "", "version"): (("ApiVersions", "response", "supported_features"),),
    ("FindCoordinator", "", "version"): (("FindCoordinator", "response", "error_message"),),
    ("OffsetCommit", "request", "topics.partitions.committed_metadata"): (
        ("OffsetFetch", "response", "topics.partitions.metadata"),
    ),
    ("OffsetCommit", "request", "topics.partitions.committed_leader_epoch"): (
        ("OffsetFetch", "response", "topics.partitions.committed_leader_epoch"),
    ),
    INSTANCE: (
        *(
            (api, "request", "group_instance_id")
            for api in ("SyncGroup", "Heartbeat", "OffsetCommit", "TxnOffsetCommit")
        ),
        ("JoinGroup", "response", "members.group_instance_id"),
        ("LeaveGroup", "request", "members.group_instance_id"),
        ("LeaveGroup", "response", "members.group_instance_id"),
    ),
    ("OffsetFetch", "request", "topics"): (("OffsetFetch", "request", "topics.partition_indexes"),),
    ("OffsetFetch", "request", "member_epoch"): (("OffsetFetch", "request", "member_id"),),
    ("ListOffsets", "request", "topics.partitions.timestamp"): (
        ("ListOffsets", "response", "topics.partitions.timestamp"),
        ("ListOffsets", "response", "topics.partitions.offset"),
        ("Fetch", "request", "topics.partitions.last_fetched_epoch"),
        ("OffsetCommit", "request", "topics.partitions.committed_leader_epoch"),
    ),
    ("DescribeConfigs", "request", "resources.configuration_keys"): (
        ("DescribeConfigs", "response", "results.configs"),
    ),
    ("DescribeGroups", "request", "include_authorized_operations"): (
        ("DescribeGroups", "response", "groups.authorized_operations"),
    ),
    ("Metadata", "request", "include_topic_authorized_operations"): (
        ("Metadata", "response", "topics.topic_authorized_operations"),
    ),
    ("Metadata", "request", "include_cluster_authorized_operations"): (
        ("Metadata", "response", "cluster_authorized_operations"),
    ),
    ("CreateTopics", "request", "topics.num_partitions"): (("CreateTopics", "response", "topics.num_partitions"),),
}
"""By cause: an incremental Fetch names only what changed (KIP-227); who lingers sends fewer batches; brokers list
aborted transactions only for READ_COMMITTED (KIP-98), where only idempotent producers have an id; the version of
Produce says which magic batches have, and later ones have more attributes (KIP-32, KIP-98); a later subscription has
more fields (KIP-429, KIP-792, KIP-881), of which a rack is that for Fetch (KIP-392); a broker hides features that an
old client could not read (KIP-1022), and sends a message for success only in the versions that look up a single
coordinator; a static member has its name in all requests of its group (KIP-345); a broker returns what was committed,
and answers what was asked: who begins to read elsewhere may read nothing."""
ECHOES: Final = (
    ("JoinGroup", SUBSCRIPTION, "members.metadata."),
    ("SyncGroup", "assignments.assignment.", "assignment."),
)
"""API, path in the request, path in the response: what a coordinator copies from a request into a response."""


def field_of(entry: DiffEntry) -> FieldKey:
    """Return what an entry is about."""
    return entry.api, entry.part, entry.path
