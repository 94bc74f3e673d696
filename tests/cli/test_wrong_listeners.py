"""Connections whose client and listener disagree on TLS are told by commands that show no rows, too."""

from pathlib import Path

import pytest

from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.detection.test_refused_tls import plain, tls
from tests.findings.wire import Wire, pcap_of

pytestmark = pytest.mark.slow


def said(command: str, path: str) -> str:
    return kdissect(command, path).stderr.decode()


@cases("command", ["check", "stats", "groups"])
def test_tls_at_a_plain_listener_is_counted_by_listener(command: str, tmp_path: Path) -> None:
    path = pcap_of(tmp_path, plain(19092), tls(19092, 1), tls(19092, 2), tls(19094, 3))
    text = said(command, path)
    assert "10.0.0.9:19092, 2 connections: TLS on a plaintext listener: set security.protocol=PLAINTEXT" in text
    assert "10.0.0.9:19094, 1 connection: TLS on a plaintext listener" in text


@cases("command", ["check", "stats"])
def test_plain_kafka_at_a_tls_listener_is_counted_by_listener(command: str, tmp_path: Path) -> None:
    wire = Wire(server=("10.0.0.9", 19093))
    wire.request(1, "ApiVersions", 3, {"client_software_name": "made", "client_software_version": "1"})
    wire.received(2, bytes.fromhex("15030300020250"))
    wire.close(3)
    assert "10.0.0.9:19093, 1 connection: plain Kafka on a TLS listener" in said(command, pcap_of(tmp_path, wire))


def test_nothing_is_said_where_they_agree(tmp_path: Path) -> None:
    assert said("stats", pcap_of(tmp_path, plain(19092))) == ""
