"""What TCP did on connections: against a count packet by packet, against tshark, however the capture is cut."""

import random
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.transport.tcp_facts import TcpFacts
from tests.conftest import PCAPS
from tests.needs import needs
from tests.traffic import ACK, SERVER, SYN, Mangling, Packet, Turn, capture_of, conversation, manglings, streams
from tests.transport.reading import read

MS = 1_000_000
PACKETS = conversation([Turn(True, b"a" * 100), Turn(False, b"b" * 300)], segment=100)
"""Two to open, one of the client, three of the server: a packet a millisecond."""


def facts(packets: list[Packet], **how: object) -> TcpFacts:
    found = read(packets, **how).transport.facts.of(0)
    assert found is not None
    return found


def test_a_connection_without_segments_has_none() -> None:
    found = read(PACKETS).transport.facts
    assert found.of(0) is not None
    assert found.of(1) is found.of(2) is None
    assert found.last_time_ns(0) > 0
    assert found.last_time_ns(1) == 0


@given(seed=st.integers(0, 99), mangle=manglings(loss=True), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_batches_make_no_difference_to_windows(seed: int, mangle: Mangling, cuts: list[int]) -> None:
    packets = mangle(crowded(random.Random(seed), 2000, (2, 3)))
    if packets:
        assert facts(packets, cuts=cuts) == facts(packets)


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


def scaled(scale: int) -> bytes:
    """The option of a SYN that offers a scale."""
    return bytes((3, 3, scale, 1))


def crowded(chance: random.Random, port: int, scales: tuple[int, int], *, syns: int = 2) -> list[Packet]:
    """A connection whose windows are small, so that they are often full or closed."""
    ends: dict[str, Any] = {"client": ("10.0.0.1", port)}
    options = [scaled(each) if each >= 0 else b"" for each in scales]
    packets = [Packet(True, 999, b"", SYN, window=200, options=options[0], **ends)]
    packets += [Packet(False, 4999, b"", SYN | ACK, 1000, window=100, options=options[1], **ends)]
    packets = packets[:syns]
    sent, seen = {True: 1000, False: 5000}, {True: 1000, False: 5000}
    for _ in range(60):
        side = chance.random() < 0.5
        size = chance.choice([0, 0, 4, 8, 12, 16, 32])
        seen[not side] = chance.choice([seen[not side], sent[not side]])
        window = chance.choice([0, 1, 2, 4, 8, 8, 16])
        packets += [Packet(side, sent[side], bytes(size), ACK, seen[not side], window=window, **ends)]
        sent[side] += size
    return packets


@pytest.mark.long
@pytest.mark.slow
def test_full_and_zero_windows_are_those_of_tshark(tmp_path: Path) -> None:
    needs("tshark")
    chance = random.Random(4)
    kinds = [((scale, other), 2) for scale in (-1, 0, 2) for other in (-1, 0, 3)] * 2 + [((2, 2), 1), ((2, 2), 0)]
    connections = [crowded(chance, 2000 + n, scales, syns=syns) for n, (scales, syns) in enumerate(kinds)]
    path = capture_of(tmp_path, [packet for packets in connections for packet in packets])
    for name, fact in (("window_full", "full_windows"), ("zero_window", "zero_windows")):
        fields = ["-T", "fields", "-e", "tcp.stream", "-e", "tcp.srcport"]
        command = ["tshark", "-r", path, "-Y", f"tcp.analysis.{name}", *fields]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        expected = Counter(
            (int(stream), int(port) != SERVER[1]) for stream, port in map(str.split, done.stdout.splitlines())
        )
        found: Counter[tuple[int, bool]] = Counter()
        with Capture([path]) as capture:
            list(capture.exchanges())
            for number, packets in enumerate(connections):
                facts = capture.pipeline.transport.facts.of(number)
                assert facts is not None
                for side, is_client in ((0, packets[0].from_client), (1, not packets[0].from_client)):
                    found[number, is_client] = getattr(facts.sides[side], fact)
        assert +found == expected
        assert sum(expected.values()) > 40


@pytest.mark.long
@pytest.mark.slow
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


def test_a_window_whose_scale_was_not_seen_is_not_known_to_be_full() -> None:
    said = Packet(False, 5001, b"", ACK, ack=1001, window=100)
    for handshake, full in ((PACKETS[:2], 1), ([], 0), (PACKETS[:1], 0)):
        found = facts([*handshake, said, Packet(True, 1001, b"a" * 100, ACK, ack=5001)])
        assert sum(side.full_windows for side in found.sides) == full
