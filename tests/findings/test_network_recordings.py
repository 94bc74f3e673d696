"""What the network did, in recordings of a real one (`tools/lab/network.py`), and what old brokers did
(`tools/lab/old_brokers.py`): each has exactly these findings of several rows, and near misses have none. The lab asks
for metadata only, so often that this is a finding of its own."""

import re
from pathlib import Path
from typing import Final

import pytest

from dissector.analysis.conformance import RULES, check
from dissector.capture_session import Capture
from tests.conftest import PCAPS
from tests.findings.conversations import troubles

NETWORK = PCAPS / "network"
FOUND: Final[dict[str, list[tuple[int | None, str, str]]]] = {
    "mtu": [(3, "unacknowledged", r"sent again \d times within .* a segment of 1,448 bytes, .* smaller MTU")],
    "mtu-response": [
        (3, "unacknowledged", r"a segment of 1,448 bytes, while .* at most 94: the path may have a smaller")
    ],
    "firewall-forgot": [
        (1, "unacknowledged", r"sent again 6 times .* idle for 63\.0\d+ s: a firewall, load balancer or")
    ],
    "path-lost": [(1, "unacknowledged", r"sent again 6 times .*; nothing came from the other end since")],
    "nagle-response": [
        (None, "delayed-tail", r"^the last bytes of the response came 4\d.* when the client acknowledged")
    ],
    "nagle-request": [
        (None, "delayed-tail", r"^the last bytes of the request came 4\d.* when the broker acknowledged")
    ],
    "stopped-broker": [(None, "slow", r"^took \d.*; 3 more were slow .* on 4 connections: the broker may have")],
    "one-slow-response": [(34, "slow", r"^took 50\d\.\d ms; .*; 50\d\.\d ms of it until the broker answered$")],
    "never-answered": [
        (2, "closed-in-flight", r"^the client closed the connection 8\.0\d+ s later, .* did not answer$")
    ],
    "service-and-pod": [(1, "captured-twice", r"as 10\.1\.0\.2 to 10\.96\.0\.1:9092: .*; 2 such connections within")],
    "service-masqueraded": [
        (1, "captured-twice", r"as 10\.1\.0\.2 to 10\.96\.0\.1:9092: .*; 2 such connections within")
    ],
    "slow-link": [
        (34, "near-loss", r"^bytes of the response were retransmitted"),  # the queue made the sender impatient
        (34, "slow", r" s of it to receive the response$"),
    ],
    "client-does-not-read": [
        (34, "slow", r" s of it to receive the response, as the client did not read: its receive")
    ],
    "broker-0.10-record-batch": [(4, "refused-batch", "records of magic 2 in Produce v2, which has magic 1 at most")],
    "broker-0.8-api-versions": [
        (0, "closed-at-api-versions", r"or does not know this version .*; 8 connections within 3\.\d+ s$")
    ],
    "broker-0.9-api-versions": [
        (
            0,
            "closed-in-flight",
            r"^the client closed the connection 10\.0\d+ s later, .*: it may be of Kafka 0\.9, which",
        )
    ],
    "broker-0.10-works": [(1, "version-stepped-down", r"^repeated with v0 after v3 was rejected; 2 connections")],
    "broker-0.10-idle": [(1, "closed-before-request", r"after 5\.1\d+ s without a message: as idle")],
    "broker-1.1-idle": [(1, "closed-before-request", r"after 5\.1\d+ s without a message: as idle")],
    "loss-recovered": [(1, "near-loss", r"^bytes of the request were retransmitted \d\.\d+ s after it began$")],
}
"""The row, the code, and what the message says; None where the row depends on the machine."""
SILENT = {"mtu-passes", "late-by-itself", "two-interfaces", "broker-1.1-not-idle"}
"""A large request that passes, a rest that comes late by itself, each packet twice under the same addresses, a
connection that is idle for less than the broker allows."""


def of_network(path: Path) -> list[tuple[int, str, str]]:
    """The findings of several rows, without those about many requests for metadata."""
    return [(row, each.code, each.message) for row, each in troubles(str(path)) if each.code != "metadata-storm"]


def test_each_recording_is_expected() -> None:
    assert {path.stem for path in NETWORK.glob("*.pcap")} == FOUND.keys() | SILENT


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOUND))
def test_it_says_what_the_network_did(name: str) -> None:
    found = of_network(NETWORK / f"{name}.pcap")
    assert [code for _, code, _ in found] == [code for _, code, _ in FOUND[name]]
    for (row, _, message), (expected, _, words) in zip(found, FOUND[name], strict=True):
        assert expected in (None, row)
        assert re.search(words, message)


@pytest.mark.parametrize("name", sorted(SILENT))
def test_near_misses_are_silent(name: str) -> None:
    assert of_network(NETWORK / f"{name}.pcap") == []


def test_a_record_batch_in_a_version_before_it_is_a_broken_rule() -> None:
    """aiokafka writes magic 2 in Produce v2, which brokers of 0.10 refuse as corrupt."""
    with Capture([str(NETWORK / "broker-0.10-record-batch.pcap")]) as capture:
        list(capture.read())
        result = check([("", capture)], RULES)
    assert [each.rule.code for each in result.breaches] == ["produce-magic"]
