"""What connections are for, told by what is spoken on them."""

from collections import Counter
from typing import Final

from dissector.protocol.message import Values

ROLES: Final = {
    "Produce": "produce",
    "Fetch": "fetch", "ListOffsets": "fetch", "OffsetForLeaderEpoch": "fetch", "ShareFetch": "share fetch",
    "ShareAcknowledge": "share fetch",
    "JoinGroup": "group coordinator", "SyncGroup": "group coordinator", "Heartbeat": "group coordinator",
    "LeaveGroup": "group coordinator", "OffsetCommit": "group coordinator", "OffsetFetch": "group coordinator",
    "ConsumerGroupHeartbeat": "group coordinator", "ShareGroupHeartbeat": "group coordinator",
    "StreamsGroupHeartbeat": "group coordinator",
    "AddPartitionsToTxn": "transaction coordinator", "AddOffsetsToTxn": "transaction coordinator",
    "EndTxn": "transaction coordinator", "TxnOffsetCommit": "group coordinator",
}  # fmt: skip
ANYWHERE: Final = frozenset(
    ("ApiVersions", "Metadata", "FindCoordinator", "InitProducerId", "SaslHandshake", "SaslAuthenticate",
     "GetTelemetrySubscriptions", "PushTelemetry")
)  # fmt: skip
"""What any connection may carry, so that it tells nothing."""
BOOTSTRAP: Final = "bootstrap"
ADMIN: Final = "admin"
MOST_NAMES: Final = 100


class Roles:
    """The connections of a side."""

    def __init__(self) -> None:
        self._spoken: dict[int, set[str]] = {}
        self.software: dict[str, None] = {}
        self.client_ids: dict[str, None] = {}

    def take(self, connection: int, api: str, client_id: str | None) -> None:
        """Add an exchange to what is known of its connection."""
        roles = self._spoken.setdefault(connection, set())
        if api in ROLES:
            roles.add(ROLES[api])
        elif api not in ANYWHERE:
            roles.add(ADMIN)
        if client_id and len(self.client_ids) < MOST_NAMES:
            self.client_ids.setdefault(client_id)

    def told(self, request: Values) -> None:
        """Add what an ApiVersions request says of the software."""
        name, version = request.get("client_software_name"), request.get("client_software_version")
        if name and len(self.software) < MOST_NAMES:
            self.software.setdefault(f"{name} {version}")

    @property
    def connections(self) -> Counter[str]:
        """How many connections there are for each purpose; one that only asks who is there is for the bootstrap."""
        return Counter(" + ".join(sorted(roles)) or BOOTSTRAP for roles in self._spoken.values())

    @property
    def clients(self) -> tuple[str, ...]:
        """The software, as ApiVersions names it; where it does not, the client ids."""
        return tuple(self.software) or tuple(self.client_ids)

    @property
    def who(self) -> tuple[str, ...]:
        """The same, in words that say which of the two it is."""
        return tuple(self.software) or tuple(f"client id {name}" for name in self.client_ids)
