"""What is found of requests that wait: ids, order, time, the end of a connection; and what is next to it and is not."""

from pathlib import Path

import pytest

from tests.cases import cases
from tests.findings.conversations import Talk, codes, fetch, found, heartbeat, produce


def test_an_id_that_is_in_flight_is_used_again(tmp_path: Path) -> None:
    talk = Talk()
    heartbeat(talk, 0, took=20, correlation_id=7)
    heartbeat(talk, 10, took=20, correlation_id=7)
    heartbeat(talk, 11, took=20, correlation_id=7)
    [(row, finding)] = found(tmp_path, talk)
    assert (row, finding.code) == (1, "duplicate-correlation-id")
    assert "2 such requests" in finding.message


def test_an_id_that_is_free_again_may_be_used(tmp_path: Path) -> None:
    talk, other = Talk(1), Talk(2)
    for at in (0, 10, 20):
        heartbeat(talk, at, took=5, correlation_id=7)
        heartbeat(other, at + 1, took=5, correlation_id=7)
    assert not codes(tmp_path, talk, other)


def test_a_duplicate_id_across_steps_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", 1)
    talk = Talk()
    heartbeat(talk, 0, took=20, correlation_id=7)
    heartbeat(talk, 1, took=30, correlation_id=8)
    heartbeat(talk, 10, took=40, correlation_id=7)
    assert codes(tmp_path, talk) == [(2, "duplicate-correlation-id")]


@cases("step", [1, 2, 4096])
def test_an_answer_that_overtakes_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", step)
    talk = Talk()
    heartbeat(talk, 0)
    heartbeat(talk, 10, took=20)
    heartbeat(talk, 11, took=2)
    heartbeat(talk, 40)
    assert codes(tmp_path, talk) == [(2, "out-of-order-response")]


def test_pipelined_answers_in_order_are_as_they_should_be(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(20):
        heartbeat(talk, n, took=10)
    assert not codes(tmp_path, talk)


def test_a_slow_response_is_reported_once_with_the_requests_behind_it(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(100):
        heartbeat(talk, 10 * n, took=2)
    heartbeat(talk, 2000, took=300)
    heartbeat(talk, 2010, took=295)
    [(row, finding)] = found(tmp_path, talk)
    assert (row, finding.code) == (100, "slow")
    assert finding.message.startswith("took 300.0 ms; Heartbeat takes ")
    assert finding.message.endswith("1 more waited behind it")


def test_a_connection_that_is_always_slow_is_not_reported(tmp_path: Path) -> None:
    talk = Talk()
    for n in range(100):
        heartbeat(talk, 1000 * n, took=300 if n % 5 else 2)
    assert not codes(tmp_path, talk)


@pytest.mark.parametrize(("took", "expected"), [(510, []), (1500, [(0, "slow")])])
def test_a_fetch_may_wait_as_long_as_its_max_wait(tmp_path: Path, took: float, expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    fetch(talk, 0, 10, 10, took=took)
    assert codes(tmp_path, talk) == expected


def test_requests_left_in_flight(tmp_path: Path) -> None:
    talk, quiet = Talk(1, closed=True), Talk(2, closed=True)
    for at in (0, 5, 9):
        talk.ask(at, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"})
    quiet.ask(0, "Metadata", 12, {"topics": None})  # a client leaves that in flight whenever it ends
    [(row, finding)] = found(tmp_path, talk, quiet)
    assert (row, finding.code) == (0, "closed-in-flight")
    assert finding.message == "the client closed the connection with 3 requests in flight, the oldest 9.0 ms old"


def test_a_connection_that_goes_on_may_have_requests_in_flight(tmp_path: Path) -> None:
    talk = Talk(closed=False)
    talk.ask(0, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"})
    assert not codes(tmp_path, talk)


def test_a_large_request_broken_off(tmp_path: Path) -> None:
    talk = Talk(closed=True)
    heartbeat(talk, 0)
    produce(talk, 5, value=bytes(2 << 20))
    last = talk.turns[-2]
    talk.turns[-2:] = [type(last)(last.time_ns, True, last.data[:5000])]
    assert codes(tmp_path, talk) == [(1, "oversized-request")]


def test_a_large_request_that_only_the_capture_lacks_is_not_too_large(tmp_path: Path) -> None:
    """Another request came behind it: the client sent all of it."""
    talk = Talk(closed=True)
    heartbeat(talk, 0)
    produce(talk, 5, value=bytes(2 << 20))
    whole = talk.turns[-2]
    talk.turns[-2:] = [whole._replace(data=whole.data[:5000], missing=len(whole.data) - 5000)]
    talk.ask(10, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"})
    found_codes = [code for _, code in codes(tmp_path, talk)]
    assert "oversized-request" not in found_codes
    assert "closed-in-flight" in found_codes
