"""The role of each connection, by the APIs that it carries, and the clients of a side."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Set
from typing import Final

from dissector.protocol.message import Values

ROLES: Final = {
    "Produce": "produce",
    "Fetch": "fetch", "ShareFetch": "share fetch", "ShareAcknowledge": "share fetch",
    "JoinGroup": "group coordinator", "SyncGroup": "group coordinator", "Heartbeat": "group coordinator",
    "LeaveGroup": "group coordinator", "OffsetCommit": "group coordinator", "OffsetFetch": "group coordinator",
    "ConsumerGroupHeartbeat": "group coordinator", "ShareGroupHeartbeat": "group coordinator",
    "StreamsGroupHeartbeat": "group coordinator",
    "AddPartitionsToTxn": "transaction coordinator", "AddOffsetsToTxn": "transaction coordinator",
    "EndTxn": "transaction coordinator", "TxnOffsetCommit": "group coordinator",
}  # fmt: skip
ROLE_NEUTRAL_APIS: Final = frozenset(
    ("ApiVersions", "Metadata", "FindCoordinator", "InitProducerId", "SaslHandshake", "SaslAuthenticate",
     "GetTelemetrySubscriptions", "PushTelemetry")
)  # fmt: skip
"""APIs that any connection may carry."""
OFFSETS: Final = "offset lookup"
OFFSET_APIS: Final = frozenset(("ListOffsets", "OffsetForLeaderEpoch"))
"""APIs that clients send to the leader on whatever connection is open (kafkajs: that of the coordinator): the role only
of a connection that has no other."""
PRODUCER_ID: Final = "producer id"
"""The role of a connection that is only for InitProducerId (franz-go); others send it where they ask for metadata."""
BOOTSTRAP: Final = "bootstrap"
ADMIN: Final = "admin"
MAX_CLIENT_NAMES: Final = 100
_BROKERS_OWN: Final = re.compile(
    r"AddPartitionsManager-client-\d+|broker-\d+-txn-marker-sender|broker-\d+-fetcher-\d+|raft-client-\d+"
    r"|Persister-client-\d+|NetworkPartitionMetadataClient-client-\d+"
)
"""Client ids that brokers have as clients of other brokers, or of themselves."""


def is_brokers_own(client_id: str | None) -> bool:
    """Return whether a client id is that of a broker."""
    return client_id is not None and _BROKERS_OWN.fullmatch(client_id) is not None


class ConnectionRoles:
    """The connections and clients of a side."""

    def __init__(self, client_id: Callable[[int], str | None]) -> None:
        """`client_id` returns the client id with a number."""
        self._client_id = client_id
        self._apis: dict[tuple[int, str], None] = {}
        """Connections with the APIs that they carry."""
        self._client_ids: dict[int, None] = {}
        self.software: dict[str, None] = {}

    def add_exchange(self, connection: int, api: str, client_id: int) -> None:
        """Add an exchange of a connection."""
        self._apis[connection, api] = None
        if client_id not in self._client_ids and len(self._client_ids) < MAX_CLIENT_NAMES:
            self._client_ids[client_id] = None

    def add_software(self, request: Values) -> None:
        """Add the software that an ApiVersions request names."""
        name, version = request.get("client_software_name"), request.get("client_software_version")
        if name and len(self.software) < MAX_CLIENT_NAMES:
            self.software.setdefault(f"{name} {version}")

    @property
    def connections(self) -> Counter[str]:
        """The number of connections in each role."""
        return self.others_than(())

    def others_than(self, left_out: Collection[int]) -> Counter[str]:
        """Return the number of connections in each role, without some of them."""
        apis: dict[int, set[str]] = {}
        for connection, api in self._apis:
            if connection not in left_out:
                apis.setdefault(connection, set()).add(api)
        return Counter(map(_role, apis.values()))

    @property
    def _client_id_texts(self) -> tuple[str, ...]:
        return tuple(name for number in self._client_ids if (name := self._client_id(number)))

    @property
    def clients(self) -> tuple[str, ...]:
        """The software, as ApiVersions names it; without that, the client ids."""
        return tuple(self.software) or self._client_id_texts

    @property
    def labeled_clients(self) -> tuple[str, ...]:
        """The same, with client ids marked as such."""
        return tuple(self.software) or tuple(f"client id {name}" for name in self._client_id_texts)


def _role(apis: Set[str]) -> str:
    """Return the role of a connection that carries these APIs. One with neutral APIs alone is for the bootstrap."""
    roles = {ROLES.get(api, ADMIN) for api in apis - ROLE_NEUTRAL_APIS - OFFSET_APIS}
    if roles:
        return " + ".join(sorted(roles))
    if apis & OFFSET_APIS:
        return OFFSETS
    return PRODUCER_ID if "InitProducerId" in apis and "Metadata" not in apis else BOOTSTRAP
