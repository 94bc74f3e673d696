"""Which broker of a cluster gets what: partitions to leaders, groups to coordinators, sessions with each broker; and
the answers of several brokers as one."""

import asyncio
from typing import Any, cast

import pytest

from dissector.core.addresses import BrokerAddress
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.model import Versions
from dissector.replaying.broker_sessions import BrokerSessions
from dissector.replaying.cluster import AskedCluster
from dissector.replaying.connection import ReplayConnection
from dissector.replaying.merging import merged
from dissector.replaying.replayed_connection import KeptConversation
from dissector.replaying.routing import CONTROLLER, LEADERS, Routes
from tests.traffic import request, response

ONE, TWO, THREE = (BrokerAddress(f"broker-{number}", 9092) for number in (1, 2, 3))
ORDERS = "b" * 21 + "A"


class Coordinators:
    """Answers FindCoordinator, for the group `g2` and the transaction `t3` and the like, and an empty Metadata."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def ask(self, key: int, version: int, body: dict[str, Any], seconds: float) -> dict[str, Any]:
        self.asked.append((ApiKey(key), body.get("key")))
        if key == ApiKey.METADATA:
            return {}
        node = int(body["key"][1:])
        known = body["key_type"] == (1 if body["key"].startswith("t") else 0)
        return {"error_code": 0 if known else 16, "node_id": node}


def cluster() -> AskedCluster:
    found = AskedCluster(
        nodes={1: ONE, 2: TWO, 3: THREE}, controller=THREE,
        leaders={("orders", 0): 1, ("orders", 1): 2, ("paid", 0): 2},
        topic_ids={"orders": ORDERS}, topics={"orders", "paid"},
    )  # fmt: skip
    found.offer = {ApiKey.FIND_COORDINATOR: Versions(0, 6), ApiKey.METADATA: Versions(0, 13)}
    return found


def parts(key: int, asked: dict[str, Any], coordinators: Coordinators | None = None) -> dict[BrokerAddress, Any]:
    control = cast(ReplayConnection, coordinators or Coordinators())
    return asyncio.run(Routes(cluster(), control).parts(key, asked, ONE))


def test_partitions_go_to_their_leaders() -> None:
    asked = {"acks": -1, "topic_data": [
        {"name": "orders", "partition_data": [{"index": 0, "records": b"a"}, {"index": 1, "records": b"b"}]},
        {"name": "paid", "partition_data": [{"index": 0, "records": b"c"}]},
    ]}  # fmt: skip
    assert parts(ApiKey.PRODUCE, asked) == {
        ONE: {"acks": -1, "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": b"a"}]}]},
        TWO: {"acks": -1, "topic_data": [
            {"name": "orders", "partition_data": [{"index": 1, "records": b"b"}]},
            {"name": "paid", "partition_data": [{"index": 0, "records": b"c"}]},
        ]},
    }  # fmt: skip


def test_topics_by_id_and_forgotten_partitions_find_their_leaders() -> None:
    asked = {"topics": [{"topic_id": ORDERS, "partitions": [{"partition": 1}]}],
             "forgotten_topics_data": [{"topic_id": ORDERS, "partitions": [0]}]}  # fmt: skip
    found = parts(ApiKey.FETCH, asked)
    assert found[TWO] == {"topics": asked["topics"], "forgotten_topics_data": []}
    assert found[ONE] == {"topics": [], "forgotten_topics_data": asked["forgotten_topics_data"]}


def test_a_topic_that_the_cluster_lacks_stays_where_it_was_and_is_looked_for_once() -> None:
    control = Coordinators()
    asked = {"topics": [{"name": "nothing", "partitions": [{"partition_index": 0}]}]}
    routes = Routes(cluster(), cast(ReplayConnection, control))
    for _ in range(2):
        assert asyncio.run(routes.parts(ApiKey.LIST_OFFSETS, asked, ONE)) == {ONE: asked}
    assert control.asked == [(ApiKey.METADATA, None)]


@pytest.mark.parametrize(
    ("key", "asked", "broker"),
    [
        (ApiKey.HEARTBEAT, {"group_id": "g2"}, TWO),
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, {"group_id": "g3"}, THREE),
        (ApiKey.END_TXN, {"transactional_id": "t3"}, THREE),
        (ApiKey.ADD_OFFSETS_TO_TXN, {"transactional_id": "t3", "group_id": "g2"}, THREE),
        (ApiKey.TXN_OFFSET_COMMIT, {"transactional_id": "t3", "group_id": "g2"}, TWO),
        (ApiKey.INIT_PRODUCER_ID, {"transactional_id": None}, ONE),
        (ApiKey.CREATE_TOPICS, {"topics": [{"name": "new", "num_partitions": 3}]}, THREE),
        (ApiKey.METADATA, {"topics": [{"name": "paid"}]}, ONE),
        (ApiKey.HEARTBEAT, {"group_id": ""}, ONE),
    ],
)
def test_what_is_of_one_broker_goes_there(key: int, asked: dict[str, Any], broker: BrokerAddress) -> None:
    assert parts(key, asked) == {broker: asked}


def test_lists_of_groups_are_parted() -> None:
    assert parts(ApiKey.DESCRIBE_GROUPS, {"groups": ["g2", "g3", "g2"]}) == {
        TWO: {"groups": ["g2", "g2"]}, THREE: {"groups": ["g3"]},
    }  # fmt: skip
    assert parts(ApiKey.OFFSET_FETCH, {"groups": [{"group_id": "g3"}], "require_stable": True}) == {
        THREE: {"groups": [{"group_id": "g3"}], "require_stable": True}
    }


def test_a_broker_s_own_configuration_is_asked_of_it() -> None:
    resources = [{"resource_type": 4, "resource_name": "2"}, {"resource_type": 2, "resource_name": "2"}]
    assert parts(ApiKey.DESCRIBE_CONFIGS, {"resources": resources}) == {
        TWO: {"resources": resources[:1]}, ONE: {"resources": resources[1:]},
    }  # fmt: skip


def test_a_coordinator_is_looked_up_once_until_it_has_moved() -> None:
    control = Coordinators()
    routes = Routes(cluster(), cast(ReplayConnection, control))
    for _ in range(2):
        asyncio.run(routes.parts(ApiKey.HEARTBEAT, {"group_id": "g2"}, ONE))
    assert len(control.asked) == 1
    routes.moved()
    asyncio.run(routes.parts(ApiKey.HEARTBEAT, {"group_id": "g2"}, ONE))
    assert len(control.asked) == 2


def test_a_single_broker_gets_what_was_recorded() -> None:
    alone = AskedCluster(nodes={1: ONE})
    asked = {"topic_data": [{"name": "orders", "partition_data": [{"index": 9}]}]}
    control = cast(ReplayConnection, Coordinators())
    assert asyncio.run(Routes(alone, control).parts(ApiKey.PRODUCE, asked, TWO)) == {TWO: asked}


def test_no_api_has_two_ways() -> None:
    assert not LEADERS & CONTROLLER


def fetch(session: int, epoch: int, *partitions: int, forgotten: tuple[int, ...] = ()) -> dict[str, Any]:
    topics = [{"topic": "orders", "partitions": [{"partition": each} for each in partitions]}]
    return {
        "session_id": session, "session_epoch": epoch, "topics": topics if partitions else [],
        "forgotten_topics_data": [{"topic": "orders", "partitions": [*forgotten]}] if forgotten else [],
    }  # fmt: skip


def test_a_session_becomes_one_with_each_broker() -> None:
    sessions = BrokerSessions()
    first = {ONE: fetch(0, 0, 0), TWO: fetch(0, 0, 1)}
    assert sessions.parts(ApiKey.FETCH, fetch(0, 0, 0, 1), first) == first
    for broker, number in ((ONE, 71), (TWO, 72)):
        sessions.learn(ApiKey.FETCH, broker, {"session_id": number, "error_code": 0})
    nothing_new = sessions.parts(ApiKey.FETCH, fetch(5, 1), {ONE: fetch(5, 1)})
    assert nothing_new == {ONE: fetch(71, 1), TWO: fetch(72, 1)}
    added = sessions.parts(ApiKey.FETCH, fetch(5, 2, 2), {THREE: fetch(5, 2, 2)})
    assert added == {ONE: fetch(71, 2), TWO: fetch(72, 2), THREE: fetch(0, 0, 2)}
    last = sessions.parts(ApiKey.FETCH, fetch(5, -1), {ONE: fetch(5, -1)})
    assert {broker: each["session_epoch"] for broker, each in last.items()} == {ONE: -1, TWO: -1, THREE: -1}
    assert sessions.parts(ApiKey.FETCH, fetch(0, 0, 0), {ONE: fetch(0, 0, 0)}) == {ONE: fetch(0, 0, 0)}


def test_a_session_that_a_broker_did_not_make_begins_anew() -> None:
    sessions = BrokerSessions()
    sessions.parts(ApiKey.FETCH, fetch(0, 0, 0), {ONE: fetch(0, 0, 0)})
    sessions.learn(ApiKey.FETCH, ONE, {"session_id": 0, "error_code": 0})
    assert sessions.parts(ApiKey.FETCH, fetch(5, 1, 0), {ONE: fetch(5, 1, 0)}) == {ONE: fetch(0, 0, 0)}


def test_a_fetch_without_a_session_has_none() -> None:
    asked = fetch(0, -1, 0)
    assert BrokerSessions().parts(ApiKey.FETCH, asked, {ONE: asked}) == {ONE: asked}


def test_answers_of_several_brokers_are_one() -> None:
    one = {"throttle_time_ms": 0, "error_code": 0, "session_id": 0, "responses": [
        {"topic": "orders", "partitions": [{"partition_index": 0, "error_code": 0}]}]}  # fmt: skip
    two = {"throttle_time_ms": 30, "error_code": 0, "session_id": 9, "responses": [
        {"topic": "orders", "partitions": [{"partition_index": 1, "error_code": 6}]},
        {"topic": "paid", "partitions": [{"partition_index": 0, "error_code": 0}]}]}  # fmt: skip
    assert merged([one]) == one
    assert merged([one, two]) == {"throttle_time_ms": 30, "error_code": 0, "session_id": 9, "responses": [
        {"topic": "orders", "partitions": [
            {"partition_index": 0, "error_code": 0}, {"partition_index": 1, "error_code": 6}]},
        {"topic": "paid", "partitions": [{"partition_index": 0, "error_code": 0}]},
    ]}  # fmt: skip
    assert len(one["responses"][0]["partitions"]) == 1


def test_a_conversation_has_responses_in_the_order_of_requests() -> None:
    kept = KeptConversation(cast(ReplayConnection, None))
    waiting = [kept.sent(request(number), waits=True) for number in (7, 8, 9)]
    kept.received(waiting[1], response(8))
    kept.received(waiting[0], response(31))
    kept.received(waiting[2], None)
    assert [turn.data for turn in kept.turns if not turn.from_client] == [response(7), response(8)]
    assert kept.size == sum(len(turn.data) for turn in kept.turns)
