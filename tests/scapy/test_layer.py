"""The layer `Kafka`: what scapy's sessions find in recordings, and frames built by it."""

import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scapy", reason="NOT TESTED with scapy: it is not installed")

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, split_layers
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession

import dissector
from dissector import Message
from dissector.protocol.message_layout import SASL_TOKEN
from dissector.protocol.wire import EncodeError
from dissector.scapy import Kafka, bind_port
from tests.conftest import PCAPS, some_of
from tests.traffic import request

ROOT = Path(__file__).parents[2]
RECORDED = (
    "encoder", "franz-go", "kafka-python-as-0.10-sasl", "kafkajs", "librdkafka-acks0", "librdkafka-pipelined",
    "plain-socket-sasl-v0", "trouble-version-not-offered",
)  # fmt: skip
"""Those with no segment twice: scapy's session loses data after one. The SASL tokens are raw ones in two of them."""
SECRET = b"alice-secret"


@pytest.fixture
def bound() -> Iterator[Any]:
    """Binds ports, for as long as the test runs."""
    ports: set[int] = set()

    def bind(*wanted: int) -> None:
        for port in set(wanted) - {9092}:
            ports.add(port)
            bind_port(port)

    yield bind
    for port in ports:
        split_layers(TCP, Kafka, dport=port)
        split_layers(TCP, Kafka, sport=port)


def frames(packet: Packet) -> Iterator[Kafka]:
    """The frames that a packet of a session has."""
    layer = packet.getlayer(Kafka)
    while isinstance(layer, Kafka):
        yield layer
        layer = layer.payload


def sniffed(path: Path) -> list[Kafka]:
    return [frame for packet in sniff(offline=str(path), session=TCPSession) for frame in frames(packet)]


def message_bytes(message: Message | None) -> bytes:
    """The bytes of a message; of a raw token, which the layer masks whole, its size."""
    assert message is not None
    return b"%d" % message.size if message.layout == SASL_TOKEN else message.data


def shown(packet: Packet) -> str:
    output = io.StringIO()
    with redirect_stdout(output):
        packet.show()
    return output.getvalue()


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(RECORDED, "encoder", "librdkafka-acks0", "plain-socket-sasl-v0"))
def test_a_session_has_the_messages_of_the_capture(name: str, bound: Any) -> None:
    path = PCAPS / f"{name}.pcapng"
    with dissector.open(path) as capture:
        bound(*(int(connection.server.rpartition(":")[2]) for connection in capture.connections()))
        found = sorted(
            (frame.type, frame.api, frame.version or 0, frame.correlation_id or 0, message_bytes(frame.message))
            for frame in sniffed(path)
        )
        assert found == sorted(
            (kind, exchange.api, exchange.api_version or 0, exchange.correlation_id or 0, message_bytes(message))
            for exchange in capture
            for kind, message in (("request", exchange.request), ("response", exchange.response))
            if message is not None
        )


@pytest.mark.long
@pytest.mark.parametrize("name", ["java-sasl-plain", "plain-socket-sasl-v0", "kafka-python-as-0.10-sasl"])
def test_no_password_is_shown(name: str, bound: Any) -> None:
    path = PCAPS / f"{name}.pcapng"
    assert SECRET in path.read_bytes()
    with dissector.open(path) as capture:
        bound(*(int(connection.server.rpartition(":")[2]) for connection in capture.connections()))
    with_secret = [frame for frame in sniffed(path) if SECRET in bytes(frame)]
    assert with_secret
    for frame in with_secret:
        assert SECRET.decode() not in shown(frame) + repr(frame) + frame.summary() + repr(frame.fields)
        frame.correlation_id = 5
        with pytest.raises(EncodeError, match=r"masked|SASL token"):
            bytes(frame)


def test_a_frame_is_built_in_a_packet_and_read_back() -> None:
    made = Kafka(api="Metadata", version=12, correlation_id=7, client_id="dev", topics=[{"name": "orders"}])
    packet = Ether() / IP(src="127.0.0.1", dst="127.0.0.1") / TCP(dport=9092, sport=50_000, flags="PA") / made
    again = Ether(bytes(packet))
    assert again.haslayer(Kafka)
    layer = again[Kafka]
    assert layer.message is not None
    assert (layer.type, layer.api, layer.version, layer.correlation_id) == ("request", "Metadata", 12, 7)
    assert layer.client_id == "dev"
    assert [topic["name"] for topic in layer.body["topics"]] == ["orders"]
    assert again.summary().endswith("Kafka Metadata v12 request 7")
    assert bytes(again) == bytes(packet)
    assert bytes(layer) == dissector.encode_request(
        "Metadata", 12, {"topics": [{"name": "orders"}]}, correlation_id=7, client_id="dev"
    )


def test_show2_names_each_field_with_its_place() -> None:
    packet = TCP(dport=9092) / Kafka(api="Metadata", version=1, correlation_id=7, topics=[{"name": "orders"}])
    text = packet.show2(dump=True)
    assert "topics[0].name = orders  [18+8 STRING]" in text
    frame = bytes(packet[Kafka])
    assert frame[18:26] == b"\0\6orders"


def test_a_changed_body_is_encoded() -> None:
    layer = Kafka(request(1, client_id=b"dev"))
    layer.client_id = "other"
    again = Kafka(bytes(layer))
    assert (again.client_id, again.body) == ("other", layer.body)
    layer = Kafka(bytes(Kafka(api="Metadata", version=1, topics=[{"name": "orders"}])))
    layer.body["topics"].append({"name": "payments"})
    assert [topic["name"] for topic in Kafka(bytes(layer)).body["topics"]] == ["orders", "payments"]


def test_a_response_answers_its_request() -> None:
    asked = Kafka(api="Heartbeat", version=4, correlation_id=3, group_id="g", generation_id=1, member_id="m")
    answer = Kafka(type="response", api="Heartbeat", version=4, correlation_id=3)
    assert answer.answers(asked)
    assert not asked.answers(answer)
    assert not Kafka(type="response", api="Heartbeat", version=4, correlation_id=4).answers(asked)
    assert bytes(answer) == dissector.encode_response("Heartbeat", 4, {}, correlation_id=3)


def test_several_frames_of_a_segment_are_one_below_the_other() -> None:
    packet = TCP(bytes(TCP(dport=9092, sport=50_000)) + request(1) + request(2) + b"\0\0")
    assert [frame.correlation_id for frame in frames(packet)] == [1, 2]
    assert packet.lastlayer().load == b"\0\0"


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_raise_an_error(data: bytes, framed: bool) -> None:
    if framed:
        data = len(data).to_bytes(4, "big") + data
    for segment in (TCP(dport=9092, sport=50_000), TCP(sport=9092, dport=50_000)):
        packet = TCP(bytes(segment) + data)
        shown(packet)
        assert packet.summary().isprintable()
        if not packet.haslayer(Kafka):
            assert not data or bytes(packet[Raw]) == data
        rebuilt = bytes(packet)
        assert rebuilt[20:] == data


def test_hostile_names_reach_no_terminal() -> None:
    layer = Kafka(request(1, client_id="\x1b]0;x\x07\u202e".encode()))
    assert "\x1b" not in shown(layer) + layer.summary() + repr(layer)
    assert "\u202e" not in shown(layer)


@pytest.mark.long
@pytest.mark.slow
def test_the_api_does_not_import_scapy() -> None:
    words = "import sys, dissector; dissector.open; dissector.diff; sys.exit('scapy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", words], check=False, cwd=ROOT).returncode == 0
