"""Fetches that may wait longer than their client, or than what is behind them."""

from pathlib import Path

import pytest

import dissector
from dissector.core.finding import Finding
from tests.cases import cases
from tests.findings.conversations import troubles
from tests.findings.wire import Wire, pcap_of

CODES = ("wait-cut-short", "waits-behind")


def found(folder: Path, *wires: Wire) -> list[tuple[int, Finding]]:
    return [each for each in troubles(pcap_of(folder, *wires)) if each[1].code in CODES]


def cut(number: int, waited: float, allowed: int = 1_800_000, *, by_client: bool = True) -> Wire:
    at = 100_000 * number
    wire = Wire(number, at=at)
    wire.request(at + 1, "Fetch", 11, {"max_wait_ms": allowed, "topics": []})
    wire.close(at + 1 + waited, by_client=by_client)
    return wire


def test_a_client_that_gives_up_before_the_broker_has_to_answer(tmp_path: Path) -> None:
    [(row, finding)] = found(tmp_path, *(cut(n, 30_000) for n in range(4)))
    assert (row, finding.code, finding.path) == (1, "wait-cut-short", "request.body.max_wait_ms")
    assert finding.message.startswith("the client closes the connection 30.000 s after a Fetch, again and again, and ")
    assert finding.message.endswith("; 3 connections within 200.000 s")


@cases(
    ("waits", "allowed", "is_found"),
    [
        ((30_000, 31_500), 1_800_000, True),
        ((30_000, 31_600), 1_800_000, False),
        ((30_000,), 1_800_000, False),
        ((30_000, 30_000), 30_001, True),
        ((30_000, 30_000), 30_000, False),
        ((5_000, 5_000), 9_000, True),
        ((4_999, 4_999), 9_000, False),
    ],
)
def test_only_waits_of_one_length_are_a_timeout(
    tmp_path: Path, waits: tuple[float, ...], allowed: int, is_found: bool
) -> None:
    assert bool(found(tmp_path, *(cut(n, waited, allowed) for n, waited in enumerate(waits)))) == is_found


def cut_at(number: int, request: bytes) -> Wire:
    at = 100_000 * number
    wire = Wire(number, at=at)
    wire.sent(at + 1, (len(request) - 4).to_bytes(4, "big") + request[4:])
    wire.close(at + 30_001, by_client=True)
    return wire


@cases(("replaced", "behind", "is_found"), [(0, b"", True), (1, b"\x01\x00\x01\x00", True), (0, b"\x00", False)])
def test_a_wait_is_read_of_requests_that_can_be_read_to_their_end(
    tmp_path: Path, replaced: int, behind: bytes, is_found: bool
) -> None:
    """One has a tag that no version has: it is decoded by itself."""
    body = {"max_wait_ms": 60_000, "topics": []}
    whole = bytes(dissector.encode_request("Fetch", 12, body, correlation_id=1, client_id="made"))
    request = whole[: len(whole) - replaced] + behind
    assert bool(found(tmp_path, *(cut_at(number, request) for number in range(2)))) == is_found


def test_a_broker_that_closes_is_not_an_impatient_client(tmp_path: Path) -> None:
    assert not found(tmp_path, *(cut(n, 30_000, by_client=False) for n in range(3)))


def behind(name: str, sent: float, answered: float, *, fetched: float = 20_000) -> Wire:
    wire = Wire()
    wire.exchange(1, "Metadata", 1, {"topics": []})
    wire.request(10, "Fetch", 4, {"max_wait_ms": 300_000, "topics": []})
    first = 2
    wire.request(sent, name, 0, {"group_id": "g"} if name != "Metadata" else {"topics": []})
    wire.response(fetched, "Fetch", 4, {}, first)
    wire.response(answered, name, 0, {})
    return wire


@cases(
    ("sent", "answered", "is_found"),
    [
        (3_000, 20_001, True),
        (10_001, 20_001, True),
        (10_002, 20_001, False),
        (3_000, 20_050, True),
        (3_000, 20_051, False),
    ],
)
def test_a_heartbeat_behind_a_fetch(tmp_path: Path, sent: float, answered: float, is_found: bool) -> None:
    here = found(tmp_path, behind("Heartbeat", sent, answered))
    assert [(row, finding.code) for row, finding in here] == [(2, "waits-behind")] * is_found
    for _, finding in here:
        assert f"Heartbeat waited {(answered - sent) / 1000:.3f} s behind Fetch on the same" in finding.message


def test_a_request_behind_another_fetch_is_not_this_one(tmp_path: Path) -> None:
    wire = Wire()
    wire.request(10, "Fetch", 4, {"max_wait_ms": 12_000, "topics": []})
    wire.response(12_000, "Fetch", 4)
    wire.exchange(12_500, "Metadata", 1, {"topics": []})
    wire.request(13_000, "Heartbeat", 0, {"group_id": "g"})
    wire.response(25_000, "Heartbeat", 0)
    assert not found(tmp_path, wire)


@pytest.mark.parametrize("step", [1, 2, 4096])
def test_it_does_not_depend_on_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr("dissector.findings.framework.examination.STEP", step)
    assert found(tmp_path, behind("Heartbeat", 3_000, 20_001))
