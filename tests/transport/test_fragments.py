"""Fragments and IPv6 extension headers: read one by one, counted where they can't be, bounded in what they hold."""

import random
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.limits import DEFAULT
from dissector.transport.fragments import DatagramKey, Fragments, _in_capture_order
from dissector.transport.headers import NOT_TCP
from dissector.transport.registry import LINK_TYPES
from tests.cases import cases
from tests.traffic import Packet, Turn, bytes_without_mark, conversation, seeds
from tests.transport.reading import read
from tests.transport.tcp_packets import layer_of
from tests.transport.tcp_packets import packet as tcp_packet
from tests.transport.wrapping import GTP_EXTENSION, gtp, ip4

DATA = bytes_without_mark(600)
PACKETS = conversation([Turn(True, DATA)], segment=200)
INCOMPLETE = "IP fragment without the others"
ADDRESSES = bytes(15) + b"\x01" + bytes(15) + b"\x02"
ONE = DatagramKey(b"a", b"b", 1, 4)


def fragments4(packet: Packet, number: int, size: int) -> list[bytes]:
    """An IPv4 packet in fragments of `size` bytes."""
    whole = packet.ip()
    head, body = whole[:20], whole[20:]
    out = []
    for at in range(0, len(body), size):
        part = body[at : at + size]
        offset = at // 8 | (0x2000 if at + size < len(body) else 0)
        out.append(head[:2] + struct.pack(">HHH", 20 + len(part), number, offset) + head[8:] + part)
    return out


def ip6(kind: int, payload: bytes) -> bytes:
    return struct.pack(">IHBB", 6 << 28, len(payload), kind, 64) + ADDRESSES + payload


def tcp(packet: Packet) -> bytes:
    return packet.ip()[20:]


def fragments6(packet: Packet, number: int, size: int) -> list[bytes]:
    body = tcp(packet)
    return [
        ip6(44, struct.pack(">BBHI", 6, 0, at | (at + size < len(body)), number) + body[at : at + size])
        for at in range(0, len(body), size)
    ]


@given(chance=seeds, size=st.integers(1, 30).map(lambda n: n * 8), cuts=st.lists(st.integers(0, 99), max_size=9))
@pytest.mark.parametrize("fragments", [fragments4, fragments6])
def test_fragments_in_any_order_and_twice_are_whole(
    fragments: "type[fragments4]", chance: random.Random, size: int, cuts: list[int]
) -> None:
    raw: list[bytes] = []
    for number, packet in enumerate(PACKETS):
        parts = fragments(packet, number, size)
        parts = [*parts, *chance.sample(parts, len(parts) // 3)]
        chance.shuffle(parts)
        raw += parts
    raw += fragments(PACKETS[-1], 99, 600)
    reading = read(raw, link_type=101, cuts=cuts)
    [data] = reading.streams.values()
    assert data == DATA


@pytest.mark.parametrize("size", [8, 256, 512])
def test_a_last_fragment_is_told_from_a_whole_packet_by_each_bit_of_its_offset(size: int) -> None:
    packet = conversation([Turn(True, DATA[: size + 100])])[-1]
    assert len(fragments6(packet, 7, size)) > 1
    assert read(fragments6(packet, 7, size), link_type=101).streams == {0: DATA[: size + 100]}
    assert read(fragments6(packet, 1 << 24, 1024), link_type=101).streams == {0: DATA[: size + 100]}


def test_fragments_that_never_come_are_counted() -> None:
    raw = [part for n, packet in enumerate(PACKETS) for part in fragments4(packet, n, 80)]
    reading = read([*raw[:4], *raw[5:]], link_type=101)
    assert reading.streams == {0: b"?" * 200 + DATA[200:]}
    assert reading.transport.ignored == {INCOMPLETE: 2}


def test_of_two_fragments_that_overlap_the_first_one_wins() -> None:
    store = Fragments(1 << 20)
    assert store.feed(ONE, 8, False, b"bbbbbbbb") is None
    assert store.feed(ONE, 0, True, b"aaaaaaaaXXXXXXXX") == b"aaaaaaaabbbbbbbb"


@cases(("offset", "more", "data"), [(65_528, False, bytes(16)), (65_536, True, bytes(8)), (8, True, b"")])
def test_fragments_that_cannot_be_are_counted(offset: int, more: bool, data: bytes) -> None:
    store = Fragments(1 << 20)
    assert store.feed(ONE, offset, more, data) is None
    assert store.given_up == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 300), st.booleans(), st.integers(0, 80)), max_size=60))
