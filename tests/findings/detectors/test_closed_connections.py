"""What is said of a connection that was closed on a request: one cause, and none that the capture contradicts."""

from pathlib import Path

import pytest

from dissector import encode_response
from dissector.core.finding import Finding
from dissector.findings.detectors.closed_in_flight import ClosedInFlight
from dissector.findings.framework.closed_requests import CAUSES
from tests.cases import cases
from tests.findings.conversations import troubles
from tests.findings.wire import Wire, pcap_of

OFFERS = {"api_keys": [{"api_key": key, "min_version": 0, "max_version": 16} for key in (0, 1, 3, 11, 17, 18, 36)]}
METADATA = {"topics": [{"name": "t"}]}
SASL = {"mechanisms": ["OAUTHBEARER"]}


def found(folder: Path, *wires: Wire) -> list[tuple[int, Finding]]:
    return troubles(pcap_of(folder, *wires))


def codes(folder: Path, *wires: Wire) -> list[str]:
    return [finding.code for _, finding in found(folder, *wires)]


def opened(number: int = 1, at: float = 0) -> Wire:
    """A connection whose broker said which versions it has."""
    wire = Wire(number, at=at)
    wire.exchange(at + 1, "ApiVersions", 3, {}, OFFERS)
    return wire


def test_every_cause_says_what_must_not_be_true() -> None:
    assert len(CAUSES) == 11
    assert CAUSES[-1] is ClosedInFlight
    for cause in CAUSES:
        assert cause.contradictions, cause.explanation.code


def test_a_connection_that_was_idle_is_closed_before_the_request(tmp_path: Path) -> None:
    wire = opened()
    wire.close(600_002)
    wire.request(720_002, "Metadata", 4, METADATA)
    wire.close(720_003, reset=True)
    [(row, finding)] = found(tmp_path, wire)
    assert (row, finding.code) == (1, "closed-before-request")
    assert finding.message.startswith(
        "the connection was closed as idle 120.000 s before this request: nothing had been"
    )
    assert "said for 600.000 s (the default of connections.max.idle.ms)" in finding.message


def test_a_broker_that_closes_idle_connections_sooner(tmp_path: Path) -> None:
    wire = opened()
    wire.exchange(100, "Metadata", 4, METADATA)
    wire.close(5_101)
    wire.request(9_000, "Produce", 0, {"acks": -1})
    [(_, finding)] = found(tmp_path, wire)
    assert "after 5.000 s without a message: as idle (connections.max.idle.ms, or a device betw" in finding.message
    assert finding.message.endswith("or it was stopped")


@cases("at", [2.5, 2_900])
def test_a_broker_that_was_stopped_is_not_called_idle(tmp_path: Path, at: float) -> None:
    wire = opened()
    wire.close(at)
    wire.request(at + 1, "Metadata", 4, METADATA)
    [(_, finding)] = found(tmp_path, wire)
    assert finding.code == "closed-before-request"
    assert "idle" not in finding.message


def test_a_close_is_idle_from_three_seconds_on(tmp_path: Path) -> None:
    for at, words in (
        (3_001.9, "last message"),
        (3_002, "was stopped"),
        (30_001.9, "was stopped"),
        (30_002, "new one"),
    ):
        wire = opened()
        wire.close(at)
        wire.request(at + 1, "Metadata", 4, METADATA)
        [(_, finding)] = found(tmp_path, wire)
        assert finding.message.endswith(words)
        assert ("closed as idle" in finding.message) == (at >= 30_002)


def test_an_idle_close_without_a_request_behind_it_is_nothing(tmp_path: Path) -> None:
    wire = opened()
    wire.close(600_002)
    wire.close(600_003, by_client=True)
    assert not codes(tmp_path, wire)


def test_a_close_on_the_first_request_is_for_lack_of_a_login(tmp_path: Path) -> None:
    wire = opened()
    wire.request(10, "Metadata", 4, METADATA)
    wire.close(11)
    assert codes(tmp_path, wire) == ["login-required"]


def test_what_worked_without_a_login_needs_none(tmp_path: Path) -> None:
    wire = opened()
    wire.exchange(10, "Metadata", 4, METADATA)
    wire.request(20, "Produce", 8, {"acks": -1})
    wire.close(21)
    assert codes(tmp_path, wire) == ["closed-in-flight"]


def test_a_close_that_comes_late_refused_nothing(tmp_path: Path) -> None:
    wire = opened()
    wire.request(10, "Metadata", 4, METADATA)
    wire.close(8_000)
    assert codes(tmp_path, wire) == ["closed-in-flight"]


