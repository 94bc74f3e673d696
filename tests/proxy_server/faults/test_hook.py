"""Which frames rules ask for, what is kept of a connection, and how rules are counted."""

import pytest

from dissector.core import limits
from dissector.protocol.frame import frame_bytes, request_header
from dissector.protocol.message import Values
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.proxy_server.faults import FaultHook, read_rule
from dissector.proxy_server.faults.hook import MOST_KEPT, MOST_WAITING
from dissector.proxy_server.hooks import NEED_FRAME, PASS, Action, Answer, Close, Connection, Drop, FrameHead, Pass
from tests.proxy_server.faults.wires import ANSWERS, RECORDS, REQUESTS

KEYS = {"Produce": 0, "Fetch": 1, "Heartbeat": 12}
SECOND = 10**9


class Wire:
    """A connection whose frames rules decide about."""

    def __init__(self, *rules: str) -> None:
        self.now_ns = 0
        self.hook = FaultHook([read_rule(each) for each in rules], lambda: self.now_ns)
        self._requests, self._responses = self.hook.deciders(Connection(1, "127.0.0.1:50000", "broker:9092", 1))

    def asked(self, name: str, number: int = 1, size: int = 60) -> Action:
        """What is said of a request of which the head is there."""
        return self._requests.decide(self.head(name, number, size), None)

    def answered(self, name: str, number: int = 1, size: int = 60) -> Action:
        """What is said of its response, in the same way."""
        return self._responses.decide(self.head(name, number, size)._replace(from_client=False), None)

    def whole(self, name: str, number: int = 1, body: Values | None = None) -> Action:
        """What is said of a request that is there."""
        version, usual = REQUESTS[name]
        layout = request_layout(KEYS[name], version)
        header = request_header(layout, KEYS[name], version, {"correlation_id": number, "client_id": "me"})
        frame = frame_bytes(layout, header, usual if body is None else body)
        return self._requests.decide(self.head(name, number, len(frame)), frame)

    def whole_answer(self, name: str, number: int = 1) -> Action:
        """What is said of its response."""
        frame = frame_bytes(
            response_layout(KEYS[name], REQUESTS[name][0], b""), {"correlation_id": number}, ANSWERS[name]
        )
        return self._responses.decide(self.head(name, number, len(frame))._replace(from_client=False), frame)

    @staticmethod
    def head(name: str, number: int, size: int) -> FrameHead:
        return FrameHead(True, KEYS[name], REQUESTS[name][0], number, "me", size, True)

    @property
    def counts(self) -> list[tuple[int, ...]]:
        """Asked, matched, fired, unable."""
        return [each[2:6] for each in self.hook.counts]


@pytest.mark.parametrize(
    ("rule", "of_produce", "of_heartbeat"),
    [
        ("api == Produce: drop", Drop, PASS),
        ("api == Produce && client_id == me: close", Close, PASS),
        ("api == Produce && client_id == other: drop", PASS, PASS),
        ("topic == orders: drop", NEED_FRAME, PASS),
        ("api == Produce && group == x: drop", PASS, PASS),
        ("client == 127.0.0.1:50000 && version > 7: drop", Drop, PASS),
        ("corr == 1: drop", Drop, Drop),
        ("api == Produce: error NOT_LEADER_OR_FOLLOWER", NEED_FRAME, PASS),
        ("api == Produce: delay 1s", PASS, PASS),
        ("topic == orders: delay 1s", NEED_FRAME, PASS),
        ("api == Produce && error: delay 1s", NEED_FRAME, PASS),
    ],
)
def test_a_frame_is_asked_for_only_where_the_head_does_not_decide(
    rule: str, of_produce: object, of_heartbeat: object
) -> None:
    wire = Wire(rule)
    for name, expected in (("Produce", of_produce), ("Heartbeat", of_heartbeat)):
        found = wire.asked(name)
        assert isinstance(found, expected) if isinstance(expected, type) else found == expected


def test_a_response_is_asked_for_only_if_the_rule_needs_it() -> None:
    for rule, expected in (("delay 1s", Pass), ("drop after", Drop), ("close after", Close)):
        wire = Wire(f"api == Produce: {rule}")
        assert wire.asked("Produce") == PASS
        assert isinstance(wire.answered("Produce"), expected)
        assert wire.answered("Heartbeat", 2) == PASS
    for rule in ("throttle 1s", "error CORRUPT_MESSAGE acted"):
        wire = Wire(f"api == Produce: {rule}")
        assert (wire.asked("Produce"), wire.answered("Produce")) == (PASS, NEED_FRAME)


