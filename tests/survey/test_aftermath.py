"""What a client did after a fault: a retry is what asks for the same again."""

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

from dissector.capture.injection_notes import InjectionNote
from dissector.capture.live.writer import CaptureWriter
from dissector.conversation.pcapng import ETHERNET
from dissector.conversation.turns import End
from dissector.protocol.frame import frame_bytes, request_header
from dissector.protocol.message import Values
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.schema.loader import api_named
from dissector.proxy_server import BrokerAddress, ProxySettings
from dissector.proxy_server.recording import PacketLog, RecordedConnection
from tools.lab.proxied.aftermath import Aftermath, aftermath

BROKER = End("127.0.0.1", 9092)
VERSIONS = {"Produce": 8, "Fetch": 11, "OffsetCommit": 7, "Metadata": 8, "FindCoordinator": 2}
MOVED = "error NOT_LEADER_OR_FOLLOWER"
Step = tuple[int, str, Values, str]
"""The connection, the API, the body of a request, and what was injected."""


def produce(value: bytes, acks: int = -1) -> Values:
    records = records_bytes({"batches": [{"records": [{"value": value}]}]})
    return {"acks": acks, "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]}


def fetch(offset: int | None, epoch: int) -> Values:
    """A Fetch of a session; without an offset the partition is one that the session has."""
    topics = [] if offset is None else [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": offset}]}]
    return {"session_id": 7, "session_epoch": epoch, "topics": topics, "forgotten_topics_data": []}


def commit(offset: int) -> Values:
    partition = {"partition_index": 0, "committed_offset": offset}
    return {"group_id": "readers", "topics": [{"name": "orders", "partitions": [partition]}]}


METADATA: Step = (1, "Metadata", {"topics": None}, "")


def recorded(folder: Path, steps: Sequence[Step], *, is_pipelined: bool = False) -> Path:
    """Each request is answered a second later, and the next one comes a second after that; or behind all requests."""
    path = folder / "made.pcapng"
    writer = CaptureWriter(ProxySettings((BrokerAddress(*BROKER),), path=str(path)), ETHERNET, lambda _: None)
    log = PacketLog(writer, pytest.fail)
    connections: dict[int, RecordedConnection] = {}
    clock, ids = count(1_790_000_000, 1), count(1)
    answers: list[tuple[RecordedConnection, bytes]] = []
    for number, name, body, injected in steps:
        if number not in connections:
            connections[number] = RecordedConnection(
                log, End("127.0.0.1", 50_000 + number), BROKER, next(clock) * 10**9
            )
            connections[number].accepted(next(clock) * 10**9)
        known, version, correlation_id = api_named(name), VERSIONS[name], next(ids)
        assert known is not None
        layout = request_layout(known.key, version)
        header = request_header(layout, known.key, version, {"correlation_id": correlation_id, "client_id": "me"})
        note = InjectionNote(f"127.0.0.1:{50_000 + number}", correlation_id, "fault 1", injected)
        comment = note.comment() if injected else ""
        to = connections[number]
        to.data(next(clock) * 10**9, frame_bytes(layout, header, body), comment, from_client=True)
        if body.get("acks") != 0:
            answered = response_layout(known.key, version, b"")
            answer = frame_bytes(answered, {"correlation_id": correlation_id}, {})
            answers.append((to, answer))
        if not is_pipelined:
            _send(answers, clock)
    _send(answers, clock)
    log.close()
    return path


def _send(answers: list[tuple[RecordedConnection, bytes]], clock: Iterator[int]) -> None:
    while answers:
        to, answer = answers.pop(0)
        to.data(next(clock) * 10**9, answer, from_client=False)


def after(folder: Path, api: str, *steps: Step) -> Aftermath:
    return aftermath(recorded(folder, steps), api)


def test_the_same_records_are_a_retry(tmp_path: Path) -> None:
    found = after(
        tmp_path, "Produce", (1, "Produce", produce(b"a"), MOVED), METADATA, (1, "Produce", produce(b"b"), ""),
        (1, "Produce", produce(b"a"), ""),
    )  # fmt: skip
    assert (found.hurt, found.again, found.left, found.untold) == ([1], [4], [], [])
    assert (found.looked_up, found.is_elsewhere, found.wait_ns) == (["Metadata"], False, 6 * 10**9)


def test_new_records_are_no_retry(tmp_path: Path) -> None:
    found = after(tmp_path, "Produce", (1, "Produce", produce(b"a"), MOVED), (1, "Produce", produce(b"b"), ""))
    assert (found.hurt, found.again, found.left, found.wait_ns) == ([1], [], [1], None)


def test_a_retry_may_come_on_a_new_connection(tmp_path: Path) -> None:
    found = after(tmp_path, "Produce", (1, "Produce", produce(b"a"), "close after"), (2, "Produce", produce(b"a"), ""))
    assert (found.again, found.is_elsewhere) == ([2], True)


def test_a_retry_on_a_connection_from_before_is_not_one_on_a_new_one(tmp_path: Path) -> None:
    steps: list[Step] = [(2, *METADATA[1:]), (1, "Produce", produce(b"a"), MOVED), (2, "Produce", produce(b"a"), "")]
    found = after(tmp_path, "Produce", *steps)
    assert (found.again, found.is_elsewhere) == ([3], False)


def test_no_answer_is_waited_for_without_acks(tmp_path: Path) -> None:
    found = after(tmp_path, "Produce", (1, "Produce", produce(b"a", acks=0), "drop"))
    assert (found.hurt, found.is_unacknowledged, found.again) == ([1], True, [])


def test_a_fetch_is_known_by_its_offsets_also_in_a_session(tmp_path: Path) -> None:
    first = (1, "Fetch", fetch(5, 0), "")
    same = after(tmp_path, "Fetch", first, (1, "Fetch", fetch(None, 1), MOVED), (1, "Fetch", fetch(None, 2), ""))
    assert (same.hurt, same.again, same.left) == ([2], [3], [])
    further = after(tmp_path, "Fetch", first, (1, "Fetch", fetch(None, 1), MOVED), (1, "Fetch", fetch(9, 2), ""))
    assert (further.hurt, further.again, further.left) == ([2], [], [2])


def test_a_commit_is_known_by_what_it_keeps(tmp_path: Path) -> None:
    hurt = (1, "OffsetCommit", commit(40), "error NOT_COORDINATOR")
    assert after(tmp_path, "OffsetCommit", hurt, (1, "OffsetCommit", commit(40), "")).again == [2]
    assert after(tmp_path, "OffsetCommit", hurt, (1, "OffsetCommit", commit(41), "")).again == []


def test_what_was_under_way_already_is_no_retry(tmp_path: Path) -> None:
    """kafkajs commits by itself and when it is told to, at the same time."""
    twice = [(1, "OffsetCommit", commit(40), "error NOT_COORDINATOR"), (1, "OffsetCommit", commit(40), "")]
    path = recorded(tmp_path, twice, is_pipelined=True)
    found = aftermath(path, "OffsetCommit")
    assert (found.hurt, found.again, found.left) == ([1], [], [1])


def test_what_has_no_records_can_not_be_told_from_others(tmp_path: Path) -> None:
    empty = {"acks": -1, "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": b""}]}]}
    found = after(tmp_path, "Produce", (1, "Produce", empty, MOVED), (1, "Produce", empty, ""))
    assert (found.hurt, found.untold, found.again) == ([1], [1], [])


def test_who_sends_while_throttled_was_held_back(tmp_path: Path) -> None:
    hurt = (1, "Produce", produce(b"a"), "throttle 1s")
    held = after(tmp_path, "Produce", hurt, (1, "Produce", produce(b"b"), "held back, throttled"))
    waited = after(tmp_path, "Produce", hurt, (1, "Produce", produce(b"b"), ""))
    assert (held.hurt, held.held_back, held.behind) == ([1], 1, 1), "what came a second later was not held back"
    assert (waited.hurt, waited.held_back, waited.behind) == ([1], 0, 1)
