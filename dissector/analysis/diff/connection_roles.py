"""The role of each connection, by the APIs that it carries, and the clients of a side."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Set
from typing import Final

import numpy as np

from dissector.analysis.diff.kept_numbers import as_column, extend, no_numbers
from dissector.core.arrays import Int64
from dissector.core.columns import ValueNumbers, unique
from dissector.core.grouping import by_distinct
from dissector.protocol.message import Values
from dissector.protocol.schema.loader import api_name

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
METADATA: Final = "metadata"
NEUTRAL_PARTS: Final = {"InitProducerId": PRODUCER_ID, "Metadata": METADATA}
"""What of neutral APIs counts on a connection without others."""
BOOTSTRAP: Final = "bootstrap"
ADMIN: Final = "admin"
PART_BITS: Final = 6
"""There are fewer parts than bits in a number."""
MAX_CLIENT_NAMES: Final = 100
CLIENT_ID: Final = "client id "
"""In front of a client id where the name of the software would stand."""
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

    def __init__(self) -> None:
        self._connections = no_numbers()
        self._parts = no_numbers()
        """What connections carry, each part of a connection once or a few times: numbers of roles and APIs."""
        self._part_numbers = ValueNumbers[str]()
        self._client_ids: dict[int, str | None] = {}
        """By their numbers."""
        self.software: dict[str, None] = {}

    def add_exchanges(
        self, connections: Int64, api_keys: Int64, client_ids: Int64, client_id: Callable[[int], str | None]
    ) -> None:
        """Add exchanges: their connections, APIs and client ids, as `IndexColumns` has them. `client_id` returns the
        client id with a number."""
        parts = by_distinct(api_keys, lambda key: self._part_numbers.of(part_of(api_name(key))), np.int64)
        carried = unique(connections << PART_BITS | parts)
        extend(self._connections, carried >> PART_BITS)
        extend(self._parts, carried & (1 << PART_BITS) - 1)
        distinct, first = np.unique(client_ids, return_index=True)
        for number in distinct[np.argsort(first)].tolist():
            if number not in self._client_ids and len(self._client_ids) < MAX_CLIENT_NAMES:
                self._client_ids[number] = client_id(number)

    def add_software(self, request: Values) -> None:
        """Add the software that an ApiVersions request names."""
        name, version = request.get("client_software_name"), request.get("client_software_version")
        if name and len(self.software) < MAX_CLIENT_NAMES:
            self.software.setdefault(f"{name} {version}")

    @property
    def numbers(self) -> list[int]:
        """The numbers of the connections, ascending."""
        return [int(each) for each in unique(as_column(self._connections))]

    @property
    def connections(self) -> Counter[str]:
        """The number of connections in each role."""
        return self.others_than(())

    def others_than(self, left_out: Collection[int]) -> Counter[str]:
        """Return the number of connections in each role, without some of them."""
        return Counter({role: len(numbers) for role, numbers in self.by_role(left_out).items()})

    def by_role(self, left_out: Collection[int], without: Iterable[tuple[int, str]] = ()) -> dict[str, Int64]:
        """Return the numbers of the connections in each role, without some of them, and `without` what some of them
        carry (`part_of`)."""
        carried, part = as_column(self._connections), as_column(self._parts)
        is_left = ~np.isin(carried, np.fromiter(left_out, np.int64))
        for connection, name in without:
            is_left &= (carried != connection) | (part != self._part_numbers.of(name))
        numbers, at = np.unique(carried[is_left], return_inverse=True)
        parts = np.zeros(len(numbers), np.int64)
        np.bitwise_or.at(parts, at, 1 << part[is_left])
        sets, first, which = np.unique(parts, return_index=True, return_inverse=True)
        names = self._part_numbers.values
        found: dict[str, Int64] = {}
        for n in np.argsort(first).tolist():
            role = _role({name for number, name in enumerate(names) if int(sets[n]) >> number & 1})
            found[role] = np.concatenate([found.get(role, numbers[:0]), numbers[which == n]])
        return found

    @property
    def _client_id_texts(self) -> tuple[str, ...]:
        return tuple(filter(None, self._client_ids.values()))

    @property
    def clients(self) -> tuple[str, ...]:
        """The software, as ApiVersions names it; without that, the client ids."""
        return tuple(self.software) or self._client_id_texts

    @property
    def labeled_clients(self) -> tuple[str, ...]:
        """The same, with client ids marked as such."""
        return tuple(self.software) or tuple(f"{CLIENT_ID}{name}" for name in self._client_id_texts)


def part_of(api: str) -> str:
    """Return what an API adds to the role of its connection."""
    if api in ROLE_NEUTRAL_APIS:
        return NEUTRAL_PARTS.get(api, BOOTSTRAP)
    return OFFSETS if api in OFFSET_APIS else ROLES.get(api, ADMIN)


def _role(parts: Set[str]) -> str:
    """Return the role of a connection, by what its APIs add. One with neutral APIs alone is for the bootstrap."""
    roles = parts - {*NEUTRAL_PARTS.values(), BOOTSTRAP, OFFSETS}
    if roles:
        return " + ".join(sorted(roles))
    if OFFSETS in parts:
        return OFFSETS
    return PRODUCER_ID if PRODUCER_ID in parts and METADATA not in parts else BOOTSTRAP
