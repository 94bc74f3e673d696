"""Ids and epochs of a broker in place of those that were recorded."""

from typing import Any

import google_crc32c

from dissector.recorded_server import RecordedExchanges, recording_of_frames
from dissector.replaying.own_ids import OwnIds
from tests.recorded_server.served import exchange


def recorded(name: str, version: int, asked: dict[str, Any], answered: dict[str, Any]) -> RecordedExchanges:
    return recording_of_frames([exchange(name, version, asked, answered)])


def batch(producer: int, epoch: int) -> bytes:
    content = bytes(22) + producer.to_bytes(8, "big", signed=True) + epoch.to_bytes(2, "big", signed=True) + bytes(8)
    crc = google_crc32c.value(content)
    return bytes(8) + (49).to_bytes(4, "big") + bytes(4) + b"\2" + crc.to_bytes(4, "big") + content


def test_producers_have_the_id_and_the_epoch_that_the_broker_gave() -> None:
    asked = {"transactional_id": None, "transaction_timeout_ms": 1, "producer_id": -1, "producer_epoch": -1}
    [each] = recorded("InitProducerId", 4, asked, {"producer_id": 5, "producer_epoch": 0}).exchanges
    ids = OwnIds({})
    ids.learn(each, {"producer_id": 900, "producer_epoch": 3})
    assert ids.request({"producer_id": 5, "producer_epoch": 0}) == {"producer_id": 900, "producer_epoch": 3}
    assert ids.request({"producer_id": 6, "producer_epoch": 0}) == {"producer_id": 6, "producer_epoch": 0}
    assert ids.request({"records": batch(5, 0) + batch(6, 0)}) == {"records": batch(900, 3) + batch(6, 0)}
    assert ids.request({"records": batch(-1, -1)}) == {"records": batch(-1, -1)}
    assert ids.request({"records": batch(5, 0)[:-1]}) == {"records": batch(5, 0)[:-1]}, "damage stays as it is"


def test_members_have_their_id_and_their_generation() -> None:
    asked = {"group_id": "g", "member_id": "", "protocol_type": "consumer", "protocols": []}
    [each] = recorded("JoinGroup", 5, asked, {"generation_id": 4, "member_id": "old", "leader": "old"}).exchanges
    ids = OwnIds({})
    ids.learn(each, {"generation_id": 1, "member_id": "new"})
    beat = {"group_id": "g", "generation_id": 4, "member_id": "old"}
    assert ids.request(beat) == {"group_id": "g", "generation_id": 1, "member_id": "new"}
    assert ids.request({**beat, "group_id": "h"})["generation_id"] == 4, "a generation is one of a group"
    assignments = [{"member_id": "old", "assignment": b""}]
    assert ids.request({**beat, "assignments": assignments})["assignments"][0]["member_id"] == "new"
    reason = "need to re-join with the given member-id: old"
    assert ids.request({**beat, "reason": reason})["reason"] == "need to re-join with the given member-id: new"
    assert ids.request({**beat, "reason": "too old, older"})["reason"] == "too old, older"
    assert ids.request({**beat, "reason": None})["reason"] is None


def test_topics_and_leaders_are_those_of_the_cluster() -> None:
    ids = OwnIds({"A" * 21 + "Q": "orders"})
    ids.topic_ids = {"orders": "B" * 21 + "Q"}
    ids.leader_epochs = {("orders", 0): 2}
    parts = [{"partition": 0, "current_leader_epoch": 9, "last_fetched_epoch": 1},
             {"partition": 1, "current_leader_epoch": 9, "last_fetched_epoch": -1}]  # fmt: skip
    found = ids.request({"topics": [{"topic_id": "A" * 21 + "Q", "partitions": parts}]})["topics"][0]
    assert found["topic_id"] == "B" * 21 + "Q"
    assert [each["current_leader_epoch"] for each in found["partitions"]] == [2, 9]
    assert [each["last_fetched_epoch"] for each in found["partitions"]] == [1, -1]
