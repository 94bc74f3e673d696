"""What a request gets that was recorded in another way: another version, other partitions, other offsets, other ids."""

import contextlib
import socket
import time

import pytest

import dissector
from dissector.recorded_server.server import QUIET_SECONDS
from tests.recorded_server.served import ask, ask_on, exchange

BATCH = 61


def batch(base: int, count: int) -> bytes:
    """A record batch with a header only: what is looked at is its offsets."""
    head = base.to_bytes(8, "big") + (BATCH - 12).to_bytes(4, "big") + bytes(4) + b"\2" + bytes(6)
    return (head + (count - 1).to_bytes(4, "big")).ljust(BATCH, b"\0")


def fetched(*parts: tuple[int, bytes], session: int = 0, code: int = 0) -> dict[str, object]:
    partitions = [
        {"partition_index": index, "error_code": code, "high_watermark": 20, "last_stable_offset": 20,
         "log_start_offset": 0, "aborted_transactions": None, "records": records}
        for index, records in parts
    ]  # fmt: skip
    return {"session_id": session, "responses": [{"topic": "orders", "partitions": partitions}]}


def fetching(*offsets: int, session: int = 0, epoch: int = -1, wait: int = 0) -> dict[str, object]:
    partitions = [
        {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        for index, offset in enumerate(offsets)
    ]
    topics = [{"topic": "orders", "partitions": partitions}] if partitions else []
    return {"replica_id": -1, "max_wait_ms": wait, "min_bytes": 1, "session_id": session, "session_epoch": epoch,
            "topics": topics}  # fmt: skip


METADATA = {
    "brokers": [{"node_id": 7, "host": "broker.example", "port": 9092}, {"node_id": 8, "host": "b8", "port": 9093}],
    "controller_id": 7,
    "topics": [{"error_code": 0, "name": "orders", "partitions": [{"error_code": 0, "partition_index": 0,
                "leader_id": 7, "replica_nodes": [7], "isr_nodes": [7]}]}],
}  # fmt: skip
FETCHES = [
    exchange("Fetch", 11, fetching(0, 0), fetched((0, batch(0, 5) + batch(5, 5)), (1, batch(0, 2)))),
    exchange("Fetch", 11, fetching(10, 2), fetched((0, batch(10, 5)))),
]


def records(message: dissector.Message) -> dict[int, bytes]:
    return {
        part["partition_index"]: part["records"] for topic in message.body["responses"] for part in topic["partitions"]
    }


def test_every_address_is_the_servers_and_node_ids_stay() -> None:
    with dissector.serve([exchange("Metadata", 5, {"topics": None}, METADATA)]) as broker:
        brokers = ask(broker.address, "Metadata", 5, {"topics": None}).body["brokers"]
        assert {(each["node_id"], each["host"], each["port"]) for each in brokers} == {
            (7, *broker.address), (8, *broker.address),
        }  # fmt: skip


@pytest.mark.parametrize("version", [0, 1, 4, 9, 12])
def test_metadata_is_written_in_the_clients_version(version: int) -> None:
    with dissector.serve([exchange("Metadata", 5, {"topics": None}, METADATA)]) as broker:
        message = ask(broker.address, "Metadata", version, {"topics": [{"name": "orders"}, {"name": "absent"}]})
        assert message.findings == []
        assert [(each["name"], each["error_code"]) for each in message.body["topics"]] == [("orders", 0), ("absent", 3)]
        assert message.header["correlation_id"] == 77
        assert broker.unanswered == [f"Metadata v{version}: not in the recording: absent"]


def test_records_come_from_the_offset_on_that_a_client_asks_for() -> None:
    with dissector.serve(FETCHES) as broker:
        assert records(ask(broker.address, "Fetch", 11, fetching(6, 0))) == {0: batch(5, 5), 1: batch(0, 2)}
        assert records(ask(broker.address, "Fetch", 11, fetching(14))) == {0: batch(10, 5)}
        assert records(ask(broker.address, "Fetch", 11, fetching(15))) == {0: b""}, "nothing is behind the last one"
        assert records(ask(broker.address, "Fetch", 12, fetching(4))) == {0: batch(0, 5) + batch(5, 5)}


def test_a_version_that_can_not_have_these_records_is_an_error() -> None:
    with dissector.serve(FETCHES) as broker, socket.create_connection(broker.address) as client:
        partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 99}]
        asked = {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 1,
                 "topics": [{"topic": "orders", "partitions": partitions}]}  # fmt: skip
        answered = ask_on(client, "Fetch", 4, asked)
        assert records(answered) == {0: batch(0, 5) + batch(5, 5)}


