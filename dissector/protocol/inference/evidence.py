"""What is known of a conversation before a response is looked at: how likely each layout is, in bits.

A connection has few APIs and one version of each, what its broker offers bounds the versions, the other connections of
the capture are of the same kind; where nothing is known, some APIs are every client's daily work and the newest
versions the most used.
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Final

from dissector.protocol.inference.layouts import ResponseLayout, layouts
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import request
from dissector.protocol.schema.model import Api

Pair = tuple[int, int]
"""An API key and a version."""

FREQUENT: Final = frozenset((ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.HEARTBEAT, ApiKey.API_VERSIONS))
"""Produce, Fetch, Metadata, Heartbeat, ApiVersions: most of what goes over any wire."""
COMMON: Final = frozenset((
    ApiKey.LIST_OFFSETS, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP,
    ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP, ApiKey.SASL_HANDSHAKE, ApiKey.INIT_PRODUCER_ID, ApiKey.SASL_AUTHENTICATE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
))  # fmt: skip
"""What else consumers, producers and logins send."""
LESS_COMMON: Final = frozenset((
    ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_CLUSTER,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.STREAMS_GROUP_HEARTBEAT,
))  # fmt: skip
"""Transactions, share and streams groups, the commonest of what administrators do."""
RELATED_APIS: Final = (
    frozenset((
        ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
    )),
    frozenset((
        ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN,
        ApiKey.TXN_OFFSET_COMMIT,
    )),
    frozenset((ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)),
    frozenset((
        ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    )),
    frozenset((
        ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT, ApiKey.CONTROLLER_REGISTRATION, ApiKey.UPDATE_RAFT_VOTER,
    )),
    frozenset((
        ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS,
        ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_GROUPS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        ApiKey.DESCRIBE_CLUSTER,
    )),
)  # fmt: skip
"""APIs that are used together: groups, transactions, share groups and their state, quorums, administration."""
RELATED_WEIGHT: Final = 0.6
"""What an API gains by an exchange of its family, shared by all of them."""
AGE: Final = 0.75
"""How likely a version is beside the next newer one."""
DOUBT: Final = 0.7
"""The power that shares are taken to: what was often seen is likelier than what was not, but not by as much as counts
say. Measured on the bundled captures, so that what is called likely mostly is."""
NEVER: Final = 1e-4
"""How likely a version is that the broker does not offer, beside itself where it does."""
OWN, OTHERS, ANYBODY = 1.0, 4.0, 2.0
"""What counts how much: an exchange of the connection; the rest of the capture; Kafka in general."""


@dataclass(frozen=True)
class InferenceEvidence:
    """What is known for the responses of one connection."""

    seen: Mapping[Pair, float] = field(default_factory=dict)
    """How often the connection has them, by paired exchanges."""
    elsewhere: Mapping[Pair, float] = field(default_factory=dict)
    """How often all connections have them."""
    offered: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Versions that the broker has, by API key; empty where it did not say."""
    words: Set[str] = frozenset()
    """Names and ids that the capture has elsewhere."""
    first: bool = False
    """Whether the response is the first one of its connection."""

    @cached_property
    def odds(self) -> tuple[tuple[float, ResponseLayout], ...]:
        """The layouts, the most likely first, each with the bits that it costs to name it."""
        apis = {layout.api for layout in layouts()}
        weights = {api.key: self._versions(api, self._share(api) ** DOUBT) for api in apis}
        found = [(sum(weights[each.api.key][v] for v in each.versions), each) for each in layouts()]
        total = sum(weight for weight, _ in found)
        return tuple(sorted(((-math.log2(w / total), each) for w, each in found), key=lambda pair: pair[0]))

    def newest(self, layout: ResponseLayout) -> int:
        """The version that a layout is named by: the one that is the most likely here, of equals the newest."""
        weights = self._versions(layout.api, 1.0)
        return max(layout.versions, key=lambda version: (weights[version], version))

    def _share(self, api: Api) -> float:
        """How much an API has of what the connection says."""
        if self.first and api.key == ApiKey.API_VERSIONS:
            return 10 * (OWN * sum(self.seen.values()) + OTHERS + ANYBODY)
        own, others = sum(self._own.get(api.key, {}).values()), sum(self._others.get(api.key, {}).values())
        return OWN * own + OTHERS * others + ANYBODY * _usual(api) + RELATED_WEIGHT * self._kin.get(api.key, 0.0)

    @cached_property
    def _kin(self) -> dict[int, float]:
        """How much of what is known is of the family of each API, told out to its members."""
        found: dict[int, float] = {}
        for family in RELATED_APIS:
            own = sum(sum(self._own.get(key, {}).values()) for key in family)
            others = sum(sum(self._others.get(key, {}).values()) for key in family)
            found |= dict.fromkeys(family, (OWN * own + OTHERS * others) / len(family))
        return found

    @cached_property
    def _own(self) -> dict[int, dict[int, float]]:
        return _by_key(self.seen, 1.0)

    @cached_property
    def _others(self) -> dict[int, dict[int, float]]:
        """As shares of everything."""
        return _by_key(self.elsewhere, sum(self.elsewhere.values()))

    def _versions(self, api: Api, share: float) -> dict[int, float]:
        """An API's share, told out to its versions."""
        own, others = self._own.get(api.key, {}), self._others.get(api.key, {})
        low, high = self.offered.get(api.key, (0, -1)) if self.offered else (0, api.versions.high)
        top = max(api.versions.low, min(high, api.versions.high))  # what a broker offers may be damaged
        plain = {v: AGE ** abs(top - v) for v in api.versions}
        scale = 0.1 / sum(plain.values())
        weights = {v: scale * plain[v] + own.get(v, 0.0) + others.get(v, 0.0) for v in plain}
        scale = share / sum(weights.values())
        return {v: w * scale * (1.0 if low <= v <= high or v in own else NEVER) for v, w in weights.items()}


def _by_key(counts: Mapping[Pair, float], total: float) -> dict[int, dict[int, float]]:
    """By API key and version, in shares of the total."""
    found: dict[int, dict[int, float]] = {}
    for (key, version), count in counts.items():
        found.setdefault(key, {})[version] = count / total
    return found


@cache
def _usual(api: Api) -> float:
    """The share of an API in what is sent anywhere."""
    if api.key in FREQUENT:
        return 0.12
    if api.key in COMMON:
        return 0.02
    if api.key in LESS_COMMON:
        return 0.005
    return 0.001 if "broker" in request(api.key).listeners else 0.0003


NOTHING: Final = InferenceEvidence()
"""A response by itself."""
