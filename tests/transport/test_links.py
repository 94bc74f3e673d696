"""Packets that are left out are counted, by reason."""

from pathlib import Path

import dpkt

from dissector.capture_session import Capture
from tests.traffic import conversation, ethernet, exchanges, pcap

PACKETS = conversation(exchanges(4))


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
        assert sum(capture.pipeline.ignored.values()) == 5
        assert capture.pipeline.ignored["IP fragment without the others"] == 1
        assert "2 packets skipped: IP fragment without the others 1, truncated" in capture.problems[0].message


def test_an_unknown_link_type_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "usb.pcap"
    path.write_bytes(pcap([b"1234"] * 3, link_type=220))
    with Capture([str(path)]) as capture:
        assert not list(capture.exchanges())
        assert capture.pipeline.ignored == {"link type 220": 3}


def test_a_segment_that_the_card_was_to_split_is_as_long_as_its_packet(tmp_path: Path) -> None:
    packets = []
    for packet in PACKETS:
        raw = bytearray(ethernet(packet))
        raw[16:18] = b"\x00\x00"
        packets.append(bytes(raw))
    path = tmp_path / "offload.pcap"
    path.write_bytes(pcap(packets))
    with Capture([str(path)]) as capture:
        assert len(list(capture.exchanges())) == 4
