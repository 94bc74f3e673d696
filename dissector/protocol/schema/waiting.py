"""APIs whose response may wait on purpose: nobody should call it slow, or missing, too early."""

from typing import Final

from dissector.protocol.schema.api_keys import ApiKey

WAITING: Final = frozenset((
    ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH, ApiKey.BROKER_REGISTRATION, ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER, ApiKey.STREAMS_GROUP_HEARTBEAT,
))  # fmt: skip
"""For records, for other members, or until a quorum has committed.

BrokerHeartbeat is not one of them: a controller responds at once, and fences a broker whose heartbeats are slow."""
