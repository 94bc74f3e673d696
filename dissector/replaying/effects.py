"""What a request does to a cluster: the one table that says which requests may be sent without harm.

A test fails where a release brings an API that stands in none of the sets. An API that nobody knows counts as one that
writes. What joins a group, acquires records or begins a transaction writes: members and producers of the cluster
notice.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from dissector.protocol.schema.api_keys import ApiKey


class Effect(StrEnum):
    """What a request does."""

    READS = "reads"
    WRITES = "writes"
    LOGS_IN = "logs in"
    """It has credentials, or begins a login."""
    BETWEEN_NODES = "between nodes"
    """Only brokers and controllers send it: from anybody else it would damage the cluster. It is never replayed."""


READS: Final = frozenset((
    ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR,
    ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.API_VERSIONS, ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DESCRIBE_ACLS, ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_QUORUM, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_PRODUCERS, ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS, ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.LIST_CONFIG_RESOURCES, ApiKey.DESCRIBE_TOPIC_PARTITIONS, ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_DESCRIBE, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
))  # fmt: skip
WRITES: Final = frozenset((
    ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP,
    ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.ALTER_CONFIGS, ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.CREATE_PARTITIONS, ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DELETE_GROUPS, ApiKey.ELECT_LEADERS, ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.OFFSET_DELETE, ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.UPDATE_FEATURES, ApiKey.UNREGISTER_BROKER,
    ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.PUSH_TELEMETRY, ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.STREAMS_GROUP_HEARTBEAT,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, ApiKey.UNREGISTER_CONTROLLER,
))  # fmt: skip
LOGS_IN: Final = frozenset((ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))
BETWEEN_NODES: Final = frozenset((
    ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.WRITE_TXN_MARKERS, ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE, ApiKey.FETCH_SNAPSHOT, ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.CONTROLLER_REGISTRATION, ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.UPDATE_RAFT_VOTER, ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
))  # fmt: skip
EFFECTS: Final[Mapping[int, Effect]] = {
    int(key): effect
    for effect, keys in (
        (Effect.READS, READS), (Effect.WRITES, WRITES), (Effect.LOGS_IN, LOGS_IN),
        (Effect.BETWEEN_NODES, BETWEEN_NODES),
    )
    for key in keys
}  # fmt: skip


def effect_of(key: int, asked: Mapping[str, Any]) -> Effect:
    """Return what a request does. The Fetch of a replica moves the high watermark, so that it is one between nodes."""
    if key == ApiKey.FETCH:
        replica = asked.get("replica_id", (asked.get("replica_state") or {}).get("replica_id", -1))
        return Effect.BETWEEN_NODES if replica >= 0 else Effect.READS
    return EFFECTS.get(key, Effect.WRITES)


def creates_topics(key: int, asked: Mapping[str, Any]) -> bool:
    """Return whether a request makes a broker create the topics that it names and does not have."""
    return key == ApiKey.METADATA and bool(asked.get("topics")) and asked.get("allow_auto_topic_creation") is not False
