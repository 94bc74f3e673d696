"""Messages wait in a real proxy until someone decides; what came of it is in the recording."""

import contextlib
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dissector
from dissector.capture.held_messages import HeldMessage
from dissector.capture.live.commands import RefusedError
from dissector.protocol.message import Values
from dissector.proxy_server.controls import ProxyControls
from dissector.proxy_server.hooks import Connection, FrameHead
from dissector.proxy_server.intercept import editable_text, edited_frame
from dissector.proxy_server.intercept.holding import MOST_BYTES, MOST_HELD, HeldFrames
from tests.proxy_server.faults.wires import Client, faulty


class Holding:
    """A client and a broker, and a person between them."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.recording = client.between.recording
        self.controls = ProxyControls(self.recording)

    def waiting(self, count: int = 1) -> list[HeldMessage]:
        """What waits, once so many messages do."""
        return [*until(lambda: self.recording.interception.held, lambda held: len(held) == count)]

    def answer_to(self, name: str, act: Callable[[HeldMessage], object]) -> Values:
        """Ask, act on the one message that waits, and return the answer."""
        self.client.send(name)
        act(self.waiting()[0])
        return self.client.answer()

    def edit(self, held: HeldMessage, change: Callable[[Values], object]) -> None:
        frame = self.controls.frame(held.number)
        line = json.loads(editable_text(held, frame))
        change(line)
        self.controls.edit(held.number, *edited_frame(held, frame, json.dumps(line)))


def until(look: Callable[[], object], is_so: Callable[[object], bool]) -> Any:
    deadline = time.monotonic() + 10
    while not is_so(found := look()):
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
    return found


@contextlib.contextmanager
def holding(folder: Path, what: str | None, *rules: str, hold_seconds: float = 30) -> Iterator[Holding]:
    with faulty(folder, *rules, is_controlled=True, hold_seconds=hold_seconds) as client:
        found = Holding(client)
        if what is not None:
            found.controls.intercept(what)
        yield found


def notes(client: Client) -> dict[int, str]:
    """What the recording says of exchanges that were injected, by correlation id."""
    return {number: codes["injected"] for number, codes in client.findings().items() if "injected" in codes}


@pytest.mark.long
def test_a_request_waits_and_is_sent_on(tmp_path: Path) -> None:
    with holding(tmp_path, "requests api == Heartbeat") as person:
        client = person.client
        number = client.send("Heartbeat")
        [held] = person.waiting()
        assert (held.from_client, held.api_key, held.correlation_id, held.client_id) == (True, 12, number, "me")
        assert client.ids == []
        person.controls.send_on(held.number)
        assert client.answer()["error_code"] == 0
        assert client.ids == [number]
        client.ask("Produce")
        person.waiting(0)
        with pytest.raises(RefusedError, match="it is no longer held"):
            person.controls.send_on(held.number)
        assert "by intercept: held for " in notes(client)[number]
        assert set(client.findings()[number]) == {"injected"}


def test_a_request_that_waits_is_recorded_meanwhile(tmp_path: Path) -> None:
    with holding(tmp_path, "requests") as person:
        number = person.client.send("Heartbeat")
        person.waiting()
        with dissector.open(str(person.client.between.path)) as capture:
            [exchange] = capture.exchanges()
            assert (exchange.correlation_id, exchange.response) == (number, None)


def test_both_sides_wait_one_after_the_other(tmp_path: Path) -> None:
    with holding(tmp_path, "api == Heartbeat") as person:
        person.client.send("Heartbeat")
        [request] = person.waiting()
        person.controls.send_on(request.number)
        [response] = until(lambda: person.recording.interception.held, lambda held: held and not held[0].from_client)
        assert response.number == request.number + 1
        person.controls.send_on(response.number)
        person.client.answer()


def test_what_is_behind_waits_and_other_connections_do_not(tmp_path: Path) -> None:
    with holding(tmp_path, "api == Heartbeat && correlation_id == 1") as person:
        client = person.client
        client.send("Heartbeat")
        person.waiting()
        for _ in range(3):
            client.send("Heartbeat")
        client.another(first=10).ask("Heartbeat")
        assert client.ids == [11]
        person.controls.send_all()
        [response] = until(lambda: person.recording.interception.held, lambda held: held and not held[0].from_client)
        until(lambda: client.ids, lambda ids: ids == [11, 1, 2, 3, 4])
        person.controls.send_on(response.number)
        assert [client.answered() for _ in range(4)] == [1, 2, 3, 4]


def test_a_request_is_edited(tmp_path: Path) -> None:
    def change(line: Values) -> None:
        line["request"]["body"]["group_id"] = "writers"
        line["request"]["header"]["client_id"] = "you"

    with holding(tmp_path, "requests api == Heartbeat") as person:
        person.answer_to("Heartbeat", lambda held: person.edit(held, change))
        assert b"writers" in person.client.came[0]
        assert b"readers" not in person.client.came[0]
        words = notes(person.client)[1]
        assert "then edited: request.header.client_id, request.body.group_id;" in words
        with dissector.open(str(person.client.between.path)) as capture:
            assert next(iter(capture)).request.body["group_id"] == "readers", "what the client sent"


def test_a_response_is_edited(tmp_path: Path) -> None:
    with holding(tmp_path, "responses api == Heartbeat") as person:
        answer = person.answer_to(
            "Heartbeat", lambda held: person.edit(held, lambda line: line["response"]["body"].update(error_code=27))
        )
        assert answer["error_code"] == 27
        findings = person.client.findings()
        assert "edited: response.body.error_code" in findings[1]["injected"]
        with dissector.open(str(person.client.between.path)) as capture:
            assert next(iter(capture)).response.body["error_code"] == 27, "what the client got"


def test_records_are_added_to_a_batch(tmp_path: Path) -> None:
    def change(line: Values) -> None:
        [batch] = line["request"]["body"]["topic_data"][0]["partition_data"][0]["records"]["batches"]
        batch["records"].append({"value": b"three".hex()})

    with holding(tmp_path, "requests api == Produce") as person:
        person.answer_to("Produce", lambda held: person.edit(held, change))
        frame = person.client.came[0]
        message = dissector.decode_request(len(frame).to_bytes(4, "big") + frame)
    [batch] = message.decoded_body["topic_data"][0]["partition_data"][0]["records"]["batches"]
    assert [each["value"] for each in batch["records"]] == [b"one", b"two", b"three"]
    assert (batch["crc_valid"], batch["last_offset_delta"]) == (True, 2)


def test_a_request_is_dropped_and_the_connection_stays(tmp_path: Path) -> None:
    with holding(tmp_path, "requests api == Heartbeat") as person:
        person.client.send("Heartbeat")
        person.controls.drop(person.waiting()[0].number)
        person.client.send("Produce")
        person.client.another(10).ask("Produce")
        assert person.client.ids == [11]
        person.client.connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            person.client.answered()
        assert "then dropped" in notes(person.client)[1]


def test_a_response_is_dropped(tmp_path: Path) -> None:
    with holding(tmp_path, "responses api == Heartbeat") as person:
        person.client.send("Heartbeat")
        person.controls.drop(person.waiting()[0].number)
        person.client.another(10).ask("Produce")
        assert person.client.ids == [1, 11]
        assert set(person.client.findings()[1]) == {"injected"}, "no response is missed"


def test_a_connection_is_closed_in_place_of_a_message(tmp_path: Path) -> None:
    with holding(tmp_path, "responses api == Heartbeat") as person:
        person.client.send("Heartbeat")
        person.controls.close(person.waiting()[0].number)
        assert person.client.is_closed()
        assert "then its connection was closed" in notes(person.client)[1]


def test_a_forgotten_message_goes_on_and_that_is_said(tmp_path: Path) -> None:
    with holding(tmp_path, "requests api == Heartbeat", hold_seconds=0.3) as person:
        begun = time.monotonic()
        person.client.ask("Heartbeat")
        assert 0.2 < time.monotonic() - begun < 5
        lines: list[str] = []

        def said() -> list[str]:
            lines.extend(each for each in person.client.between.said() if "went on" in each)
            return lines

        [words] = until(said, bool)
        assert words.startswith("a Heartbeat request of 127.0.0.1:")
        assert words.endswith("(correlation id 1) went on unchanged: it was held for the limit, 0.3 s")
        assert "then sent on at the time limit" in notes(person.client)[1]


@pytest.mark.long
def test_a_message_gets_more_time(tmp_path: Path) -> None:
    with holding(tmp_path, "requests api == Heartbeat", hold_seconds=0.4) as person:
        person.client.send("Heartbeat")
        [held] = person.waiting()
        person.controls.limit(20)
        person.controls.wait(held.number)
        [later] = until(
            lambda: person.recording.interception.held, lambda held: held[0].until_ns > held[0].since_ns + 10**10
        )
        time.sleep(0.6)
        assert person.client.ids == []
        person.controls.send_on(later.number)
        person.client.answer()


def test_everything_goes_on_when_nobody_is_there_any_more(tmp_path: Path) -> None:
    with holding(tmp_path, "requests") as person:
        person.client.send("Heartbeat")
        person.waiting()
        person.client.between.stop()
        assert until(lambda: person.client.ids, bool) == [1]
        assert "nobody was there any more" in notes(person.client)[1]
        with pytest.raises(RefusedError, match="the proxy has ended"):
            person.controls.send_all()


def test_nothing_is_held_any_more(tmp_path: Path) -> None:
    with holding(tmp_path, "responses api == Heartbeat") as person:
        person.client.ask("Produce")
        person.controls.intercept(None)
        person.client.ask("Heartbeat")
        until(lambda: person.recording.interception.text, lambda text: text is None)


def test_a_connection_that_ends_leaves_nothing_waiting(tmp_path: Path) -> None:
    with holding(tmp_path, "responses api == Heartbeat") as person:
        person.client.send("Heartbeat")
        person.waiting()
        person.client.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        person.client.connection.close()
        person.waiting(0)


def test_what_a_fault_decides_is_not_held(tmp_path: Path) -> None:
    with holding(tmp_path, "", "api == Heartbeat: error NOT_COORDINATOR") as person:
        assert person.client.ask("Heartbeat")["error_code"] == 16
        person.client.send("Produce")
        person.waiting()


def test_too_many_go_on_and_are_counted() -> None:
    changed: list[int] = []
    frames = HeldFrames(1, lambda: changed.append(1), print)
    connection, head = Connection(1, "c:1", "b:2", None), FrameHead(True, 12, 3, 1, "me", 40, True)
    assert None not in [frames.hold(connection, head, bytes(40)) for _ in range(MOST_HELD)]
    assert frames.hold(connection, head, bytes(40)) is None
    assert (len(frames.state.held), frames.state.missed, len(changed)) == (MOST_HELD, 1, 1)


def test_too_many_bytes_go_on_and_are_counted() -> None:
    frames = HeldFrames(1, list, print)
    connection, head = Connection(1, "c:1", "b:2", None), FrameHead(True, 12, 3, 1, "me", 40, True)
    large = bytes(MOST_BYTES - 40)
    assert frames.hold(connection, head, large) is not None
    assert frames.hold(connection, head, bytes(41)) is None
    assert frames.hold(connection, head, bytes(40)) is not None
    frames.find(1).abandon()
    assert frames.hold(connection, head, large) is not None


@pytest.mark.long
def test_rules_are_added_armed_and_disarmed(tmp_path: Path) -> None:
    with holding(tmp_path, None, "api == Heartbeat: error NOT_COORDINATOR, first 1") as person:
        client, controls = person.client, person.controls
        codes = [client.ask("Heartbeat")["error_code"] for _ in range(2)]
        controls.arm(1, armed=False)
        codes.append(client.ask("Heartbeat")["error_code"])
        controls.arm(1, armed=True)
        codes.append(client.ask("Heartbeat")["error_code"])
        assert codes == [16, 0, 0, 16]
        assert controls.add_fault("api == Heartbeat: error UNKNOWN_MEMBER_ID", "gone") == 2
        assert client.ask("Heartbeat")["error_code"] == 25
        first, second = controls.fault_counts()
        assert (first.fired, second.name, second.fired, second.is_armed) == (2, "gone", 1, True)
        until(lambda: [each.rule for each in person.recording.fired], lambda rules: rules == [1, 1, 2])
        fired = person.recording.fired[-1]
        assert (fired.correlation_id, fired.client) == (5, "{}:{}".format(*client.connection.getsockname()))
        with pytest.raises(RefusedError, match="two rules have the name gone"):
            controls.add_fault("drop", "gone")
        with pytest.raises(RefusedError, match="no rule has the name 3"):
            controls.arm(3, armed=True)


def test_a_rule_that_is_added_knows_what_was_said_before(tmp_path: Path) -> None:
    with holding(tmp_path, None) as person:
        client, topic = person.client, {"topic": "orders", "partitions": [{"partition": 0}]}
        client.ask("Fetch", {"session_epoch": 0, "topics": [topic]})
        person.controls.add_fault("api == Fetch && topic == orders: error UNKNOWN_SERVER_ERROR")
        following = client.ask("Fetch", {"session_id": 1, "session_epoch": 1, "topics": []})
        assert following["responses"][0]["partitions"][0]["error_code"] == -1


def test_commands_of_several_threads_get_their_own_answers(tmp_path: Path) -> None:
    with holding(tmp_path, None) as person:
        with ThreadPoolExecutor(8) as pool:
            found = [*pool.map(person.controls.add_fault, ["api == Fetch: drop"] * 8)]
        assert sorted(found) == [1, 2, 3, 4, 5, 6, 7, 8]
