"""Each action through a proxy that runs as users run it: what client and broker get, and what is recorded."""

import time
from pathlib import Path

import pytest

from dissector.capture.injection_notes import BEHIND_DROP
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import request_layout
from dissector.protocol.records.batch import Batch
from tests.proxy_server.faults.wires import RECORDS, REQUESTS, TOPIC_ID, faulty

OF_ORDERS = "api == Produce && topic == orders"
BY = "by fault 1: {}; kdissect proxy did it, not the broker"


def produce_code(body: Values) -> int:
    [topic] = body["responses"]
    [partition] = topic["partition_responses"]
    code: int = partition["error_code"]
    return code


def others(records: bytes = RECORDS, acks: int = -1) -> Values:
    """A Produce request to another topic."""
    return {"acks": acks, "topic_data": [{"name": "others", "partition_data": [{"index": 4, "records": records}]}]}


def test_an_error_that_the_broker_knows_nothing_of(tmp_path: Path) -> None:
    with faulty(tmp_path, f"{OF_ORDERS}: error NOT_LEADER_OR_FOLLOWER, first 2") as client:
        assert [produce_code(client.ask("Produce")) for _ in range(2)] == [6, 6]
        assert produce_code(client.ask("Produce", others())) == 0
        assert produce_code(client.ask("Produce")) == 0
        assert client.ids == [3, 4]
        found = client.findings()
        assert {number: codes.get("injected") for number, codes in found.items()} == {
            1: BY.format("error NOT_LEADER_OR_FOLLOWER"), 2: BY.format("error NOT_LEADER_OR_FOLLOWER"),
        }  # fmt: skip
        [count] = client.counts()
        assert count[2:6] == (2, 2, 2, 0), "it is over, and not asked any more"


def test_an_error_in_place_of_a_success(tmp_path: Path) -> None:
    with faulty(tmp_path, f"{OF_ORDERS}: error NOT_ENOUGH_REPLICAS_AFTER_APPEND acted, every 2") as client:
        assert [produce_code(client.ask("Produce")) for _ in range(4)] == [0, 20, 0, 20]
        assert client.ids == [1, 2, 3, 4]
        assert [number for number, codes in client.findings().items() if "injected" in codes] == [2, 4]


def test_a_rule_is_asked_with_the_response_if_it_asks_for_it(tmp_path: Path) -> None:
    with faulty(tmp_path, "response.base_offset == 70: error UNKNOWN_SERVER_ERROR acted") as client:
        assert produce_code(client.ask("Produce")) == -1
        assert client.ask("Heartbeat")["error_code"] == 0


def test_a_delay_is_the_responses(tmp_path: Path) -> None:
    with faulty(tmp_path, "api == Heartbeat: delay 300ms, first 1") as client:
        assert client.took("Heartbeat") >= 0.3
        assert client.took("Heartbeat") < 0.3
        assert client.findings() == {1: {"injected": BY.format("delay 300ms")}}


@pytest.mark.parametrize(("action", "ids"), [("close", [1]), ("close after", [1, 2])])
def test_a_connection_is_closed(tmp_path: Path, action: str, ids: list[int]) -> None:
    with faulty(tmp_path, f"{OF_ORDERS}: {action}") as client:
        client.ask("Heartbeat")
        client.send("Produce")
        client.send("Heartbeat")
        assert client.is_closed()
        assert client.ids[:2] == ids
        found = client.findings()
        assert found[2] == {"injected": BY.format(action)}
        assert found.get(3, {}).keys() <= {"unanswered"}, "no broker is blamed for what waited behind"


@pytest.mark.long
@pytest.mark.parametrize(("action", "ids"), [("drop", [1, 11]), ("drop after", [1, 2, 3, 4, 11])])
def test_a_request_is_never_answered_nor_what_is_behind_it(tmp_path: Path, action: str, ids: list[int]) -> None:
    """Brokers answer in order: a client that got the answer to a later request would take it for a broken broker."""
    with faulty(tmp_path, f"{OF_ORDERS}: {action}") as client:
        client.ask("Heartbeat")
        client.send("Produce")
        client.send("Heartbeat")
        client.send("Produce")
        assert client.another(10).ask("Heartbeat")["error_code"] == 0, "other connections go on"
        while client.ids != ids and len(client.came) < len(ids):
            time.sleep(0.01)
        client.connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.answered()
        assert sorted(client.ids) == ids
        behind = {"injected": BY.format(BEHIND_DROP)}
        assert client.findings() == {2: {"injected": BY.format(action)}, 3: behind, 4: behind}
        assert client.counts()[0].fired == 1


