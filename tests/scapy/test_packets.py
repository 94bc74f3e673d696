"""Packets of exchanges as packets of scapy's."""

import pytest

pytest.importorskip("scapy", reason="NOT TESTED with scapy: it is not installed")

from scapy.layers.inet import TCP
from scapy.packet import Raw

import dissector
from dissector.scapy import Kafka, packets_of
from tests.conftest import PCAPS


@pytest.mark.long
def test_packets_have_the_bytes_times_and_lengths_of_the_capture() -> None:
    with dissector.open(PCAPS / "java.pcapng") as capture:
        for exchange in capture[:20]:
            ours, theirs = exchange.packets(), packets_of(exchange)
            assert len(ours) == len(theirs) >= 2
            for packet, made in zip(ours, theirs, strict=True):
                assert bytes(made) == packet.data
                assert round(made.time * 1_000_000_000) == packet.time_ns
                assert made.wirelen == packet.length
            first = theirs[0][TCP][Kafka]
            assert (first.api, first.correlation_id) == (exchange.api, exchange.correlation_id)
            answer = theirs[-1][TCP][Kafka]
            assert (answer.type, answer.api, answer.version) == ("response", exchange.api, exchange.api_version)


def test_they_open_as_the_same_exchange() -> None:
    with dissector.open(PCAPS / "franz-go.pcapng") as capture:
        exchange = capture[30]
        with dissector.open(packets_of(exchange)) as again:
            assert [each.api for each in again] == [exchange.api]
            assert [each.time_ns for each in again] == [exchange.time_ns]
            assert [each.request and each.request.data for each in again] == [
                exchange.request and exchange.request.data
            ]


def test_a_link_type_that_scapy_does_not_know_is_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    with dissector.open(PCAPS / "java.pcapng") as capture:
        exchange = capture[1]
        packets = [each._replace(link_type=65_000) for each in exchange.packets()]
        monkeypatch.setattr(type(exchange), "packets", lambda _: packets)
        assert all(isinstance(each, Raw) for each in packets_of(exchange))