def test_a_session_has_the_offsets_of_the_client() -> None:
    with dissector.serve(FETCHES) as broker, socket.create_connection(broker.address) as client:
        first = ask_on(client, "Fetch", 11, fetching(5, 0, epoch=0))
        session = first.body["session_id"]
        assert session > 0
        assert records(first) == {0: batch(5, 5), 1: batch(0, 2)}
        following = fetching(10, session=session, epoch=1)
        assert records(ask_on(client, "Fetch", 11, following)) == {0: batch(10, 5), 1: batch(0, 2)}
        ahead = ask_on(client, "Fetch", 11, fetching(15, 2, session=session, epoch=2))
        assert records(ahead) == {}, "in a session a partition without news is left out"
        assert ask_on(client, "Fetch", 11, fetching(session=session + 1, epoch=1)).body["error_code"] == 70


def test_an_error_comes_once_in_its_turn() -> None:
    recorded = [
        exchange("Fetch", 11, fetching(0), fetched((0, batch(0, 5)))),
        exchange("Fetch", 11, fetching(5), fetched((0, b""), code=6)),
        exchange("Fetch", 11, fetching(5), fetched((0, batch(5, 5)))),
    ]
    with dissector.serve(recorded) as broker, socket.create_connection(broker.address) as client:
        asked = [ask_on(client, "Fetch", 12, fetching(5)).body for _ in range(2)]
    [[first], [second]] = [each["responses"][0]["partitions"] for each in asked]
    assert [first["error_code"], second["error_code"]] == [6, 0]
    assert second["records"] == batch(5, 5)


def test_a_partition_that_was_never_written_to_is_acknowledged_like_others() -> None:
    asked = {"acks": -1, "timeout_ms": 1, "topic_data": [{"name": "orders", "partition_data": [{"index": 0}]}]}
    answered = {"responses": [{"name": "orders", "partition_responses": [
        {"index": 0, "error_code": 0, "base_offset": 41}]}]}  # fmt: skip
    with dissector.serve([exchange("Produce", 7, asked, answered)]) as broker:
        other = {**asked, "topic_data": [{"name": "orders", "partition_data": [{"index": 3}, {"index": 0}]}]}
        found = ask(broker.address, "Produce", 9, other).body["responses"]
        parts = found[0]["partition_responses"]
        assert [(each["index"], each["error_code"], each["base_offset"]) for each in parts] == [(3, 0, 41), (0, 0, 41)]