def test_a_rule_that_is_over_asks_for_nothing() -> None:
    wire = Wire("topic == orders: error NOT_LEADER_OR_FOLLOWER, first 1", "topic == orders: drop, for 5s")
    assert isinstance(wire.whole("Produce"), Answer)
    assert isinstance(wire.whole("Produce", 2), Drop)
    assert wire.asked("Produce", 3) == NEED_FRAME
    wire.now_ns += 5 * SECOND
    assert wire.asked("Produce", 4) == PASS


def test_what_is_too_large_to_be_held_is_counted() -> None:
    wire = Wire("topic == orders: drop", "api == Produce: close")
    assert isinstance(wire.asked("Produce", size=limits.DEFAULT.frame_size + 1), Close)
    assert wire.counts == [(0, 0, 0, 1), (1, 1, 1, 0)]
    assert wire.asked("Produce", 2, size=limits.DEFAULT.frame_size) == NEED_FRAME
    wire = Wire("api == Produce: throttle 1s")
    wire.asked("Produce")
    assert wire.answered("Produce", size=limits.DEFAULT.frame_size + 1) == PASS
    assert wire.counts == [(1, 0, 0, 1)]


@pytest.mark.long
def test_what_is_kept_is_bounded() -> None:
    wire = Wire("api == Heartbeat: delay 1s", "api == Produce && error: delay 1s")
    between = wire._requests._between
    for number in range(2 * MOST_WAITING):
        wire.asked("Heartbeat", number)
    assert len(between.waiting) == MOST_WAITING
    large = {
        "acks": 1,
        "topic_data": [{"name": "x", "partition_data": [{"index": 0, "records": bytes(MOST_KEPT // 3)}]}],
    }
    for number in range(5):
        assert wire.whole("Produce", 10**6 + number, large) == PASS
    assert 0 < between.kept <= MOST_KEPT
    assert wire.counts[1] == (5, 0, 0, 3)
    for number in range(5):
        wire.whole_answer("Produce", 10**6 + number)
    assert between.kept == 0


def test_a_correlation_id_that_is_used_again_is_that_of_the_last_request() -> None:
    wire = Wire("api == Produce && error == NONE: drop after")
    for _ in range(3):
        assert wire.whole("Produce", 5) == PASS
    assert isinstance(wire.whole_answer("Produce", 5), Drop)
    assert wire.whole_answer("Produce", 5) == PASS
    assert wire.counts == [(3, 1, 1, 0)]


def test_raw_tokens_and_damaged_requests_pass() -> None:
    wire = Wire("drop after", "topic == orders: drop", "api == Produce: error NOT_LEADER_OR_FOLLOWER")
    token = FrameHead(True, -1, 0, 0, None, 20, False)
    assert wire._requests.decide(token, None) == PASS
    head = wire.head("Produce", 3, 12)
    assert wire._requests.decide(head, b"\0\0\0\x08\0\0\0\x08\0\0\0\x03") == PASS
    unknown = FrameHead(True, 999, 3, 7, "me", 60, True)
    assert wire._requests.decide(unknown, None) == PASS


def test_a_rule_may_be_added_and_disarmed() -> None:
    wire = Wire()
    assert wire.asked("Produce") == PASS
    rule = wire.hook.add(read_rule("api == Produce: drop"))
    assert isinstance(wire.asked("Produce"), Drop)
    rule.is_armed = False
    assert wire.asked("Produce") == PASS
    assert wire.counts == [(1, 1, 1, 0)]


def test_an_empty_produce_has_no_place_for_an_error() -> None:
    wire = Wire("api == Produce: error NOT_LEADER_OR_FOLLOWER, first 1")
    assert wire.whole("Produce", 1, {"acks": 1, "topic_data": []}) == PASS
    assert wire.counts == [(1, 1, 0, 1)]
    assert isinstance(wire.whole("Produce", 2), Answer), "what it could not do does not count"


def test_records_may_be_asked_for() -> None:
    wire = Wire("record.value == one: drop")
    assert isinstance(wire.whole("Produce"), Drop)
    other = {
        "acks": 1,
        "topic_data": [{"name": "x", "partition_data": [{"index": 0, "records": RECORDS.replace(b"one", b"ONE")}]}],
    }
    assert wire.whole("Produce", 2, other) == PASS
    assert KEYS["Produce"] == ApiKey.PRODUCE