def test_what_has_no_answer_may_be_dropped_by_itself(tmp_path: Path) -> None:
    with faulty(tmp_path, f"{OF_ORDERS}: drop") as client:
        client.send("Produce", REQUESTS["Produce"][1] | {"acks": 0})
        assert client.ask("Heartbeat")["error_code"] == 0
        assert client.ids == [2]
        assert {number for number, codes in client.findings().items() if "injected" in codes} == {1}


@pytest.mark.long
def test_a_throttled_client_waits(tmp_path: Path) -> None:
    with faulty(tmp_path, f"{OF_ORDERS}: throttle 400ms") as client:
        begun = time.monotonic()
        assert client.ask("Produce")["throttle_time_ms"] == 400
        assert time.monotonic() - begun < 0.4
        assert client.ask("Heartbeat")["throttle_time_ms"] == 0
        assert time.monotonic() - begun >= 0.4
        found = client.findings()
        assert found[1]["injected"] == BY.format("throttle 400ms")
        assert found[2] == {"injected": BY.format("held back, throttled")}
        assert "throttled" not in found[1]


def test_an_older_broker_is_offered(tmp_path: Path) -> None:
    with faulty(tmp_path, "offer Fetch<=3 Produce<=-1") as client:
        offered = {each["api_key"]: each["max_version"] for each in client.ask("ApiVersions")["api_keys"]}
        assert offered == {1: 3, 3: 12, 12: 12, 18: 12}
        assert client.ask("Heartbeat")["error_code"] == 0
        assert client.counts()[0][2:6] == (1, 1, 1, 0)


def test_batches_are_corrupted_on_their_way_to_the_broker_and_from_it(tmp_path: Path) -> None:
    with faulty(tmp_path, "corrupt") as client:
        client.ask("Produce")
        [topic] = client.ask("Fetch")["responses"]
        [partition] = topic["partitions"]
        assert not Batch.read(partition["records"]).crc_valid
        frame = client.came[0]
        request = read(len(frame).to_bytes(4, "big") + frame, request_layout(0, 8)).body
        assert not Batch.read(request["topic_data"][0]["partition_data"][0]["records"]).crc_valid
        client.ask("Heartbeat")
        assert client.counts()[0][2:6] == (2, 2, 2, 0)


@pytest.mark.parametrize("rule", ["api == Produce: corrupt", "api == Heartbeat: drop"])
def test_a_producer_is_not_blamed_for_what_was_corrupted(tmp_path: Path, rule: str) -> None:
    partition = {"index": 0, "error_code": 2}
    answers: dict[str, Values] = {"Produce": {"responses": [{"name": "orders", "partition_responses": [partition]}]}}
    with faulty(tmp_path, rule, answers=answers) as client:
        assert produce_code(client.ask("Produce")) == 2
        codes = client.findings()[1].keys()
        assert codes == ({"injected", "error-response"} if "corrupt" in rule else {"refused-batch", "error-response"})


@pytest.mark.long
def test_what_is_slow_takes_as_long_as_its_bytes_do(tmp_path: Path) -> None:
    with faulty(tmp_path, "api == Heartbeat: slow 100B/s") as client:
        assert 0.3 < client.took("Heartbeat") < 3  # requests have about 40 bytes, responses 14
        assert client.took("Produce") < 0.3
        assert client.counts()[0][2:6] == (1, 1, 1, 0)


def test_what_has_no_response_gets_no_error_and_may_be_late(tmp_path: Path) -> None:
    rules = ("error NOT_LEADER_OR_FOLLOWER", "drop after", "delay 300ms")
    with faulty(tmp_path, *(f"api == Produce: {each}" for each in rules)) as client:
        client.send("Produce", others(acks=0))
        assert client.took("Heartbeat") >= 0.3
        assert client.ids == [1, 2]
        assert [each.fired for each in client.counts()] == [0, 0, 1]


