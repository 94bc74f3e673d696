"""Which broker of the cluster each request is for, and the part of it that each broker gets.

Partitions have leaders, groups and transactions coordinators, and some requests are the controller's, as
`org.apache.kafka.clients.admin.KafkaAdminClient` and the clients send them. What any broker answers stays where the
recorded connection's other requests go.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dissector.core.addresses import BrokerAddress
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey
from dissector.replaying.cluster import GROUP, TRANSACTION, AskedCluster, Coordinated
from dissector.replaying.connection import ReplayConnection

LEADERS: Final = frozenset((
    ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.DELETE_RECORDS, ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DESCRIBE_PRODUCERS, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE,
))  # fmt: skip
"""Each partition's leader answers for it."""
CONTROLLER: Final = frozenset((
    ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.UPDATE_FEATURES,
))  # fmt: skip
_COORDINATED: Final = {"transactional_id": TRANSACTION, "v3_and_below_transactional_id": TRANSACTION, "group_id": GROUP}
"""Fields with the name of what has a coordinator, those of transactions first: AddOffsetsToTxn has a group, too."""
_OF_GROUP: Final = (ApiKey.TXN_OFFSET_COMMIT, "transactional_id")
"""The group's coordinator is asked, although a transaction is named."""
_LISTS: Final[Mapping[tuple[int, str], int]] = {
    (ApiKey.OFFSET_FETCH, "groups"): GROUP, (ApiKey.DESCRIBE_GROUPS, "groups"): GROUP,
    (ApiKey.DELETE_GROUPS, "groups_names"): GROUP, (ApiKey.CONSUMER_GROUP_DESCRIBE, "group_ids"): GROUP,
    (ApiKey.SHARE_GROUP_DESCRIBE, "group_ids"): GROUP, (ApiKey.STREAMS_GROUP_DESCRIBE, "group_ids"): GROUP,
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "groups"): GROUP,
    (ApiKey.DESCRIBE_TRANSACTIONS, "transactional_ids"): TRANSACTION,
    (ApiKey.ADD_PARTITIONS_TO_TXN, "transactions"): TRANSACTION,
}  # fmt: skip
"""Lists of them."""
_RESOURCES: Final = frozenset((ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS))
_OF_BROKER: Final = frozenset((4, 8))
"""Types of resources that one broker has: its configuration, its loggers (`ConfigResource.Type`)."""
_TOPIC_NAMES: Final = ("name", "topic")
_PARTITIONS: Final = ("partition", "partition_index", "index")


class Routes:
    """Asks the cluster where things are, when they are first needed and again when they have moved."""

    def __init__(self, cluster: AskedCluster, control: ReplayConnection) -> None:
        self._cluster, self.control = cluster, control

    async def parts(self, key: int, asked: Values, home: BrokerAddress) -> dict[BrokerAddress, Values]:
        """Return what each broker gets of a request, `home` what is for none or any; ids are those of the cluster."""
        if len(self._cluster.nodes) < 2:
            return {home: asked}
        if key in LEADERS:
            return await self._of_leaders(asked, home)
        if key in CONTROLLER:
            return {self._cluster.controller or home: asked}
        for name, value in asked.items():
            kind = _LISTS.get((key, name))
            if kind is not None and isinstance(value, list) and value:
                return await self._of_list(asked, name, kind, home)
        if (of := _coordinated(key, asked)) is not None:
            return {await self._cluster.coordinator(self.control, of) or home: asked}
        if key in _RESOURCES:
            return self._of_resources(asked, home)
        return {home: asked}

    def moved(self) -> None:
        """A broker said that it is not the one to ask: look again before the next request."""
        self._cluster.forget()

    async def _of_leaders(self, asked: Values, home: BrokerAddress) -> dict[BrokerAddress, Values]:
        places = {*_places(asked, self._cluster)}
        await self._cluster.find_leaders(self.control, {topic for topic, _ in places})
        owners = {place: self._cluster.leader(*place) or home for place in places}
        brokers = dict.fromkeys(owners.values()) or {home: None}
        return {each: _of_broker(asked, each, owners, self._cluster) for each in brokers}

    async def _of_list(self, asked: Values, name: str, kind: int, home: BrokerAddress) -> dict[BrokerAddress, Values]:
        found: dict[BrokerAddress, list[Any]] = {}
        for each in asked[name]:
            word = each.get("group_id", each.get("transactional_id")) if isinstance(each, Mapping) else each
            broker = await self._cluster.coordinator(self.control, Coordinated(kind, str(word)))
            found.setdefault(broker or home, []).append(each)
        return {broker: {**asked, name: some} for broker, some in found.items()}

    def _of_resources(self, asked: Values, home: BrokerAddress) -> dict[BrokerAddress, Values]:
        found: dict[BrokerAddress, list[Any]] = {}
        for each in asked.get("resources") or ():
            name = str(each.get("resource_name"))
            node = int(name) if each.get("resource_type") in _OF_BROKER and name.isdecimal() else -1
            found.setdefault(self._cluster.nodes.get(node, home), []).append(each)
        return {broker: {**asked, "resources": some} for broker, some in found.items()} or {home: asked}


def _coordinated(key: int, asked: Values) -> Coordinated | None:
    """Return the group or the transaction whose coordinator a request is for; None if it is for none."""
    for name, kind in _COORDINATED.items():
        value = asked.get(name)
        if isinstance(value, str) and value and (key, name) != _OF_GROUP:
            return Coordinated(kind, value)
    return None


def _topic(values: Mapping[str, Any], cluster: AskedCluster) -> str:
    name = next((values[each] for each in _TOPIC_NAMES if isinstance(values.get(each), str)), None)
    return name or cluster.topic_of_id(str(values.get("topic_id")))


def _index(partition: object) -> int:
    if isinstance(partition, Mapping):
        partition = next((partition[each] for each in _PARTITIONS if each in partition), -1)
    return partition if isinstance(partition, int) else -1


def _lists(values: Mapping[str, Any]) -> Iterable[tuple[str, list[Any]]]:
    return ((name, value) for name, value in values.items() if isinstance(value, list))


def _places(asked: Values, cluster: AskedCluster) -> Iterable[tuple[str, int]]:
    """Yield the partitions that a request names."""
    for _, topics in _lists(asked):
        for topic in topics:
            for _, partitions in _lists(topic):
                for each in partitions:
                    yield _topic(topic, cluster), _index(each)


def _of_broker(
    asked: Values, broker: BrokerAddress, owners: Mapping[tuple[str, int], BrokerAddress], cluster: AskedCluster
) -> Values:
    """Return a request with the partitions of one broker."""
    made = dict(asked)
    for name, topics in _lists(asked):
        made[name] = []
        for topic in topics:
            own = {inner: [each for each in partitions if owners[_topic(topic, cluster), _index(each)] == broker]
                   for inner, partitions in _lists(topic)}  # fmt: skip
            if any(own.values()):
                made[name].append({**topic, **own})
    return made
