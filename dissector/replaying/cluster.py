"""What the cluster that is asked says of itself before anything is replayed: its topics, their ids and leaders."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dissector.core.addresses import BrokerAddress
from dissector.protocol.codec.plan import plan
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.loader import api
from dissector.protocol.schema.model import Versions
from dissector.recorded_server.exchanges import RecordedExchange
from dissector.replaying.connection import NoAnswerError, ReplayConnection

SECONDS: Final = 30
WAIT_SECONDS: Final = 10.0
"""How long a leader or a coordinator is awaited that is being chosen: of a topic that was just created."""
_PAUSE: Final = 0.1
GROUP, TRANSACTION = 0, 1
"""Types of keys of FindCoordinator."""
_OLDEST_KEY: Final = Versions(1, 3)
"""Versions of FindCoordinator that ask for one key."""
_NOT_YET: Final = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))


class Coordinated(NamedTuple):
    """What has a coordinator: its kind, and its name."""

    kind: int
    name: str


@dataclass(slots=True)
class AskedCluster:
    """The answers."""

    nodes: dict[int, BrokerAddress] = field(default_factory=dict)
    controller: BrokerAddress | None = None
    leaders: dict[tuple[str, int], int] = field(default_factory=dict)
    leader_epochs: dict[tuple[str, int], int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    offer: dict[int, Versions] = field(default_factory=dict)
    _coordinators: dict[Coordinated, BrokerAddress] = field(default_factory=dict)
    _missing: set[str] = field(default_factory=set)
    """Topics that were looked for in vain."""

    def leader(self, topic: str, partition: int) -> BrokerAddress | None:
        """The leader of a partition; None if it is not known."""
        return self.nodes.get(self.leaders.get((topic, partition), -1))

    def topic_of_id(self, topic_id: str) -> str:
        """The name of a topic by its id; empty if it is not known."""
        return next((name for name, each in self.topic_ids.items() if each == topic_id), "")

    async def find_leaders(self, connection: ReplayConnection, topics: set[str]) -> None:
        """Look for topics whose leaders are not known, for a while if they exist and have none yet."""
        until = time.monotonic() + WAIT_SECONDS
        known = {name for name, _ in self.leaders}
        wanted = topics - known - self._missing - {""}
        while wanted:
            await self.look(connection)
            known = {name for name, _ in self.leaders}
            wanted -= known
            if not wanted & self.topics or time.monotonic() > until:
                self._missing |= wanted
                return
            await asyncio.sleep(_PAUSE)

    def forget(self) -> None:
        """Ask again who leads and who coordinates."""
        self.leaders.clear()
        self._coordinators.clear()

    def created(self) -> None:
        """Topics may be there now that were not before."""
        self._missing.clear()

    async def coordinator(self, connection: ReplayConnection, of: Coordinated) -> BrokerAddress | None:
        """Return the broker that coordinates a group or a transaction; None if it is not known."""
        if of not in self._coordinators:
            found = await self._ask_for_coordinator(connection, of)
            if found is None:
                return None
            self._coordinators[of] = found
        return self._coordinators[of]

    async def _ask_for_coordinator(self, connection: ReplayConnection, of: Coordinated) -> BrokerAddress | None:
        version = _common(ApiKey.FIND_COORDINATOR, self.offer, _OLDEST_KEY)
        if version is None:
            return None
        until = time.monotonic() + WAIT_SECONDS
        asked = {"key": of.name, "key_type": of.kind}
        while True:
            try:
                body = await connection.ask(ApiKey.FIND_COORDINATOR, version, asked, SECONDS)
            except (NoAnswerError, TimeoutError):
                return None
            if body.get("error_code") not in _NOT_YET or time.monotonic() > until:
                return None if body.get("error_code", 1) else self.nodes.get(body["node_id"])
            await asyncio.sleep(_PAUSE)

    async def home(self, connection: ReplayConnection, exchanges: list[RecordedExchange]) -> BrokerAddress | None:
        """Return the broker that gets the requests of one connection that any may answer: the leader of the first
        partition, the coordinator of the first group; None if nothing shows one."""
        if len(self.nodes) < 2:
            return None
        for each in exchanges:
            for entity in sorted(each.entities, key=repr):
                if len(entity) == 2 and (entity[0][0], entity[1][0]) == ("name", "index"):
                    leader = self.leader(str(entity[0][1]), _number(entity[1][1]))
                    if leader is not None and each.key != ApiKey.METADATA and "group_id" not in each.asked:
                        return leader
            for name, kind in (("group_id", GROUP), ("transactional_id", TRANSACTION)):
                value = each.asked.get(name)
                if isinstance(value, str) and value and each.key != ApiKey.PRODUCE:
                    return await self.coordinator(connection, Coordinated(kind, value))
        return None

    async def look(self, connection: ReplayConnection) -> None:
        """Ask for all topics; nothing is created by that. Raises `NoAnswerError`, `TimeoutError`."""
        version = _common(ApiKey.METADATA, self.offer, Versions(1, 1 << 15))
        if version is None:
            return
        asked: dict[str, object] = {"topics": None, "allow_auto_topic_creation": False}
        fields = {each.name for each in plan("MetadataRequest", version).fields}
        body = await connection.ask(
            ApiKey.METADATA, version, {name: value for name, value in asked.items() if name in fields}, SECONDS
        )
        _take(self, body)


async def look_at(connection: ReplayConnection) -> AskedCluster:
    """Ask a broker for its versions and its topics; nothing is created by that. Raises `NoAnswerError`,
    `TimeoutError`."""
    cluster = AskedCluster()
    offered = await connection.ask(ApiKey.API_VERSIONS, 0, {}, SECONDS)
    for row in offered.get("api_keys") or ():
        cluster.offer[row["api_key"]] = Versions(row["min_version"], row["max_version"])
    await cluster.look(connection)
    return cluster


def _take(cluster: AskedCluster, body: Values) -> None:
    for node in body.get("brokers") or ():
        cluster.nodes[node["node_id"]] = BrokerAddress(node["host"], node["port"])
    cluster.controller = cluster.nodes.get(body.get("controller_id", -1))
    for topic in body.get("topics") or ():
        name = topic.get("name")
        if topic["error_code"] or not name:
            continue
        cluster.topics.add(name)
        if "topic_id" in topic:
            cluster.topic_ids[name] = topic["topic_id"]
        for each in topic.get("partitions") or ():
            place = name, each["partition_index"]
            if each["leader_id"] >= 0:
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