def test_the_first_rule_that_fires_decides(tmp_path: Path) -> None:
    rules = (f"{OF_ORDERS}: error NOT_LEADER_OR_FOLLOWER, first 1", f"{OF_ORDERS}: error CORRUPT_MESSAGE, first 1")
    with faulty(tmp_path, *rules, "api == Produce: error UNKNOWN_TOPIC_OR_PARTITION acted") as client:
        assert [produce_code(client.ask("Produce")) for _ in range(4)] == [6, 2, 3, 3]


def test_a_topic_is_known_by_its_id(tmp_path: Path) -> None:
    produce = {"acks": 1, "topic_data": [{"topic_id": TOPIC_ID, "partition_data": [{"index": 2, "records": RECORDS}]}]}
    with faulty(tmp_path, f"{OF_ORDERS}: error NOT_LEADER_OR_FOLLOWER") as client:
        assert client.ask("Produce", produce, version=13)["responses"] == [], "nobody named it yet"
        client.ask("Metadata")
        body = client.ask("Produce", produce, version=13)
        assert (produce_code(body), body["responses"][0]["topic_id"]) == (6, TOPIC_ID)


def test_a_fetch_session_has_partitions_that_its_requests_no_longer_name(tmp_path: Path) -> None:
    def fetch(epoch: int, *numbers: int, forgotten: tuple[int, ...] = ()) -> Values:
        topics = [{"topic": "orders", "partitions": [{"partition": each} for each in numbers]}] if numbers else []
        gone = [{"topic": "orders", "partitions": [*forgotten]}] if forgotten else []
        return {"session_id": 7, "session_epoch": epoch, "topics": topics, "forgotten_topics_data": gone}

    def failed(body: Values) -> list[int]:
        partitions = [each for topic in body["responses"] for each in topic["partitions"]]
        return [each["partition_index"] for each in partitions if each["error_code"]]

    with faulty(tmp_path, "topic == orders && api == Fetch: error NOT_LEADER_OR_FOLLOWER, after 1") as client:
        assert failed(client.ask("Fetch", fetch(0, 0, 1, 2))) == []
        assert failed(client.ask("Fetch", fetch(1))) == [0, 1, 2]
        assert failed(client.ask("Fetch", fetch(2, 5, forgotten=(1, 2)))) == [0, 5]
        assert failed(client.ask("Fetch", fetch(3, forgotten=(0, 5)))) == []


@pytest.mark.long
def test_pipelined_answers_come_in_order_and_the_broker_is_not_blamed(tmp_path: Path) -> None:
    with faulty(tmp_path, f"{OF_ORDERS}: error REQUEST_TIMED_OUT", "api == Heartbeat: delay 1200ms, first 1") as client:
        for name in ("Heartbeat", "Produce", "Heartbeat"):
            client.send(name)
        begun = time.monotonic()
        client._asked = 12, 3
        assert client.answer()["error_code"] == 0
        client._asked = 0, 8
        assert produce_code(client.answer()) == 7
        client._asked = 12, 3
        assert client.answer()["error_code"] == 0
        assert time.monotonic() - begun >= 1.1
        found = client.findings()
        codes = {number: set(each) for number, each in found.items()}
        assert codes == {1: {"injected"}, 2: {"injected", "error-response"}}


def test_errors_that_were_injected_are_no_storm_and_those_of_the_broker_are(tmp_path: Path) -> None:
    answers = {"Heartbeat": {"error_code": 15}}
    with faulty(tmp_path, f"{OF_ORDERS}: error NETWORK_EXCEPTION", answers=answers) as client:
        for _ in range(12):
            client.ask("Produce")
        for _ in range(12):
            client.ask("Heartbeat")
        found = client.findings()
        injected = {code for number, codes in found.items() if number <= 12 for code in codes}
        assert injected == {"injected", "error-response"}
        assert [number for number, codes in found.items() if "error-storm" in codes] == [22]


def test_what_no_rule_matches_passes_unchanged(tmp_path: Path) -> None:
    with faulty(tmp_path, "topic == missing: drop", "client_id == other: close", "corr == 99: corrupt") as client:
        for name in ("Produce", "Fetch", "Metadata", "Heartbeat", "ApiVersions"):
            client.ask(name)
        [(asked, answered)] = client.between.streams()
        assert b"".join(len(each).to_bytes(4, "big") + each for each in client.came) == asked
        assert len(answered) > 200
        assert [each.fired for each in client.between.recording.faults] == [0, 0, 0]
        assert client.findings() == {}
