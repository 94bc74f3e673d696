"""APIs in a few groups by subject, for colors and statistics."""

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


def api_group(api_key: int) -> str:
    """Return the group of an API: ``produce`` for Produce, ``groups`` for JoinGroup, ``admin`` for unknown ones."""
    return _GROUP_OF_API.get(api_key, OTHER_GROUP)
