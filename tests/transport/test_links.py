"""Every link type gives the same exchanges, over IPv4 and IPv6."""

import struct
from pathlib import Path

import dpkt
import pytest

from dissector.capture_file import Capture
from tests.traffic import conversation, ethernet, exchanges, pcap

PACKETS = conversation(exchanges(4))


def ip6(packet: bytes) -> bytes:
    """An IPv4 packet's segment, sent over IPv6."""
    old = dpkt.ip.IP(packet)
    segment = bytes(old.data)
    return struct.pack(">IHBB", 6 << 28, len(segment), 6, 64) + bytes(12) + old.src + bytes(12) + old.dst + segment


LINKS = {
    "ethernet": (1, [ethernet(p) for p in PACKETS]),
    "ethernet, padded": (1, [ethernet(p) + bytes(9) for p in PACKETS]),
    "vlan": (1, [ethernet(p, vlan=True) for p in PACKETS]),
    "qinq": (1, [bytes(12) + b"\x88\xa8\x00\x01\x81\x00\x00\x02\x08\x00" + p.ip() for p in PACKETS]),
    "sll": (113, [bytes(14) + b"\x08\x00" + p.ip() for p in PACKETS]),
    "sll2": (276, [b"\x08\x00" + bytes(18) + p.ip() for p in PACKETS]),
    "null, little-endian": (0, [b"\x02\x00\x00\x00" + p.ip() for p in PACKETS]),
    "loop": (108, [b"\x00\x00\x00\x02" + p.ip() for p in PACKETS]),
    "raw": (101, [p.ip() for p in PACKETS]),
    "ipv4": (228, [p.ip() for p in PACKETS]),
    "ipv6, raw": (229, [ip6(p.ip()) for p in PACKETS]),
    "ipv6, ethernet": (1, [bytes(12) + b"\x86\xdd" + ip6(p.ip()) for p in PACKETS]),
}


@pytest.mark.parametrize("name", LINKS)
def test_every_link_type_gives_the_same_exchanges(tmp_path: Path, name: str) -> None:
    link_type, packets = LINKS[name]
    path = tmp_path / "link.pcap"
    path.write_bytes(pcap(packets, link_type=link_type))
    with Capture([str(path)]) as capture:
        rows = [e.row for e in capture.exchanges()]
        assert [(r.api, r.correlation_id, r.response_size) for r in rows] == [("Metadata", n, 16) for n in range(4)]
        assert not capture.ignored


def test_what_is_not_tcp_is_counted_not_lost(tmp_path: Path) -> None:
    udp = bytes(dpkt.ip.IP(src=bytes(4), dst=bytes(4), p=17, data=b"12345678"))
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    fragment = bytearray(ethernet(PACKETS[2]))
    fragment[20] |= 0x20
    short = ethernet(PACKETS[2])[:40]
    path = tmp_path / "mixed.pcap"
    path.write_bytes(pcap([bytes(12) + b"\x08\x00" + udp, arp, bytes(fragment), short, b""]))
    with Capture([str(path)]) as capture:
        assert not list(capture.exchanges())
        assert sum(capture.ignored.values()) == 5
        assert capture.ignored["IP fragment without the others"] == 1
        assert (
            "2 packets were not looked into: IP fragment without the others 1, cut off" in capture.problems[0].message
        )


def test_an_unknown_link_type_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "usb.pcap"
    path.write_bytes(pcap([b"1234"] * 3, link_type=220))
    with Capture([str(path)]) as capture:
        assert not list(capture.exchanges())
        assert capture.ignored == {"link type 220": 3}


def test_the_length_of_a_segment_left_to_the_card_is_that_of_the_packet(tmp_path: Path) -> None:
    packets = []
    for packet in PACKETS:
        raw = bytearray(ethernet(packet))
        raw[16:18] = b"\x00\x00"
        packets.append(bytes(raw))
    path = tmp_path / "offload.pcap"
    path.write_bytes(pcap(packets))
    with Capture([str(path)]) as capture:
        assert len(list(capture.exchanges())) == 4
