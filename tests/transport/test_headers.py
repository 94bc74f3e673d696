"""Header columns: what is payload and what is not, and that no packet reads its neighbour's bytes."""

import struct

import pytest

from dissector.core.batches import RunKind
from dissector.transport.headers import NOT_IP
from tests.cases import cases
from tests.traffic import Packet, Turn, bytes_without_mark, conversation, ethernet
from tests.transport.reading import read
from tests.transport.wrapping import FRAMES as FRAMES_AROUND

DATA = bytes_without_mark(40)
PACKETS = conversation([Turn(True, DATA)], segment=10)
FRAMES = [ethernet(packet) for packet in PACKETS]


def test_padding_of_short_frames_is_no_payload() -> None:
    assert read([frame + b"\xee" * 20 for frame in FRAMES]).streams == {0: DATA}


def test_ip_and_tcp_options_are_no_payload() -> None:
    def with_options(packet: Packet) -> bytes:
        raw = packet.ip()
        head, segment = bytearray(raw[:20]), bytearray(raw[20:40])
        head[0] = 0x47
        head[2:4] = struct.pack(">H", len(raw) + 8 + 12)
        segment[12] = 0x80
        return bytes(head) + b"\x01" * 8 + bytes(segment) + b"\x01" * 12 + packet.payload

    assert read([with_options(packet) for packet in PACKETS], link_type=101).streams == {0: DATA}


@pytest.mark.parametrize("link_type", [113, 276])
def test_tags_behind_a_cooked_header_are_skipped(link_type: int) -> None:
    head = bytes(14) + b"\x81\x00" if link_type == 113 else b"\x81\x00" + bytes(18)
    frames = [head + b"\x00\x07\x08\x00" + packet.ip() for packet in PACKETS]
    assert read(frames, link_type=link_type).streams == {0: DATA}


@pytest.mark.long
@cases("size", range(54))
def test_a_packet_cut_in_its_headers_reads_nothing_of_the_next_one(size: int) -> None:
    alone = read([*FRAMES[:2], FRAMES[2][:size]])
    reading = read([*FRAMES[:2], FRAMES[2][:size], *FRAMES[3:]])
    assert not alone.streams
    assert reading.streams == {0: b"?" * 10 + DATA[10:]}
    assert sum(reading.transport.ignored.values()) == 1
    if size > 14:
        part = "IP" if size < 34 else "TCP"
        assert reading.transport.ignored == {f"truncated {part} header": 1}


def test_packets_with_as_many_headers_of_other_kinds_are_read_in_the_order_of_the_capture() -> None:
    wraps = [FRAMES_AROUND[name] for name in ("802.3", "vlan")]
    reading = read([wraps[number % 2](packet.ip()) for number, packet in enumerate(PACKETS)])
    assert reading.streams == {0: DATA}
    assert [run.packet for run in reading.runs] == [2, 3, 4, 5]


@cases(
    ("head", "is_known"),
    [
        (b"\xaa\xaa\x03\0\0\0", True),
        (b"\xaa\xaa\x03\0\0\xf8", True),
        (b"\xaa\xaa\x03\0\0\1", False),
        (b"\xaa\xab\x03\0\0\0", False),
    ],
)
def test_an_ethertype_is_behind_some_heads_of_llc_only(head: bytes, is_known: bool) -> None:
    packets = [packet.ip() for packet in PACKETS]
    reading = read([bytes(12) + struct.pack(">H", 8 + len(each)) + head + b"\x08\0" + each for each in packets])
    assert (reading.streams, reading.transport.ignored) == (
        ({0: DATA}, {}) if is_known else ({}, {NOT_IP: len(PACKETS)})
    )


@cases("size", range(54, 64))
def test_payload_that_was_cut_is_known_by_its_size(size: int) -> None:
    reading = read(FRAMES, snaplen=size)
    assert len(reading.streams[0]) == len(DATA)
    kept = sum(run.size for run in reading.runs if run.kind == RunKind.DATA)
    assert kept == 4 * (size - 54)


def test_a_header_longer_than_its_packet_is_counted() -> None:
    longer, shorter = bytearray(FRAMES[2]), bytearray(FRAMES[2])
    longer[14 + 20 + 12] = 0xF0
    shorter[14] = 0x44
    ignored = read([bytes(longer), bytes(shorter)]).transport.ignored
    assert ignored == {"truncated TCP header": 1, "damaged IP header": 1}
