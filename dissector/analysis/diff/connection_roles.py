"""What connections are for, told by what is spoken on them."""

from collections import Counter
from collections.abc import Callable
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
ROLE_NEUTRAL_APIS: Final = frozenset(
    ("ApiVersions", "Metadata", "FindCoordinator", "InitProducerId", "SaslHandshake", "SaslAuthenticate",
     "GetTelemetrySubscriptions", "PushTelemetry")
)  # fmt: skip
"""What any connection may carry, so that it tells nothing."""
BOOTSTRAP: Final = "bootstrap"
ADMIN: Final = "admin"
MAX_CLIENT_NAMES: Final = 100


class ConnectionRoles:
    """The connections of a side."""

    def __init__(self, client_id: Callable[[int], str | None]) -> None:
        """`client_id` gives the text of a client id's number."""
        self._client_id = client_id
        self._spoken: dict[tuple[int, str], None] = {}
        """Connections with the APIs that were spoken on them."""
        self._client_ids: dict[int, None] = {}
        self.software: dict[str, None] = {}

    def take(self, connection: int, api: str, client_id: int) -> None:
        """Add an exchange to what is known of its connection."""
        self._spoken[connection, api] = None
        if client_id not in self._client_ids and len(self._client_ids) < MAX_CLIENT_NAMES:
            self._client_ids[client_id] = None

    def told(self, request: Values) -> None:
        """Add what an ApiVersions request says of the software."""
        name, version = request.get("client_software_name"), request.get("client_software_version")
        if name and len(self.software) < MAX_CLIENT_NAMES:
            self.software.setdefault(f"{name} {version}")

    @property
    def connections(self) -> Counter[str]:
        """How many connections there are for each purpose; one that only asks who is there is for the bootstrap."""
        purposes: dict[int, set[str]] = {}
        for connection, api in self._spoken:
            of_it = purposes.setdefault(connection, set())
            if api not in ROLE_NEUTRAL_APIS:
                of_it.add(ROLES.get(api, ADMIN))
        return Counter(" + ".join(sorted(of_it)) or BOOTSTRAP for of_it in purposes.values())

    @property
    def _named(self) -> tuple[str, ...]:
        return tuple(name for number in self._client_ids if (name := self._client_id(number)))

    @property
    def clients(self) -> tuple[str, ...]:
        """The software, as ApiVersions names it; where it does not, the client ids."""
        return tuple(self.software) or self._named

    @property
    def who(self) -> tuple[str, ...]:
        """The same, in words that say which of the two it is."""
        return tuple(self.software) or tuple(f"client id {name}" for name in self._named)
