"""Requests without a response: one finding of one cause, a note on each row, and never both on the same one."""

from collections import Counter
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.silence_causes import SILENCE_CAUSES, UNANSWERED_CODE
from dissector.findings.framework.closed_requests import CAUSES
from dissector.findings.registry import CODES, CROSS_MESSAGE_CODES
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.findings.conversations import Talk, codes, found, heartbeat, written

BODY = {"group_id": "readers", "generation_id": 1, "member_id": "one"}
SECOND = 1_000


def ask(talk: Talk, at: float) -> None:
    talk.ask(at, "Heartbeat", 4, BODY)


def silent(seconds: float, *, requests: int = 11) -> Talk:
    """A connection on which nothing is answered from a moment on."""
    talk = Talk()
    heartbeat(talk, 0)
    for n in range(requests):
        ask(talk, 10 + n * seconds * SECOND / (requests - 1))
    return talk


def examined(path: str) -> Capture:
    capture = Capture([path])
    for _ in capture.read():
        pass
    for _ in capture.findings.examine():
        pass
    return capture


def test_all_that_wait_for_a_silent_broker_are_one_finding(tmp_path: Path) -> None:
    [(row, finding)] = found(tmp_path, silent(20))
    assert (row, finding.code, finding.severity.value) == (1, "broker-silent", "warning")
    assert finding.message == (
        "TCP delivered it, and the broker has not answered for 20.000 s; 11 requests on 1 connection wait"
    )


@cases(("seconds", "is_silent"), [(4.9, False), (5, True)])
def test_what_is_pending_when_the_capture_ends_is_a_note(tmp_path: Path, seconds: float, is_silent: bool) -> None:
    assert [code for _, code in codes(tmp_path, silent(seconds))] == ["broker-silent"] * is_silent
    with examined(written(tmp_path, silent(seconds))) as capture:
        states = [each for one in capture.exchanges("!response") for each in one.findings]
    notes = [each.severity.value for each in states if each.code == UNANSWERED_CODE]
    assert notes == ["note"] * (11 - is_silent)


def test_connections_of_one_client_are_counted_together(tmp_path: Path) -> None:
    talks = [Talk(number) for number in (1, 1, 1)]
    for n, talk in enumerate(talks):
        talk.client = talk.client._replace(port=40_100 + n)
        ask(talk, n * 4 * SECOND)
    [(row, finding)] = found(tmp_path, *talks)
    assert row == 2, "where it is known"
    assert finding.message.endswith("not answered for 8.000 s; 3 requests on 3 connections wait")


def test_a_long_poll_may_wait_and_nobody_answers_acks_0(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(11):
        talk.ask(n * SECOND, "Fetch", 12, {"max_wait_ms": 500, "topics": []})
        talk.ask(n * SECOND, "Produce", 9, {"acks": 0, "timeout_ms": 1000, "topic_data": []})
    assert not codes(tmp_path, talk)


def test_a_request_that_the_broker_leaves_out_is_one(tmp_path: Path) -> None:
    talk = Talk()
    heartbeat(talk, 0)
    ask(talk, 10)
    heartbeat(talk, 20)
    [(row, finding)] = found(tmp_path, talk)
    assert (row, finding.code) == (1, "broker-silent")
    assert finding.message == "the broker sent no response, though it answered later requests of this connection"


def test_bytes_that_the_capture_lost_may_have_been_the_response(tmp_path: Path) -> None:
    talk = Talk()
    heartbeat(talk, 0)
    ask(talk, 10)
    talk.lose(11, 100)
    heartbeat(talk, 20)
    assert "broker-silent" not in [code for _, code in codes(tmp_path, talk)]


def test_a_close_is_the_cause_of_its_own(tmp_path: Path) -> None:
    talk = silent(20)
    talk._closed = True
    assert [code for _, code in codes(tmp_path, talk)] == ["closed-in-flight"]


def test_the_cause_stands_in_place_of_the_state_on_every_face(tmp_path: Path) -> None:
    path = written(tmp_path, silent(20))
    with examined(path) as capture:
        seen = [[each.code for each in exchange.findings] for exchange in capture.exchanges()]
        by_filter = {
            code: [exchange.row.number for exchange in capture.exchanges(f'finding == "{code}"')]
            for code in ("broker-silent", UNANSWERED_CODE)
        }
        grave = [exchange.row.number for exchange in capture.exchanges("severity >= warning")]
    assert seen == [[], ["broker-silent"], *[[UNANSWERED_CODE]] * 10]
    assert by_filter == {"broker-silent": [2], UNANSWERED_CODE: list(range(3, 13))}
    assert grave == [2]
    shown = kdissect("show", "-f", "json", path).stdout
    counted = Counter(shown.count(code.encode()) for code in ('"broker-silent"', '"unanswered"'))
    assert counted == {1: 1, 10: 1}
    lines = kdissect("stats", "--by", "finding", path).stdout.decode().splitlines()
    assert sorted((line.split()[-1], line.split()[0]) for line in lines if line.endswith(("silent", "unanswered"))) == [
        ("broker-silent", "1"), ("unanswered", "10"),
    ]  # fmt: skip


def test_every_cause_of_a_close_is_one_of_silence() -> None:
    assert {each.explanation.code for each in CAUSES} <= SILENCE_CAUSES <= CROSS_MESSAGE_CODES <= set(CODES)


def test_what_is_encoded_again_stays_open(tmp_path: Path) -> None:
    """The one request has `broker-silent` and nothing else, as it was left out."""
    talk = Talk()
    ask(talk, 10)
    heartbeat(talk, 20)
    lines = kdissect("show", "-f", "json", written(tmp_path, talk)).stdout
    (tmp_path / "lines.json").write_bytes(lines)
    again = str(tmp_path / "again.pcapng")
    assert kdissect("encode", str(tmp_path / "lines.json"), "-w", again).returncode == 0
    with examined(again) as capture:
        assert [finding.code for _, finding in capture.findings.cross_message()] == ["broker-silent"]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_tables_say_the_same(tmp_path: Path) -> None:
    path, tables = written(tmp_path, silent(20)), str(tmp_path / "tables")
    assert kdissect("ingest", path, "--out", tables).returncode == 0
    for asked in (["show"], ["show", "-Y", "finding == unanswered"], ["show", "-Y", "severity >= warning"],
                  ["stats", "--by", "finding"]):  # fmt: skip
        assert kdissect(*asked, tables).stdout == kdissect(*asked, path).stdout
