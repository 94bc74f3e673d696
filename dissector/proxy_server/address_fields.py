"""Which fields of responses are addresses of brokers, which a client may connect to.

A proxy rewrites these, and no others. A test walks all schemas and fails where a pair of host and port stands in none
of the tables here, so that a new release can't bring an address that leaks.
"""

from typing import Final, NamedTuple

from dissector.protocol.schema.api_keys import ApiKey

Path = tuple[str, ...]


class AddressFields(NamedTuple):
    """The place of addresses in a response: the structure that has them, and what its fields are called."""

    path: Path
    """Names from the body to the structure; arrays have no indexes."""
    node: str = "node_id"
    """The field with the node's id, in this structure or in one around it."""
    kind: str = ""
    """The field that says of which kind the address is, in this structure or before it; empty for brokers."""
    last: bool = False
    """Whether the structure is the end of the body, and mostly absent (KIP-951)."""


ADDRESSES: Final[dict[int, tuple[AddressFields, ...]]] = {
    ApiKey.PRODUCE: (AddressFields(("node_endpoints",), last=True),),
    ApiKey.FETCH: (AddressFields(("node_endpoints",), last=True),),
    ApiKey.METADATA: (AddressFields(("brokers",)),),
    ApiKey.FIND_COORDINATOR: (AddressFields(()), AddressFields(("coordinators",))),
    ApiKey.DESCRIBE_QUORUM: (AddressFields(("nodes", "listeners"), kind="name"),),
    ApiKey.DESCRIBE_CLUSTER: (AddressFields(("brokers",), node="broker_id", kind="endpoint_type"),),
    ApiKey.SHARE_FETCH: (AddressFields(("node_endpoints",), last=True),),
    ApiKey.SHARE_ACKNOWLEDGE: (AddressFields(("node_endpoints",), last=True),),
}
"""By API key. FindCoordinator has its address at the top level up to version 3, and in `coordinators` from 4 on."""

BETWEEN_NODES: Final[dict[int, tuple[Path, ...]]] = {
    ApiKey.VOTE: (("node_endpoints",),),
    ApiKey.BEGIN_QUORUM_EPOCH: (("node_endpoints",),),
    ApiKey.END_QUORUM_EPOCH: (("node_endpoints",),),
    ApiKey.FETCH_SNAPSHOT: (("node_endpoints",),),
    ApiKey.UPDATE_RAFT_VOTER: (("current_leader",),),
}
"""Addresses in responses that brokers and controllers send each other: no client asks for them."""

OF_CLIENTS: Final[dict[int, tuple[Path, ...]]] = {
    ApiKey.STREAMS_GROUP_HEARTBEAT: (("partitions_by_user_endpoint", "user_endpoint"),),
    ApiKey.STREAMS_GROUP_DESCRIBE: (("groups", "members", "user_endpoint"),),
}
"""Addresses at which applications listen (`application.server` of Kafka Streams)."""
