"""What is found of exchanges whose bytes TCP lost or sent again; and what is no loss."""

from pathlib import Path

import pytest

from dissector.core.finding import Finding
from tests.cases import cases
from tests.findings.conversations import Talk, found, grown, heartbeat, troubles
from tests.traffic import ACK, Packet, capture_of, conversation, ethernet, exchanges, pcap


@cases("step", [1, 2, 4096])
def test_a_hole_next_to_an_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", step)
    unanswered, behind = Talk(1), Talk(2)
    for talk in (unanswered, behind):
        heartbeat(talk, 0)
    unanswered.ask(10, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"})
    unanswered.lose(11, 100)
    heartbeat(unanswered, 3000)
    behind.lose(20, 200)
    heartbeat(behind, 30)
    (row, before), (other, after) = found(tmp_path, unanswered, behind)
    assert (row, before.code, other, after.code) == (2, "near-loss", 3, "near-loss")
    assert before.message == "the response may be among 100 missing bytes"
    assert after.message == "200 bytes are missing right before the response"


@pytest.mark.parametrize("step", [1, 4096])
def test_a_hole_before_an_answer_whose_request_came_before_the_hole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", step)
    talk = Talk()
    heartbeat(talk, 0)
    heartbeat(talk, 10, took=20)
    talk.lose(15, 200)
    heartbeat(talk, 40)
    talk.turns.sort(key=lambda turn: turn.time_ns)
    [(row, finding)] = found(tmp_path, talk)
    assert (row, finding.code, finding.message) == (
        1, "near-loss", "200 bytes are missing right before the response"
    )  # fmt: skip


def resending(folder: Path, pause: int, *, ahead: bool = False) -> list[tuple[int, Finding]]:
    """Two exchanges, a packet a millisecond; the second response comes again after a pause, or for the first time with
    what stands `ahead` of it already seen."""
    packets = conversation([*exchanges(1, size=100), *exchanges(1, size=100)], segment=54)
    idle = [Packet(True, packets[-1].ack, b"", ACK, 1)] * pause
    if ahead:
        return troubles(capture_of(folder, [*packets[:-2], packets[-1], *idle, packets[-2]]))
    return troubles(capture_of(folder, [*packets, *idle, packets[-1]]))


def test_an_exchange_whose_bytes_tcp_sent_again(tmp_path: Path) -> None:
    [(row, finding)] = resending(tmp_path, 60)
    assert (row, finding.code, finding.severity) == (1, "near-loss", "note")
    assert finding.message == "bytes of the response were retransmitted 62.0 ms after it began"
    [(row, finding)] = resending(tmp_path, 60, ahead=True)
    assert (row, finding.code) == (1, "near-loss")
    assert finding.message == "the response waited 61.0 ms for bytes that arrived late"


@pytest.mark.parametrize(("in_time", "expected"), [(True, []), (False, [(0, "near-loss")])])
def test_a_retransmission_after_the_response_is_no_loss(
    tmp_path: Path, in_time: bool, expected: list[tuple[int, str]]
) -> None:
    opening, [request_packet, answer] = (packets := conversation(exchanges(1)))[:2], packets[2:]
    idle = [Packet(True, request_packet.seq + len(request_packet.payload), b"", ACK, 1)] * 60
    late = (
        [request_packet, answer, *idle, request_packet] if in_time else [request_packet, *idle, request_packet, answer]
    )
    found = troubles(capture_of(tmp_path, [*opening, *late]))
    assert [(row, finding.code) for row, finding in found] == expected


@pytest.mark.parametrize("ahead", [False, True])
def test_packets_seen_twice_or_overtaken_at_once_are_no_loss(tmp_path: Path, ahead: bool) -> None:
    assert not resending(tmp_path, 20, ahead=ahead)


def test_live_retransmissions_after_a_row_is_complete_are_reported(tmp_path: Path) -> None:
    packets = conversation(exchanges(2), segment=54)
    again = [*packets, *[Packet(True, packets[-1].ack, b"", ACK, 1)] * 80, packets[3]]
    whole = pcap([ethernet(packet) for packet in again])
    seen = [
        [(row, finding.code) for row, finding in capture.findings.cross_message()]
        for capture in grown(tmp_path / "growing.pcap", whole, [len(whole) - 200])
        for _ in [list(capture.findings.examine())]
    ]
    assert seen[0] == []
    assert seen[-1] == [(0, "near-loss")]