def test_a_member_keeps_its_id_and_a_leader_its_assignment() -> None:
    members = [{"member_id": "old", "metadata": b"theirs"}, {"member_id": "other", "metadata": b"o"}]
    joined = {"error_code": 0, "generation_id": 4, "protocol_type": "consumer", "protocol_name": "range",
              "leader": "old", "member_id": "old", "members": members}  # fmt: skip
    asked = {"group_id": "g", "session_timeout_ms": 1, "rebalance_timeout_ms": 1, "member_id": "old",
             "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"theirs"}]}  # fmt: skip
    synced = {"group_id": "g", "generation_id": 4, "member_id": "old", "assignments": []}
    recorded = [exchange("JoinGroup", 7, asked, joined), exchange("SyncGroup", 3, synced, {"assignment": b"recorded"})]
    with dissector.serve(recorded) as broker:
        own = {**asked, "member_id": "mine", "protocols": [{"name": "sticky", "metadata": b"ours"}]}
        body = ask(broker.address, "JoinGroup", 5, own).body
        assert (body["member_id"], body["leader"], body["protocol_name"]) == ("mine", "mine", "sticky")
        members = [(each["member_id"], each["metadata"]) for each in body["members"]]
        assert members == [("mine", b"ours"), ("other", b"o")]
        mine = {**synced, "member_id": "mine", "assignments": [{"member_id": "mine", "assignment": b"own"}]}
        assert ask(broker.address, "SyncGroup", 3, mine).body["assignment"] == b"own"
        assert ask(broker.address, "SyncGroup", 3, {**synced, "member_id": "x"}).body["assignment"] == b"recorded"


def test_a_producer_goes_on_from_its_own_epoch() -> None:
    asked = {"transactional_id": "t", "transaction_timeout_ms": 1, "producer_id": -1, "producer_epoch": -1}
    with dissector.serve([exchange("InitProducerId", 4, asked, {"producer_id": 5, "producer_epoch": 2})]) as broker:
        first = ask(broker.address, "InitProducerId", 3, asked).body
        assert (first["producer_id"], first["producer_epoch"]) == (5, 2)
        again = ask(broker.address, "InitProducerId", 3, {**asked, "producer_id": 9, "producer_epoch": 7}).body
        assert (again["producer_id"], again["producer_epoch"]) == (9, 8)


def test_an_idempotent_producer_is_served_where_the_recorded_one_was_none() -> None:
    """Java's producers are idempotent by default, librdkafka's and others are not."""
    produced = exchange("Produce", 8, {"acks": -1, "topic_data": []}, {"responses": []})
    first = {"transactional_id": None, "transaction_timeout_ms": 1, "producer_id": -1, "producer_epoch": -1}
    with dissector.serve([produced]) as broker:
        ids = [ask(broker.address, "InitProducerId", 4, first).body for _ in range(2)]
        known = {**first, "producer_id": ids[0]["producer_id"], "producer_epoch": 3}
        again = ask(broker.address, "InitProducerId", 4, known)
        spent = {**first, "producer_id": ids[0]["producer_id"], "producer_epoch": 0x7FFE}
        other = ask(broker.address, "InitProducerId", 4, spent)
        refused = ask(broker.address, "InitProducerId", 4, {**first, "transactional_id": "teller"})
    assert [each["error_code"] for each in ids] == [0, 0]
    assert ids[0]["producer_id"] != ids[1]["producer_id"]
    assert min(each["producer_id"] for each in ids) >= 0
    assert {each["producer_epoch"] for each in ids} == {0}
    assert (again.body["producer_id"], again.body["producer_epoch"]) == (ids[0]["producer_id"], 4)
    assert other.body["producer_id"] not in {each["producer_id"] for each in ids}
    assert other.body["producer_epoch"] == 0
    assert refused.body["error_code"] == 35
    with dissector.serve([exchange("Metadata", 5, {"topics": None}, METADATA)]) as broker:
        assert ask(broker.address, "InitProducerId", 4, first).body["error_code"] == 35, "nobody produced"


@pytest.mark.long
def test_recorded_order_then_the_last_success_and_again_from_the_start() -> None:
    beat = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    codes = [0, 27, 0, 27]
    recorded = [exchange("Heartbeat", 4, {**beat, "generation_id": n}, {"error_code": c}) for n, c in enumerate(codes)]
    with dissector.serve(recorded) as broker:
        for _ in range(2):
            with socket.create_connection(broker.address) as client:
                other = {**beat, "generation_id": 9}
                found = [ask_on(client, "Heartbeat", 4, other).body["error_code"] for _ in range(6)]
            assert found == [0, 27, 0, 27, 0, 0]
            time.sleep(QUIET_SECONDS + 0.2)


def test_the_group_of_a_coordinator_may_be_another_one_in_every_version() -> None:
    answered = {"coordinators": [{"key": "g", "node_id": 1, "host": "h", "port": 1, "error_code": 0}]}
    recorded = exchange("FindCoordinator", 4, {"key_type": 0, "coordinator_keys": ["g"]}, answered)
    with dissector.serve([recorded]) as broker:
        old = ask(broker.address, "FindCoordinator", 0, {"key": "mine"}).body
        assert (old["error_code"], old["node_id"], old["host"], old["port"]) == (0, 1, *broker.address)
        new = ask(broker.address, "FindCoordinator", 6, {"coordinator_keys": ["mine"]}).body
        [[key, host]] = [[each["key"], each["host"]] for each in new["coordinators"]]
        assert (key, host) == ("mine", broker.address[0])


def test_offsets_of_several_groups_and_of_one_stand_for_each_other() -> None:
    parts = [{"partition_index": 0, "committed_offset": 33, "committed_leader_epoch": -1, "error_code": 0}]
    answered = {"groups": [{"group_id": "g", "topics": [{"name": "orders", "partitions": parts}], "error_code": 0}]}
    asked = {"groups": [{"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0]}]}]}
    with dissector.serve([exchange("OffsetFetch", 8, asked, answered)]) as broker:
        old = {"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0, 1]}]}
        found = ask(broker.address, "OffsetFetch", 3, old).body["topics"][0]["partitions"]
        assert [(each["partition_index"], each["committed_offset"]) for each in found] == [(0, 33), (1, -1)]


def test_what_was_not_recorded_is_refused_and_said() -> None:
    beat = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    with dissector.serve([exchange("Metadata", 5, {"topics": None}, METADATA)]) as broker:
        assert ask(broker.address, "Heartbeat", 4, beat).body["error_code"] == 35
        offer = ask(broker.address, "ApiVersions", 3, {}).body["api_keys"]
        assert next((each["api_key"], each["min_version"], each["max_version"]) for each in offer) == (3, 5, 5)
        assert broker.unanswered == ["Heartbeat v4: the recording has no such request: UNSUPPORTED_VERSION"]


def test_an_old_broker_answers_new_clients_as_it_would() -> None:
    """KIP-511: what it has, in version 0."""
    rows = [{"api_key": 18, "min_version": 0, "max_version": 1}, {"api_key": 3, "min_version": 0, "max_version": 5}]
    recorded = exchange("ApiVersions", 1, {}, {"error_code": 0, "api_keys": rows})
    with dissector.serve([recorded, exchange("Metadata", 5, {"topics": None}, METADATA)]) as broker:
        words = {"client_software_name": "x", "client_software_version": "1"}
        answered = ask(broker.address, "ApiVersions", 4, words)
        assert (answered.body["error_code"], answered.body["api_keys"]) == (35, rows[:1])
        assert ask(broker.address, "ApiVersions", 0, {}).body["api_keys"] == rows
        # It has no Metadata v9, whose response has no place for an error of the whole.
        newer = ask(broker.address, "Metadata", 9, {"topics": [{"name": "orders"}]}).body["topics"]
        assert [each["error_code"] for each in newer] == [35]
        assert ask(broker.address, "Metadata", 4, {"topics": None}).body["topics"][0]["name"] == "orders"


@pytest.mark.long
def test_a_client_that_does_not_read_is_answered_no_further() -> None:
    records = b"".join(batch(n, 1) for n in range(20_000))
    recorded = exchange("Fetch", 11, fetching(0), fetched((0, records)))
    asked, _ = exchange("Fetch", 11, fetching(0), None)
    with dissector.serve([recorded]) as broker, socket.create_connection(broker.address) as client:
        client.settimeout(0.3)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 1 << 27:
                sent += client.send(asked * 500)
        assert sent < 1 << 26, "from some point on nothing is taken"
        assert len(broker.requests) < 50
        assert ask(broker.address, "ApiVersions", 0, {}).body["api_keys"], "others are answered"
