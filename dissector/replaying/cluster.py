"""What the cluster that is asked says of itself before anything is replayed: its topics, their ids and leaders."""

from dataclasses import dataclass, field
from typing import Any, Final

from dissector.core.addresses import BrokerAddress
from dissector.protocol.codec.plan import plan
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.protocol.schema.model import Versions
from dissector.recorded_server.exchanges import RecordedExchange
from dissector.replaying.connection import NoAnswerError, ReplayConnection

SECONDS: Final = 30
_GROUP, _TRANSACTION = 0, 1
"""Types of keys of FindCoordinator."""
_OLDEST_KEY: Final = Versions(1, 3)
"""Versions of FindCoordinator that ask for one key."""


@dataclass(slots=True)
class AskedCluster:
    """The answers."""

    nodes: dict[int, BrokerAddress] = field(default_factory=dict)
    leaders: dict[tuple[str, int], int] = field(default_factory=dict)
    leader_epochs: dict[tuple[str, int], int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    offer: dict[int, Versions] = field(default_factory=dict)

    async def coordinator(self, connection: ReplayConnection, key: str, kind: int) -> BrokerAddress | None:
        """Return the broker that coordinates a group or a transaction; None if it is not known."""
        version = _common(ApiKey.FIND_COORDINATOR, self.offer, _OLDEST_KEY)
        if version is None:
            return None
        try:
            body = await connection.ask(ApiKey.FIND_COORDINATOR, version, {"key": key, "key_type": kind}, SECONDS)
        except (NoAnswerError, TimeoutError):
            return None
        return None if body.get("error_code", 1) else self.nodes.get(body["node_id"])

    async def broker_of(self, connection: ReplayConnection, exchanges: list[RecordedExchange]) -> BrokerAddress | None:
        """Return the broker that the requests of one connection are for: the leader of the first partition, the
        coordinator of the first group; None if any will do."""
        if len(self.nodes) < 2:
            return None
        for each in exchanges:
            for entity in sorted(each.entities, key=repr):
                if len(entity) == 2 and (entity[0][0], entity[1][0]) == ("name", "index"):
                    place = str(entity[0][1]), _number(entity[1][1])
                    if place in self.leaders and each.key != ApiKey.METADATA and "group_id" not in each.asked:
                        return self.nodes.get(self.leaders[place])
            group = each.asked.get("group_id")
            if isinstance(group, str) and group:
                return await self.coordinator(connection, group, _GROUP)
            transaction = each.asked.get("transactional_id")
            if isinstance(transaction, str) and transaction and each.key != ApiKey.PRODUCE:
                return await self.coordinator(connection, transaction, _TRANSACTION)
        return None


async def look_at(connection: ReplayConnection) -> AskedCluster:
    """Ask a broker for its versions and its topics; nothing is created by that. Raises `NoAnswerError`,
    `TimeoutError`."""
    cluster = AskedCluster()
    offered = await connection.ask(ApiKey.API_VERSIONS, 0, {}, SECONDS)
    for row in offered.get("api_keys") or ():
        cluster.offer[row["api_key"]] = Versions(row["min_version"], row["max_version"])
    version = _common(ApiKey.METADATA, cluster.offer, Versions(1, 1 << 15))
    if version is None:
        return cluster
    asked: dict[str, object] = {"topics": None, "allow_auto_topic_creation": False}
    fields = {each.name for each in plan("MetadataRequest", version).fields}
    body = await connection.ask(
        ApiKey.METADATA, version, {name: value for name, value in asked.items() if name in fields}, SECONDS
    )
    _take(cluster, body)
    return cluster


def _take(cluster: AskedCluster, body: Values) -> None:
    for node in body.get("brokers") or ():
        cluster.nodes[node["node_id"]] = BrokerAddress(node["host"], node["port"])
    for topic in body.get("topics") or ():
        name = topic.get("name")
        if topic["error_code"] or not name:
            continue
        cluster.topics.add(name)
        if "topic_id" in topic:
            cluster.topic_ids[name] = topic["topic_id"]
        for each in topic.get("partitions") or ():
            place = name, each["partition_index"]
            cluster.leaders[place] = each["leader_id"]
            if "leader_epoch" in each:
                cluster.leader_epochs[place] = each["leader_epoch"]


def _common(key: int, offer: dict[int, Versions], wanted: Versions) -> int | None:
    """Return the newest version that a broker offers, that this release knows, and that is wanted."""
    known = api(key)
    assert known is not None
    stable = Versions(known.versions.low, known.versions.high - bool(known.unstable_versions))
    common = stable.intersect(offer.get(key, Versions(0, -1))).intersect(wanted)
    return common.high if common else None


def _number(value: Any) -> int:
    return value if isinstance(value, int) else -1
