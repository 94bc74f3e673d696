"""scapy puts segments into random stacks of links, tunnels and fragments; we find their bytes.

scapy's layers are written by other people from other documents than ours: an oracle beside tshark and dpkt. What it
reads of a capture by itself is not asked here, only what it builds.
"""

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scapy", reason="NOT TESTED with scapy's packets: it is not installed")

from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS
from scapy.layers.dot11 import Dot11, Dot11FCS, Dot11QoS, RadioTap
from scapy.layers.inet import IP, TCP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, fragment6
from scapy.layers.l2 import GRE, LLC, SNAP, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback
from scapy.layers.ppp import PPP
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Padding, Raw

from tests.transport.reading import read

pytestmark = pytest.mark.slow

Stack = Callable[[Any], Packet]
"""Puts an IP packet into something."""
ETHERNET, RAW_IP, LINUX_SLL, RADIOTAP, IEEE802_11, SLL2, NULL, PPP_LINK = 1, 101, 113, 127, 105, 276, 0, 9
"""LINKTYPE_ numbers."""


def ethertype(packet: Packet) -> int:
    return 0x86DD if isinstance(packet, IPv6) else 0x0800


def ether(**values: Any) -> Packet:
    """Ethernet with addresses, for which scapy asks the network otherwise."""
    return Ether(src="00:00:5e:00:53:0a", dst="00:00:5e:00:53:0b", **values)


def wireless(packet: Packet) -> Packet:
    return LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(OUI=0, code=ethertype(packet)) / packet


LINKS: Final[dict[str, tuple[int, Stack]]] = {
    "ethernet": (ETHERNET, lambda packet: ether() / packet),
    "802.1Q": (ETHERNET, lambda packet: ether() / Dot1Q(vlan=7) / packet),
    "QinQ": (ETHERNET, lambda packet: ether(type=0x88A8) / Dot1AD(vlan=3) / Dot1Q(vlan=7) / packet),
    "three tags": (ETHERNET, lambda packet: ether() / Dot1Q(vlan=1) / Dot1Q(vlan=2) / Dot1Q(vlan=3) / packet),
    "MPLS": (ETHERNET, lambda packet: ether(type=0x8847) / MPLS(label=16, s=0) / MPLS(label=17, s=1) / packet),
    "padded": (ETHERNET, lambda packet: ether() / packet / Padding(b"\x55" * 9)),
    "raw IP": (RAW_IP, lambda packet: packet),
    "cooked": (LINUX_SLL, lambda packet: CookedLinux(proto=ethertype(packet)) / packet),
    "cooked 2": (SLL2, lambda packet: CookedLinuxV2(proto=ethertype(packet)) / packet),
    "loopback": (NULL, lambda packet: Loopback(type=30 if isinstance(packet, IPv6) else 2) / packet),
    "802.11": (IEEE802_11, lambda packet: Dot11(type=2, subtype=0, FCfield=1) / wireless(packet)),
    "802.11 QoS": (IEEE802_11, lambda packet: Dot11(type=2, subtype=8, FCfield=2) / Dot11QoS() / wireless(packet)),
    "radiotap": (RADIOTAP, lambda packet: RadioTap() / Dot11(type=2, subtype=0) / wireless(packet)),
    "radiotap with FCS": (
        RADIOTAP,
        lambda packet: RadioTap(present="Flags", Flags="FCS") / Dot11FCS(type=2, subtype=0) / wireless(packet),
    ),
    "PPP": (PPP_LINK, lambda packet: PPP(proto=0x57 if isinstance(packet, IPv6) else 0x21) / packet),
}  # fmt: skip

OUTER: Final[list[Callable[[], Packet]]] = [
    lambda: IP(src="172.16.0.1", dst="172.16.0.2"),
    lambda: IP(src="172.16.0.1", dst="172.16.0.2", options=b"\x01\x01\x01\x00"),
    lambda: IPv6(src="2001:db8::1", dst="2001:db8::2"),
    lambda: IPv6(src="2001:db8::1", dst="2001:db8::2") / IPv6ExtHdrDestOpt(),
]
TUNNELS: Final[dict[str, Callable[[Packet, Any], Packet]]] = {
    "IP in IP": lambda outer, packet: outer / packet,
    "GRE": lambda outer, packet: outer / GRE(proto=ethertype(packet)) / packet,
    "GRE with key and number": lambda outer, packet: (
        outer / GRE(proto=ethertype(packet), key_present=1, key=7, seqnum_present=1, sequence_number=9) / packet
    ),
    "GRE with checksum": lambda outer, packet: outer / GRE(proto=ethertype(packet), chksum_present=1) / packet,
    "GRE of Ethernet": lambda outer, packet: outer / GRE(proto=0x6558) / ether() / packet,
    "VXLAN": lambda outer, packet: outer / UDP(sport=50_001, dport=4789) / VXLAN(vni=42) / ether() / packet,
    "VXLAN of a VLAN": lambda outer, packet: (
        outer / UDP(sport=50_001, dport=4789) / VXLAN(vni=42) / ether() / Dot1Q(vlan=7) / packet
    ),
    "GENEVE": lambda outer, packet: (
        outer / UDP(sport=50_001, dport=6081) / GENEVE(vni=42, proto=0x6558) / ether() / packet
    ),
}
OPTIONS: Final = [
    [], [("NOP", None), ("NOP", None), ("Timestamp", (1, 2))], [("MSS", 1460), ("WScale", 7), ("SAckOK", b"")],
    [("NOP", None), ("NOP", None), ("SAck", (7, 9))], [(253, b"\x01\x02\x03\x04"), ("EOL", None)], [("NOP", None)] * 40,
]  # fmt: skip

