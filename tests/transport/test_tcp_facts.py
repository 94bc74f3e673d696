"""What TCP did on connections: against a count packet by packet, against tshark, however the capture is cut."""

import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.transport.tcp_facts import TcpFacts
from tests.conftest import PCAPS
from tests.needs import needs
from tests.traffic import ACK, Mangling, Packet, Turn, conversation, manglings, streams
from tests.transport.reading import read

MS = 1_000_000
PACKETS = conversation([Turn(True, b"a" * 100), Turn(False, b"b" * 300)], segment=100)
"""Two to open, one of the client, three of the server: a packet a millisecond."""


def facts(packets: list[Packet], **how: object) -> TcpFacts:
    found = read(packets, **how).transport.facts.of(0)
    assert found is not None
    return found


@given(sent=streams(), mangle=manglings(loss=True), cuts=st.lists(st.integers(0, 10_000), max_size=6))
def test_batches_make_no_difference(sent: tuple[bytes, bytes], mangle: Mangling, cuts: list[int]) -> None:
    packets = mangle(conversation([Turn(True, sent[0]), Turn(False, sent[1])], segment=100))
    if packets:
        found = facts(packets)
        assert facts(packets, cuts=cuts) == found
        first = packets[0].from_client
        for side, is_client in ((0, first), (1, not first)):
            of_side = [packet for packet in packets if packet.from_client == is_client]
            assert found.sides[side].packets == len(of_side)
            assert found.sides[side].bytes == sum(len(packet.payload) for packet in of_side)


def test_the_round_trips_of_the_handshake_and_of_acknowledgements() -> None:
    acknowledged = [*PACKETS[:4], Packet(True, 1101, b"", ACK, ack=5101), *PACKETS[4:]]
    found = facts(acknowledged)
    assert found.handshake_ns == 2 * MS
    assert (found.ack_ns, found.least_ack_ns) == (MS, MS)
    late = facts([*PACKETS[2:4], Packet(True, 1101, b"", ACK, ack=5100)])
    assert (late.handshake_ns, late.ack_ns) == (None, None)


def test_what_came_again_and_what_is_missing() -> None:
    client, server = facts([*PACKETS[:3], PACKETS[2], PACKETS[3], PACKETS[5]]).sides
    assert (client.retransmitted, client.lost) == (100, 0)
    assert (server.retransmitted, server.lost, server.bytes) == (0, 100, 200)


def test_zero_windows_are_counted() -> None:
    closed = [replace(PACKETS[3], window=0), replace(PACKETS[4], window=0)]
    client, server = facts([*PACKETS[:3], *closed]).sides
    assert (client.zero_windows, server.zero_windows) == (0, 2)


@pytest.mark.parametrize("name", ["java", "librdkafka", "aiokafka"])
def test_tshark_measures_the_same_handshakes(name: str) -> None:
    needs("tshark")
    path = str(PCAPS / f"{name}.pcapng")
    fields = ["-T", "fields", "-e", "tcp.stream", "-e", "tcp.analysis.initial_rtt"]
    done = subprocess.run(
        ["tshark", "-r", path, "-Y", "tcp.analysis.initial_rtt", *fields], capture_output=True, text=True, check=True
    )
    expected = {int(stream): round(float(rtt) * 1e9) for stream, rtt in map(str.split, done.stdout.splitlines())}
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        found = {number: capture.pipeline.transport.facts.of(number).handshake_ns for number in expected}
    assert expected == found