def test_every_fragment_is_used_or_counted_and_what_is_held_is_bounded(
    parts: list[tuple[int, int, bool, int]],
) -> None:
    store = Fragments(2_000)
    used = 0
    for number, offset, more, size in parts:
        before = store.given_up
        used += store.feed(ONE._replace(identification=number), offset * 8, more, bytes(size)) is not None
        assert store.given_up >= before
    store.flush()
    assert store.given_up <= len(parts) - used


def test_what_is_held_of_fragments_is_bounded_the_oldest_goes() -> None:
    store = Fragments(1_000)
    for number in range(10):
        assert store.feed(ONE._replace(identification=number), 8, False, bytes(100)) is None
    assert store.given_up == 7
    assert store.feed(ONE._replace(identification=9), 0, True, bytes(8)) == bytes(108)
    assert store.feed(ONE._replace(identification=0), 0, True, bytes(8)) is None


def test_fragments_given_up_are_counted() -> None:
    first = [fragments4(packet, n, 80)[0] for n, packet in enumerate(PACKETS)]
    reading = read(first, link_type=101, limits=replace(DEFAULT, fragment_bytes=300))
    assert reading.transport.ignored[INCOMPLETE] == 3


EXTENSIONS = {
    "hop-by-hop": (0, b"\x06\x00" + bytes(6)),
    "routing, long": (43, b"\x06\x01" + bytes(14)),
    "authentication": (51, b"\x06\x04" + bytes(22)),
    "options, then options": (60, b"\x3c\x00" + bytes(6) + b"\x06\x00" + bytes(6)),
    "atomic fragment": (44, b"\x06\x00" + bytes(6)),
}


@cases("name", EXTENSIONS)
def test_extension_headers_are_skipped(name: str) -> None:
    kind, header = EXTENSIONS[name]
    reading = read([ip6(kind, header + tcp(packet)) for packet in PACKETS], link_type=101)
    [data] = reading.streams.values()
    assert data == DATA
    assert not reading.transport.ignored


def test_extension_headers_that_lead_nowhere_are_counted() -> None:
    udp = ip6(0, b"\x11\x00" + bytes(6) + bytes(8))
    short = ip6(0, b"\x06\xff" + bytes(6))
    endless = ip6(60, (b"\x3c\x00" + bytes(6)) * 60)
    ignored = read([udp, short, endless], link_type=101).transport.ignored
    assert sum(ignored.values()) == 3
    assert ignored["not TCP"] == 1
    assert ignored["too many headers"] == 1


def test_a_fragment_cut_by_the_snap_length_is_counted() -> None:
    raw = [part for n, packet in enumerate(PACKETS) for part in fragments4(packet, n, 160)]
    assert read(raw, link_type=101, snaplen=100).transport.ignored["cut off IP fragment"] == 3


@given(
    link_type=st.sampled_from([*LINK_TYPES, 77]),
    version=st.sampled_from([4, 6]),
    packets=st.lists(st.binary(max_size=90), max_size=8),
    protocol=st.sampled_from([6, 0, 43, 44, 51, 60, 17]),
)
def test_no_bytes_bring_it_down_and_every_packet_is_accounted_for(
    link_type: int, version: int, packets: list[bytes], protocol: int
) -> None:
    raw = []
    for packet in packets:
        changed = bytearray(packet)
        for at, byte in ((0, version << 4 | 5), (9 if version == 4 else 6, protocol)):
            if at < len(changed):
                changed[at] = byte
        prefix = {1: bytes(12) + b"\x08\x00", 0: bytes(4), 108: bytes(4), 113: bytes(14) + b"\x08\x00"}
        raw.append(prefix.get(link_type, b"") + bytes(changed))
    reading = read(raw, link_type=link_type)
    assert sum(reading.transport.ignored.values()) <= len(packets)
    if not len(reading.transport.connections):
        assert sum(reading.transport.ignored.values()) == len(packets)


def test_packets_of_several_layers_are_read_in_the_order_of_the_capture() -> None:
    packets = [tcp_packet(((b"\1" * 16, 1), (b"\2" * 16, 2)))] * 5
    layer = layer_of(packets)
    some, others = layer.split(np.array([False, True, True, False, True]))
    assert [row[:2] for row in _in_capture_order([some, others])] == [[1, 0], [0, 1], [0, 2], [1, 3], [0, 4]]


def test_a_header_of_gtp_that_has_no_length_is_not_followed() -> None:
    [inside] = [packet.ip() for packet in conversation([Turn(True, b"data")])[2:]]
    for extension, ignored in ((GTP_EXTENSION, {}), (GTP_EXTENSION[:4] + b"\0" + GTP_EXTENSION[5:], {NOT_TCP: 1})):
        assert read([ip4(17, gtp(inside, 0x34, extension))], link_type=101).transport.ignored == ignored
