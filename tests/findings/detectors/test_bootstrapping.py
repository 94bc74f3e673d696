"""Clients that do not get beyond bootstrapping, and what looks like it and is not."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.core.finding import Finding
from dissector.findings.framework.aggregation import aggregate
from tests.cases import cases
from tests.findings.conversations import troubles
from tests.findings.wire import Wire, pcap_of

OFFERS = {"api_keys": [{"api_key": key, "min_version": 0, "max_version": 16} for key in (0, 1, 3, 18)]}


def bootstrap(
    number: int, at: float, host: str = "10.0.0.9", server: str = "10.0.0.9", client: str = "10.0.0.5"
) -> Wire:
    """A connection on which the client learns the addresses of brokers, and closes it."""
    wire = Wire(number, at=at, client=client, server=(server, 9092))
    wire.exchange(at + 1, "ApiVersions", 3, {}, OFFERS)
    wire.exchange(at + 3, "Metadata", 9, {"topics": []}, {"brokers": [{"node_id": 1, "host": host, "port": 9092}]})
    return wire


def found(folder: Path, *wires: Wire) -> list[Finding]:
    return [finding for _, finding in troubles(pcap_of(folder, *wires))]


def test_an_advertised_loopback_leads_the_client_to_itself(tmp_path: Path) -> None:
    [finding] = found(tmp_path, bootstrap(1, 0, "127.0.0.1"))
    assert finding.code == "advertised-own-host"
    assert finding.message.startswith("10.0.0.9:9092 advertises 127.0.0.1:9092 to 10.0.0.5, which finds itself there")
    assert finding.path == "response.body.brokers[0].host"


@cases("host", ["localhost", "LOCALHOST.", "127.9.9.9", "::1", "0.0.0.0", "::", "localhost.localdomain"])
def test_all_addresses_of_ones_own_host_are_known(tmp_path: Path, host: str) -> None:
    assert [each.code for each in found(tmp_path, bootstrap(1, 0, host))] == ["advertised-own-host"]


@cases("host", ["10.0.0.9", "kafka", "localhost-1.example", "128.0.0.1", "broker.localhostess"])
def test_other_addresses_are_nothing(tmp_path: Path, host: str) -> None:
    assert not found(tmp_path, bootstrap(1, 0, host))


def test_on_one_host_or_by_a_forwarded_port_a_loopback_is_right(tmp_path: Path) -> None:
    same = bootstrap(1, 0, "localhost", client="10.0.0.9")
    forwarded = bootstrap(2, 0, "localhost", client="127.0.0.1", server="127.0.0.1")
    assert not found(tmp_path, same, forwarded)


def test_it_is_said_once_for_all_connections(tmp_path: Path) -> None:
    [finding] = found(tmp_path, *(bootstrap(n, 1000 * n, "127.0.0.1") for n in range(3)))
    assert finding.message.endswith("correct advertised.listeners; 3 connections within 2.000 s")


@cases(("count", "is_storm"), [(9, False), (10, True), (40, True)])
def test_ten_connections_that_only_bootstrap_are_a_storm(tmp_path: Path, count: int, is_storm: bool) -> None:
    wires = [bootstrap(n, 1000 * n, "10.0.0.8") for n in range(count)]
    for n, wire in enumerate(wires):
        wire.close(1000 * n + 500, by_client=True)
    messages = [each.message for each in found(tmp_path, *wires) if each.code == "reconnect-storm"]
    assert len(messages) == is_storm
    if is_storm:
        assert messages[0].startswith(f"10.0.0.5 opened {count} connections to 10.0.0.9:9092 within {count - 1}.000 s")
        assert f"the client closed {count}, after 497.0 ms at most" in messages[0]
        assert "Metadata sends it to 10.0.0.8:9092 (advertised.listeners)" in messages[0]


def test_an_address_that_the_client_reaches_is_not_why_it_storms(tmp_path: Path) -> None:
    [finding] = found(tmp_path, *(bootstrap(n, 1000 * n) for n in range(12)))
    assert finding.code == "reconnect-storm"
    assert "advertised.listeners" not in finding.message


def test_connections_on_which_something_is_done_are_no_storm(tmp_path: Path) -> None:
    wires = [bootstrap(n, 1000 * n) for n in range(20)]
    for n in (5, 14):
        wires[n].exchange(1000 * n + 10, "Produce", 8, {"acks": 1})
    assert not found(tmp_path, *wires)


def test_a_health_check_every_minute_is_no_storm(tmp_path: Path) -> None:
    assert not found(tmp_path, *(bootstrap(n, 60_000 * n) for n in range(20)))


def test_two_clients_are_not_one(tmp_path: Path) -> None:
    wires = [bootstrap(n, 1000 * n, client=f"10.0.0.{5 + n % 2}") for n in range(16)]
    assert not found(tmp_path, *wires)


def test_a_close_with_a_cause_of_its_own_is_one_finding(tmp_path: Path) -> None:
    wires = []
    for n in range(30):
        wire = Wire(n, at=20 * n)
        wire.exchange(20 * n + 1, "ApiVersions", 3, {}, OFFERS)
        wire.request(20 * n + 3, "Metadata", 9, {"topics": []})
        wire.close(20 * n + 4)
        wires.append(wire)
    assert [each.code for each in found(tmp_path, *wires)] == ["login-required"]


def test_logins_that_are_refused_are_no_storm(tmp_path: Path) -> None:
    """The error says more."""
    wires = []
    for n in range(20):
        wire = Wire(n, at=500 * n)
        wire.exchange(500 * n + 1, "SaslHandshake", 1, {"mechanism": "PLAIN"}, {"mechanisms": ["PLAIN"]})
        wire.exchange(500 * n + 3, "SaslAuthenticate", 1, {"auth_bytes": "00"}, {"error_code": 58})
        wire.close(500 * n + 5)
        wires.append(wire)
    assert [each.code for each in found(tmp_path, *wires)] == ["error-storm"]


@pytest.mark.long
@example(turns=[(0, 20 * "b"), (0, "w")], step=100, hosts="10.0.0.8")
@example(turns=[(0, 20 * "b"), (0, "w")], step=18, hosts="10.0.0.8")
@example(turns=[(0, "b"), (0, "w")], step=100, hosts="localhost")
@given(
    turns=st.lists(st.tuples(st.integers(0, 1), st.sampled_from(("b", 9 * "b", 20 * "b", "w"))), max_size=8),
    step=st.integers(1, 100),
    hosts=st.sampled_from(("10.0.0.9", "10.0.0.8", "localhost")),
)
def test_what_is_not_observed_of_a_capture_changes_no_finding(
    tmp_path_factory: pytest.TempPathFactory, turns: list[tuple[int, str]], step: int, hosts: str
) -> None:
    wires = []
    for n, (client, does) in enumerate((client, does) for client, some in turns for does in some):
        wire = bootstrap(n, 1000 * n, hosts, client=f"10.0.0.{5 + 4 * client}")
        if does == "w":
            wire.exchange(1000 * n + 10, "Produce", 8, {"acks": 1})
        wires.append(wire)
    path = pcap_of(tmp_path_factory.mktemp("bootstraps"), *wires)
    assert sorted(in_steps(path, step)) == sorted(of_all_observations(path))


def in_steps(path: str, step: int) -> Iterator[tuple[str, str]]:
    with Capture([path]) as capture:
        for _ in chain(capture.read(), capture.findings.examine(step=step)):
            pass
        for _, finding in capture.findings.cross_message():
            yield finding.code, finding.message


def of_all_observations(path: str) -> Iterator[tuple[str, str]]:
    """The findings that come of a partition, of which each observation is kept."""
    with Capture([path]) as capture:
        for _ in chain(capture.read(), capture.findings.examine(part=True)):
            pass
        observations = sorted(capture.findings.take_observations(), key=lambda each: (each.extractor, each.scope))
        for _, finding in aggregate(observations):
            yield finding.code, finding.message