def test_a_request_with_a_tag_outside_its_versions_is_why(tmp_path: Path) -> None:
    tag = {"tag": 0, "data": "00" * 16}
    partition = {"partition": 0, "fetch_offset": 0, "unknown_tagged_fields": [tag]}
    topics = [{"topic_id": "AQIDBAUGBwgJCgsMDQ4PEA", "partitions": [partition]}]
    wire = opened()
    wire.request(10, "Fetch", 16, {"topics": topics})
    wire.close(11)
    [(_, finding)] = found(tmp_path, wire)
    assert finding.code == "unreadable-request"
    assert finding.message.endswith("tag 0 (replica_directory_id) in v16, which begins in v17")
    assert finding.path == "request.body.topics[0].partitions[0]"


def test_a_tag_that_no_version_has_is_no_fault(tmp_path: Path) -> None:
    partition = {"partition": 0, "unknown_tagged_fields": [{"tag": 77, "data": "00"}]}
    wire = opened()
    wire.request(10, "Fetch", 16, {"topics": [{"topic_id": "AQIDBAUGBwgJCgsMDQ4PEA", "partitions": [partition]}]})
    wire.close(11)
    assert codes(tmp_path, wire) == ["login-required"]


def test_no_cause_stands_beside_a_request_that_cannot_be_read(tmp_path: Path) -> None:
    wire = opened()
    wire.sent(10, bytes.fromhex("00000016 0003 0004 00000002 0004 6d616465 7fffffff 0000 0000"))
    wire.close(11)
    assert codes(tmp_path, wire) == ["unreadable-request"]


def test_a_version_that_was_answered_was_not_removed(tmp_path: Path) -> None:
    wire = Wire()
    wire.exchange(1, "Produce", 0, {"acks": 1})
    wire.request(3, "Produce", 0, {"acks": 1})
    wire.close(4)
    assert codes(tmp_path, wire) == ["closed-in-flight"]


def test_a_broker_that_has_another_removed_version_is_no_newer_one(tmp_path: Path) -> None:
    wire = Wire()
    wire.exchange(1, "Fetch", 0)
    wire.request(3, "OffsetFetch", 0, {"group_id": "g", "topics": []})
    wire.close(4)
    assert codes(tmp_path, wire) == ["suspect-version"]


def test_of_a_broker_of_unknown_age_both_are_said(tmp_path: Path) -> None:
    wire = Wire()
    wire.exchange(1, "Metadata", 0, METADATA)
    wire.request(3, "OffsetFetch", 0, {"group_id": "g", "topics": []})
    wire.close(4)
    [(_, finding)] = found(tmp_path, wire)
    assert finding.code == "version-removed"
    assert "if it is new, upgrade the client" in finding.message
    assert "if it is old, upgrade it" in finding.message


def test_no_broker_is_too_old_for_the_first_version_of_produce(tmp_path: Path) -> None:
    wire = Wire()
    wire.request(3, "Produce", 0, {"acks": 1})
    wire.close(4)
    [(_, finding)] = found(tmp_path, wire)
    assert finding.code == "version-removed"
    assert "too old" not in finding.message


def test_the_first_request_of_a_version_is_suspect(tmp_path: Path) -> None:
    wire = Wire()
    wire.exchange(1, "Metadata", 1, METADATA)
    wire.request(3, "Fetch", 11)
    wire.close(4)
    [(_, finding)] = found(tmp_path, wire)
    assert finding.code == "suspect-version"
    assert (
        "did not ask for versions (ApiVersions): the broker may not have this one; set its release" in finding.message
    )


@cases(("name", "version", "cause"), [("Fetch", 11, "suspect-version"), ("Produce", 0, "version-removed")])
def test_a_version_that_a_broker_lacks_is_refused_within_a_second(
    name: str, version: int, cause: str, tmp_path: Path
) -> None:
    for folder, after, expected in (("soon", 1_000, cause), ("late", 1_001, "closed-in-flight")):
        wire = Wire()
        wire.request(3, name, version, {"acks": 1} if name == "Produce" else {})
        wire.close(3 + after)
        (tmp_path / folder).mkdir()
        assert codes(tmp_path / folder, wire) == [expected]


def test_a_broker_that_never_answers_api_versions_may_be_old(tmp_path: Path) -> None:
    for folder, after, expected in (("soon", 1_999, []), ("late", 2_000, ["closed-in-flight"])):
        wire = Wire()
        wire.request(3, "ApiVersions", 3, {"client_software_name": "made", "client_software_version": "1"})
        wire.close(3 + after, by_client=True)
        (tmp_path / folder).mkdir()
        assert codes(tmp_path / folder, wire) == expected


def test_a_response_with_a_wrong_id_is_the_cause_and_not_the_close_after_it(tmp_path: Path) -> None:
    for folder, response, expected in (("wrong", True, []), ("none", False, ["closed-in-flight"])):
        wire = Wire()
        wire.request(3, "ApiVersions", 3, {"client_software_name": "made", "client_software_version": "1"})
        if response:
            wire.received(4, encode_response("ApiVersions", 3, OFFERS, correlation_id=99))
        wire.close(11_000, by_client=True)
        (tmp_path / folder).mkdir()
        assert codes(tmp_path / folder, wire) == expected