payloads = st.lists(st.binary(min_size=1, max_size=400), min_size=1, max_size=4)
inner = st.sampled_from(["IPv4", "IPv4 with options", "IPv6", "IPv6 with extensions"])


def packets(kind: str, parts: list[bytes], options: list[Any], seq: int = 1_000) -> list[Any]:
    """Segments of one direction, each in an IP packet; the first follows a SYN."""
    head: Packet = {
        "IPv4": lambda: IP(src="10.0.0.1", dst="10.0.0.2"),
        "IPv4 with options": lambda: IP(src="10.0.0.1", dst="10.0.0.2", options=b"\x01" * 8),
        "IPv6": lambda: IPv6(src="fd00::1", dst="fd00::2"),
        "IPv6 with extensions": lambda: IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt(),
    }[kind]()
    made = [head / TCP(sport=50_000, dport=9092, seq=seq - 1, flags="S", options=options)]
    for part in parts:
        made.append(head / TCP(sport=50_000, dport=9092, seq=seq, ack=1, flags="PA", options=options) / Raw(part))
        seq += len(part)
    return made


def found(made: list[Packet], link_type: int) -> bytes:
    """The bytes that we find in the one connection of packets."""
    reading = read([bytes(each) for each in made], link_type=link_type)
    assert len(reading.streams) == 1
    return reading.streams[0]


@pytest.mark.parametrize("link", LINKS)
@given(data=payloads, kind=inner, options=st.sampled_from(OPTIONS), tunnels=st.lists(
    st.tuples(st.sampled_from(sorted(TUNNELS)), st.integers(0, len(OUTER) - 1)), max_size=2))  # fmt: skip
def test_any_stack_is_seen_through(
    link: str, data: list[bytes], kind: str, options: list[Any], tunnels: list[tuple[str, int]]
) -> None:
    link_type, wrap = LINKS[link]
    made = packets(kind, data, options)
    for tunnel, outer in tunnels:
        made = [TUNNELS[tunnel](OUTER[outer](), packet) for packet in made]
    assert found([wrap(packet) for packet in made], link_type) == b"".join(data)


@given(
    data=st.lists(st.binary(min_size=200, max_size=3_000), min_size=1, max_size=3),
    kind=st.sampled_from(["IPv4", "IPv6"]), size=st.integers(8, 120), draws=st.data(),
)  # fmt: skip
def test_fragments_in_any_order_are_put_together(data: list[bytes], kind: str, size: int, draws: Any) -> None:
    made: list[Packet] = []
    for number, packet in enumerate(packets(kind, data, [])):
        pieces = in_fragments(packet, number + 1, size * 8)
        made += draws.draw(st.permutations(pieces))
    assert found([ether() / piece for piece in made], ETHERNET) == b"".join(data)


@given(data=st.binary(min_size=400, max_size=2_000), size=st.integers(8, 40), draws=st.data())
def test_a_fragment_that_comes_twice_changes_nothing(data: bytes, size: int, draws: Any) -> None:
    pieces = in_fragments(packets("IPv4", [data], [])[1], 7, size * 8)
    again = draws.draw(st.sampled_from(pieces))
    at = draws.draw(st.integers(0, len(pieces)))
    made = [packets("IPv4", [], [])[0], *pieces[:at], again, *pieces[at:]]
    assert found([ether() / piece for piece in made], ETHERNET) == data


@given(data=st.binary(min_size=400, max_size=2_000), size=st.integers(8, 40), draws=st.data())
def test_fragments_that_overlap_agree_or_nothing_is_made_of_them(data: bytes, size: int, draws: Any) -> None:
    """A fragment over the border of two others, with the same bytes: the data are whole, or left out and told."""
    packet = packets("IPv4", [data], [])[1]
    pieces = in_fragments(packet, 7, size * 8)
    whole = bytes(packet)[20:]
    start = draws.draw(st.integers(0, len(whole) // 8 - 2)) * 8
    end = min(start + size * 8, len(whole))
    over = IP(src="10.0.0.1", dst="10.0.0.2", id=7, proto=6, frag=start // 8, flags="MF" if end < len(whole) else 0)
    at = draws.draw(st.integers(0, len(pieces)))
    made = [packets("IPv4", [], [])[0], *pieces[:at], over / Raw(whole[start:end]), *pieces[at:]]
    reading = read([bytes(ether() / piece) for piece in made])
    assert b"".join(run.data for run in reading.runs) in (data, b"")


def in_fragments(packet: Any, number: int, size: int) -> list[Any]:
    """An IP packet in fragments with so many bytes."""
    if isinstance(packet, IP):
        packet = packet.copy()
        packet.id = number
        return list(fragment(packet, size))
    below = IPv6(src=packet.src, dst=packet.dst) / IPv6ExtHdrFragment(id=number) / packet.payload
    return list(fragment6(below, size + 48))
