"""Transactions that no EndTxn of their producer ends."""

from collections import deque
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from tests.analysis.timelines.reading import timelines_of
from tests.findings.conversations import Talk, written

NAME = "teller"
FENCED, INVALID_EPOCH = 90, 47


def init(talk: Talk, at: float, epoch: int) -> None:
    body = {"transactional_id": NAME, "transaction_timeout_ms": 60_000}
    talk.ask(at, "InitProducerId", 4, body, {"error_code": 0, "producer_id": 7, "producer_epoch": epoch})


def add_offsets(talk: Talk, at: float, epoch: int, error: int = 0) -> None:
    body = {"transactional_id": NAME, "producer_id": 7, "producer_epoch": epoch, "group_id": "readers"}
    talk.ask(at, "AddOffsetsToTxn", 3, body, {"error_code": error})


def end(talk: Talk, at: float, epoch: int, error: int = 0) -> None:
    body = {"transactional_id": NAME, "producer_id": 7, "producer_epoch": epoch, "committed": True}
    talk.ask(at, "EndTxn", 3, body, {"error_code": error})


def titles(folder: Path, *talks: Talk) -> list[tuple[str, int]]:
    with Capture([written(folder, *talks)]) as capture:
        deque(capture.read(), maxlen=0)
        [timeline] = timelines_of(capture).transactions
        return [(phase.title, len(phase.events)) for phase in timeline.phases]


@pytest.mark.parametrize("error", [FENCED, INVALID_EPOCH])
def test_calls_of_a_fenced_producer_are_no_transaction(tmp_path: Path, error: int) -> None:
    old, new = Talk(1), Talk(2)
    init(old, 0, 0)
    add_offsets(old, 10, 0)
    init(new, 20, 1)
    add_offsets(old, 30, 0, error)
    end(old, 40, 0, error)
    add_offsets(new, 50, 1)
    end(old, 55, 0, error)
    end(new, 60, 1)
    assert titles(tmp_path, old, new) == [
        ("start", 1), ("transaction 1 · aborted by InitProducerId", 1), ("start", 3), ("transaction 2 · committed", 3)
    ]  # fmt: skip


def test_a_transaction_whose_producer_is_fenced_was_aborted(tmp_path: Path) -> None:
    talk = Talk()
    init(talk, 0, 0)
    add_offsets(talk, 10, 0)
    end(talk, 70_000, 0, FENCED)
    assert titles(tmp_path, talk) == [("start", 1), ("transaction 1 · aborted: its producer was fenced", 2)]


def test_a_marker_tells_that_the_coordinator_aborted(tmp_path: Path) -> None:
    talk, coordinator = Talk(1), Talk(2)
    init(talk, 0, 0)
    add_offsets(talk, 10, 0)
    marker = {"producer_id": 7, "producer_epoch": 1, "transaction_result": False, "topics": [], "coordinator_epoch": 0}
    coordinator.ask(60_000, "WriteTxnMarkers", 1, {"markers": [marker]}, {"markers": []})
    assert titles(tmp_path, talk, coordinator) == [("start", 1), ("transaction 1 · aborted by the coordinator", 2)]


def test_a_leader_alone_leads_one_member(tmp_path: Path) -> None:
    talk = Talk()
    body = {
        "group_id": "readers", "session_timeout_ms": 1, "rebalance_timeout_ms": 1, "member_id": "m",
        "protocol_type": "consumer", "protocols": [],
    }  # fmt: skip
    member = {"member_id": "m", "group_instance_id": None, "metadata": b""}
    response = {
        "error_code": 0, "generation_id": 1, "protocol_name": "range", "leader": "m", "member_id": "m",
        "members": [member],
    }  # fmt: skip
    talk.ask(0, "JoinGroup", 5, body, response)
    with Capture([written(tmp_path, talk)]) as capture:
        deque(capture.read(), maxlen=0)
        [timeline] = timelines_of(capture).groups
    assert [event.words for event in timeline.events] == ["generation 1 · leads 1 member"]