def test_metadata_v0_is_never_suspect_as_all_brokers_have_it(tmp_path: Path) -> None:
    wire = Wire()
    wire.request(3, "Metadata", 0, {"topics": [{"name": "t"}]})
    wire.close(4)
    assert codes(tmp_path, wire) == ["closed-in-flight"]


@pytest.mark.long
@pytest.mark.slow
@cases("cause", ["closed-at-api-versions", "login-required", "version-removed", "closed-in-flight"])
def test_a_thousand_reconnects_are_one_finding_with_their_number(tmp_path: Path, cause: str) -> None:
    wires = []
    for n in range(300):
        wire = opened(n, 6 * n) if cause in ("login-required", "closed-in-flight") else Wire(n, at=6 * n)
        if cause == "closed-in-flight":
            wire.exchange(6 * n + 3, "Metadata", 4, METADATA)
        version = 0 if cause == "version-removed" else 8
        name, body = ("ApiVersions", {}) if cause == "closed-at-api-versions" else ("Produce", {"acks": 1})
        wire.request(6 * n + 4, name, min(version, 3) if name == "ApiVersions" else version, body)
        wire.close(6 * n + 5)
        wires.append(wire)
    of_cause = [finding for _, finding in found(tmp_path, *wires) if finding.code == cause]
    assert len(of_cause) == 1
    assert "300 connections within 1.79" in of_cause[0].message


def test_closes_an_hour_apart_are_two_events(tmp_path: Path) -> None:
    wires = []
    for n, at in enumerate((0, 10_000, 3_600_000)):
        wire = opened(n, at)
        wire.exchange(at + 3, "Metadata", 4, METADATA)
        wire.request(at + 4, "Produce", 8, {"acks": 1})
        wire.close(at + 5)
        wires.append(wire)
    messages = [finding.message for _, finding in found(tmp_path, *wires)]
    assert len(messages) == 2
    assert "2 connections within 10.000 s" in messages[0]
    assert messages[1] == "the broker closed the connection 1.0 ms later, before the response"


def test_sarama_is_not_told_of_settings_of_librdkafka(tmp_path: Path) -> None:
    for client, setting in (
        ("sarama", "Config.Version"), ("rdkafka", "broker.version.fallback"), ("kafka-python-1.3", "api_version"),
        ("kgo", "kgo.MaxVersions"), ("mine", "the setting that fixes its versions"),
    ):  # fmt: skip
        wire = Wire(client_id=client)
        wire.request(3, "Produce", 0, {"acks": 1})
        wire.close(4)
        [(_, finding)] = found(tmp_path, wire)
        assert setting in finding.message
        assert client in ("rdkafka", "mine") or "fallback" not in finding.message


def test_software_that_api_versions_names_is_advised_in_its_own_words(tmp_path: Path) -> None:
    wire = Wire(client_id="billing")
    wire.request(1, "ApiVersions", 4, {"client_software_name": "kgo", "client_software_version": "v1.19.0"})
    wire.close(2, reset=True)
    [(_, finding)] = found(tmp_path, wire)
    assert "kgo.MaxVersions" in finding.message
    assert "api.version" not in finding.message


@cases(("client_id", "version", "is_said"), [("", 3, True), ("", 0, False), ("me", 3, False)])
def test_a_request_without_a_client_id_is_not_read_by_all_brokers(
    client_id: str, version: int, is_said: bool, tmp_path: Path
) -> None:
    wire = Wire(client_id=client_id)
    body = {"client_software_name": "rskafka", "client_software_version": "0.3"} if version else {}
    wire.request(1, "ApiVersions", version, body)
    wire.close(2)
    [(_, finding)] = found(tmp_path, wire)
    assert ("no client id" in finding.message) == is_said


@cases(("version", "code"), [(1, "suspect-version"), (0, "suspect-version")])
def test_a_login_may_begin_in_a_version_that_the_broker_lacks(version: int, code: str, tmp_path: Path) -> None:
    wire = Wire(client_id="sarama")
    wire.request(1, "SaslHandshake", version, {"mechanism": "SCRAM-SHA-256"})
    wire.close(2)
    assert codes(tmp_path, wire) == [code]


def test_a_request_behind_a_login_is_not_suspect(tmp_path: Path) -> None:
    wire = Wire()
    wire.exchange(1, "SaslHandshake", 1, {"mechanism": "PLAIN"}, SASL)
    wire.request(3, "SaslAuthenticate", 0, {"auth_bytes": b"x"})
    wire.close(4)
    assert codes(tmp_path, wire) == ["closed-in-flight"]
