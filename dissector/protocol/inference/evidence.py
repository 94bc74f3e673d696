"""Priors: how likely each layout is, in bits, by what is known of the conversation before a response is read.

A connection uses few APIs and one version of each, its broker's advertised versions bound the versions, and other
connections of the capture are similar. If nothing is known, usual APIs and newest versions are the most likely.
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
Odds = tuple[tuple[float, ResponseLayout], ...]
"""Layouts, each with the bits of its prior."""

FREQUENT: Final = frozenset((ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.HEARTBEAT, ApiKey.API_VERSIONS))
"""Most of all traffic."""
COMMON: Final = frozenset((
    ApiKey.LIST_OFFSETS, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP,
    ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP, ApiKey.SASL_HANDSHAKE, ApiKey.INIT_PRODUCER_ID, ApiKey.SASL_AUTHENTICATE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
))  # fmt: skip
"""Other APIs of consumers, producers and logins."""
LESS_COMMON: Final = frozenset((
    ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_CLUSTER,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE, ApiKey.STREAMS_GROUP_HEARTBEAT,
))  # fmt: skip
"""APIs of transactions, share and streams groups, and the most common ones of administration."""
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
"""The weight that an exchange gives to its related APIs, all together."""
AGE: Final = 0.75
"""The probability of a version relative to the next newer one."""
DOUBT: Final = 0.7
"""The exponent applied to shares: frequent APIs are more likely, but by less than their counts suggest. Tuned on the
bundled captures, so that an inference called likely mostly is right."""
NEVER: Final = 1e-4
"""The probability of a version that the broker does not advertise, relative to an advertised one."""
CONNECTION_WEIGHT, CAPTURE_WEIGHT, GENERAL_WEIGHT = 1.0, 4.0, 2.0
"""Weights: of an exchange of the connection, of the rest of the capture, of Kafka traffic in general."""


@dataclass(frozen=True, eq=False)
class InferenceEvidence:
    """What is known for inferring the responses of one connection."""

    seen: Mapping[Pair, float] = field(default_factory=dict)
    """Counts of the connection's exchanges."""
    elsewhere: Mapping[Pair, float] = field(default_factory=dict)
    """Counts of all connections' exchanges."""
    offered: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """The broker's advertised versions by API key; empty if not captured."""
    words: Set[str] = frozenset()
    """Names and ids that occur elsewhere in the capture."""
    first: bool = False
    """Whether the response is the first one of its connection."""

    @cached_property
    def odds(self) -> Odds:
        """The layouts, the most likely first, each with the bits of its prior."""
        apis = {layout.api for layout in layouts()}
        weights = {api.key: self._versions(api, self._share(api) ** DOUBT) for api in apis}
        found = [(sum(weights[each.api.key][v] for v in each.versions), each) for each in layouts()]
        total = sum(weight for weight, _ in found)
        return tuple(sorted(((-math.log2(w / total), each) for w, each in found), key=lambda pair: pair[0]))

    def newest(self, layout: ResponseLayout) -> int:
        """Return the most likely version of a layout, of equal ones the newest."""
        weights = self._versions(layout.api, 1.0)
        return max(layout.versions, key=lambda version: (weights[version], version))

    def _share(self, api: Api) -> float:
        """Return the weight of an API on the connection."""
        if self.first and api.key == ApiKey.API_VERSIONS:
            return 10 * (CONNECTION_WEIGHT * sum(self.seen.values()) + CAPTURE_WEIGHT + GENERAL_WEIGHT)
        own, others = (
            sum(self._seen_versions.get(api.key, {}).values()),
            sum(self._elsewhere_versions.get(api.key, {}).values()),
        )
        return (
            CONNECTION_WEIGHT * own
            + CAPTURE_WEIGHT * others
            + GENERAL_WEIGHT * _usual(api)
            + RELATED_WEIGHT * self._related_weights.get(api.key, 0.0)
        )

    @cached_property
    def _related_weights(self) -> dict[int, float]:
        """The weight that each API gets from exchanges of related APIs."""
        found: dict[int, float] = {}
        for related in RELATED_APIS:
            own = sum(sum(self._seen_versions.get(key, {}).values()) for key in related)
            others = sum(sum(self._elsewhere_versions.get(key, {}).values()) for key in related)
            found |= dict.fromkeys(related, (CONNECTION_WEIGHT * own + CAPTURE_WEIGHT * others) / len(related))
        return found

    @cached_property
    def _seen_versions(self) -> dict[int, dict[int, float]]:
        return _by_key(self.seen, 1.0)

    @cached_property
    def _elsewhere_versions(self) -> dict[int, dict[int, float]]:
        """As shares of all exchanges."""
        return _by_key(self.elsewhere, sum(self.elsewhere.values()))

    def _versions(self, api: Api, share: float) -> dict[int, float]:
        """Return an API's share, distributed over its versions."""
        own, others = self._seen_versions.get(api.key, {}), self._elsewhere_versions.get(api.key, {})
        low, high = self.offered.get(api.key, (0, -1)) if self.offered else (0, api.versions.high)
        top = max(api.versions.low, min(high, api.versions.high))  # advertised versions may be damaged
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
