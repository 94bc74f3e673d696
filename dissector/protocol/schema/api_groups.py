"""Which APIs belong together: by subject, for colors and statistics; those whose response may wait on purpose; and, by
ranges of keys, those of vendors."""

from typing import Final

from dissector.protocol.schema.api_keys import ApiKey

API_GROUPS: Final[dict[str, tuple[int, ...]]] = {
    "produce": (
        ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID,
    ),
    "fetch": (
        ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.SHARE_FETCH,
        ApiKey.SHARE_ACKNOWLEDGE,
    ),
    "metadata": (
        ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ),
    "groups": (
        ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    ),
    "transactions": (
        ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT,
    ),
    "security": (
        ApiKey.SASL_HANDSHAKE, ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS,
        ApiKey.SASL_AUTHENTICATE, ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ),
    "brokers": (
        ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.DESCRIBE_QUORUM,
        ApiKey.ALTER_PARTITION, ApiKey.ENVELOPE, ApiKey.FETCH_SNAPSHOT, ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT, ApiKey.UNREGISTER_BROKER, ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION, ApiKey.ASSIGN_REPLICAS_TO_DIRS, ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER, ApiKey.UPDATE_RAFT_VOTER, ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, ApiKey.UNREGISTER_CONTROLLER,
    ),
}  # fmt: skip
"""Groups of APIs. All other APIs are administration."""
OTHER_GROUP: Final = "admin"
_GROUP_OF_API: Final = {key: api_group for api_group, keys in API_GROUPS.items() for key in keys}
WAITING: Final = frozenset((
    ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH, ApiKey.BROKER_REGISTRATION, ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER, ApiKey.STREAMS_GROUP_HEARTBEAT,
))  # fmt: skip
"""APIs whose response may wait on purpose: for records, for other members, or until a quorum has committed. None should
be called slow, or missing, too early.

BrokerHeartbeat is not one of them: a controller responds at once, and fences a broker whose heartbeats are slow."""
HARMLESS_IN_FLIGHT: Final = WAITING | {
    ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.API_VERSIONS, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}  # fmt: skip
"""APIs that a client may have in flight when it stops, without harm."""
PRIVATE: Final = ((501, 999, "AutoMQ"), (10_000, 14_999, "Confluent"), (15_000, 15_999, "Redpanda"))
"""Keys that vendors use for APIs that no release of Apache Kafka has."""


def api_group(api_key: int) -> str:
    """Return the group of an API: ``produce`` for Produce, ``groups`` for JoinGroup, ``admin`` for unknown ones."""
    return _GROUP_OF_API.get(api_key, OTHER_GROUP)


def owner_of(api_key: int) -> str:
    """Return whose API an unknown key is, as far as its range says."""
    vendor = next((name for low, high, name in PRIVATE if low <= api_key <= high), None)
    return "not known to this release" if vendor is None else f"in the range of {vendor}'s private APIs"
