"""What is found of versions that a broker does not offer, or refuses; and what is next to it and is not."""

from pathlib import Path

import pytest

from tests.cases import cases
from tests.findings.conversations import Talk, codes, found, heartbeat


@pytest.mark.parametrize(("version", "expected"), [(3, []), (4, [(1, "version-not-offered")])])
def test_a_version_that_the_broker_did_not_name(tmp_path: Path, version: int, expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    offer = {"api_keys": [{"api_key": 12, "min_version": 0, "max_version": 3}, {"api_key": 18, "max_version": 3}]}
    talk.ask(0, "ApiVersions", 2, {}, offer)
    for at in (1, 2):
        talk.ask(at, "Heartbeat", version, {"group_id": "readers", "generation_id": 1, "member_id": "one"}, {})
    assert codes(tmp_path, talk) == expected


@cases(
    ("low", "high", "advice"),
    [
        (5, 9, "advertised v5–v9: upgrade the client, or remove the setting"),
        (0, 3, "advertised v0–v3: the client asked and did not heed it"),
        (0, -1, "did not advertise the API: use a broker that has it"),
    ],
)
def test_a_version_that_is_not_offered_says_what_to_change(tmp_path: Path, low: int, high: int, advice: str) -> None:
    talk = Talk()
    offers = [{"api_key": 18, "max_version": 3}]
    offers += [{"api_key": 12, "min_version": low, "max_version": high}] if low <= high else []
    talk.ask(0, "ApiVersions", 2, {}, {"api_keys": offers})
    talk.ask(1, "Heartbeat", 4, {"group_id": "readers", "generation_id": 1, "member_id": "one"}, {})
    [(_, finding)] = found(tmp_path, talk)
    assert finding.message.startswith(f"Heartbeat v4, but the broker {advice}")


def test_another_connection_to_the_same_broker_knows_what_it_offers(tmp_path: Path) -> None:
    talk, other = Talk(1), Talk(2)
    talk.ask(0, "ApiVersions", 2, {}, {"api_keys": [{"api_key": 12, "min_version": 0, "max_version": 3}]})
    heartbeat(other, 5)
    assert codes(tmp_path, talk, other) == [(1, "version-not-offered")]


def test_a_client_that_did_not_ask_on_its_connection_is_told_to(tmp_path: Path) -> None:
    talk, other = Talk(1), Talk(2)
    talk.ask(0, "ApiVersions", 2, {}, {"api_keys": [{"api_key": 12, "min_version": 0, "max_version": 3}]})
    heartbeat(other, 5)
    [(_, finding)] = found(tmp_path, talk, other)
    assert "have the client ask it with ApiVersions, or set its release in the client (" in finding.message


def test_a_request_that_cannot_be_read_has_no_version(tmp_path: Path) -> None:
    """Its bytes may be of another message: nothing is said of its version beside `malformed`."""
    talk = Talk()
    talk.ask(0, "ApiVersions", 2, {}, {"api_keys": [{"api_key": 12, "min_version": 0, "max_version": 3}]})
    heartbeat(talk, 5)
    last = talk.turns[-2]
    data = last.data[:-8] + b"\xff" * 8
    talk.turns[-2] = last._replace(data=data)
    assert not codes(tmp_path, talk)


def test_a_version_refused_once_is_negotiation_and_refused_twice_a_finding(tmp_path: Path) -> None:
    def ask(talk: Talk, at: float, version: int, error: int) -> None:
        talk.ask(at, "ApiVersions", version, {}, {"error_code": error})

    calm, again = Talk(1), Talk(2)
    for at, talk in ((0, calm), (10, again)):
        ask(talk, at, 2, 35)
        ask(talk, at + 1, 1, 0)
        ask(talk, at + 2, 2, 35)
    ask(again, 20, 1, 35)
    (row, finding) = next(each for each in found(tmp_path, calm, again) if each[1].code == "everyday-error-again")
    assert (row, finding.severity) == (6, "warning")
    assert finding.message == "UNSUPPORTED_VERSION again from ApiVersions, on the same connection"
