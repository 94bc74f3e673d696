"""IP packets put into every link type and tunnel there is, byte by byte from the standards.

Nothing here is shared with the code under test. `test_link_table.py` has tshark read it all.
"""

import struct
from collections.abc import Callable, Mapping

Wrap = Callable[[bytes], bytes]
MACS = bytes.fromhex("00005e00530a 00005e00530b")
OUTER4 = bytes([172, 16, 0, 1, 172, 16, 0, 2])
OUTER6 = bytes.fromhex("20010db8") + bytes(11) + b"\x01" + bytes.fromhex("20010db8") + bytes(11) + b"\x02"


def ethertype(packet: bytes) -> bytes:
    """Of an IP packet."""
    return b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"


def ppp_number(packet: bytes) -> bytes:
    """PPP's number of an IP packet."""
    return b"\x00\x57" if packet[0] >> 4 == 6 else b"\x00\x21"


def long(size: int) -> int:
    """A length of 16 bits; 0 where it does not fit, as network cards are given it."""
    return size if size < 1 << 16 else 0


def ip4(kind: int, payload: bytes, *, number: int = 0, offset: int = 0, more: bool = False) -> bytes:
    """An IPv4 packet between the ends of the tunnel."""
    cut = offset // 8 | more << 13
    head = struct.pack(">BBHHHBBH", 0x45, 0, long(20 + len(payload)), number, cut, 64, kind, 0) + OUTER4
    total = sum(struct.unpack(">10H", head))
    return head[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + head[12:] + payload


def ip6(kind: int, payload: bytes, addresses: bytes = OUTER6) -> bytes:
    """An IPv6 packet between the ends of the tunnel."""
    return struct.pack(">IHBB", 6 << 28, long(len(payload)), kind, 64) + addresses + payload


def over_ipv6(packet: bytes) -> bytes:
    """An IPv4 packet's segment, sent over IPv6."""
    return ip6(6, packet[20:], bytes(12) + packet[12:16] + bytes(12) + packet[16:20])


def fragments(packet: bytes, number: int, size: int) -> list[bytes]:
    """An IP packet in fragments of `size` bytes, a multiple of 8."""
    six = packet[0] >> 4 == 6
    head, kind, body = (packet[:40], packet[6], packet[40:]) if six else (packet[:20], packet[9], packet[20:])
    out = []
    for at in range(0, len(body), size):
        part, more = body[at : at + size], at + size < len(body)
        if six:
            cut = struct.pack(">BBHI", kind, 0, at | more, number)
            out.append(head[:4] + struct.pack(">HBB", 8 + len(part), 44, 64) + head[8:] + cut + part)
        else:
            cut = struct.pack(">HHH", 20 + len(part), number & 0xFFFF, at // 8 | more << 13)
            out.append(head[:2] + cut + head[8:] + part)
    return out


def udp(port: int, payload: bytes) -> bytes:
    """A UDP datagram to a port."""
    return struct.pack(">HHHH", 50_123, port, long(8 + len(payload)), 0) + payload


def ethernet(packet: bytes) -> bytes:
    """A frame."""
    return MACS + ethertype(packet) + packet


def snap(packet: bytes) -> bytes:
    """LLC and SNAP."""
    return b"\xaa\xaa\x03\x00\x00\x00" + ethertype(packet) + packet


def ieee_802_3(packet: bytes) -> bytes:
    """A frame with its length where the EtherType stands; a longer one than there can be says what it can."""
    return MACS + struct.pack(">H", min(8 + len(packet), 1500)) + snap(packet)


def tagged(*tags: int) -> Wrap:
    """A frame with these EtherTypes of tags, outermost first."""
    return lambda packet: MACS + b"".join(struct.pack(">HH", tag, 7) for tag in tags) + ethertype(packet) + packet


def mpls(labels: int, head: bytes = b"", number: int = 0x8847) -> Wrap:
    """A frame with so many labels."""

    def wrap(packet: bytes) -> bytes:
        stack = b"".join(struct.pack(">I", (100 + n) << 12 | (n == labels - 1) << 8 | 64) for n in range(labels))
        return MACS + struct.pack(">H", number) + stack + head + packet

    return wrap


def pseudowire(control: bytes) -> Wrap:
    """A frame in a frame, behind labels and a control word or none."""
    return lambda packet: mpls(2, head=control)(ethernet(packet))


def pppoe(packet: bytes) -> bytes:
    """A session's packet from PPPoE's header on."""
    return b"\x11\x00\x00\x07" + struct.pack(">H", 2 + len(packet)) + ppp_number(packet) + packet


def ieee_802_11(*, control: int, extra: bytes = b"", four: bool = False) -> Wrap:
    """A data frame; `control` as it goes over the air, `extra` behind the addresses."""
    head = struct.pack(">H", control) + bytes(2) + (MACS + MACS)[:18] + b"\x10\x00" + MACS[:6] * four
    return lambda packet: head + extra + snap(packet)


def behind(head: bytes) -> Callable[[Wrap], Wrap]:
    """Puts bytes before what another wrapper makes."""
    return lambda wrap: lambda packet: head + wrap(packet)


def nflog(packet: bytes) -> bytes:
    """Attributes as Linux writes them: packet header, prefix, then the packet."""
    attributes = [(1, b"\x08\x00\x03\x00"), (10, b"log\0"), (5, struct.pack(">I", 2)), (9, packet)]
    body = b"".join(struct.pack("<HH", 4 + len(v), kind) + v + bytes(-len(v) % 4) for kind, v in attributes)
    return b"\x02\x00\x00\x00" + body


def pktap(packet: bytes) -> bytes:
    """Apple's header of 108 bytes, then an Ethernet frame."""
    head = struct.pack("<III", 108, 1, 1) + b"en0".ljust(24, b"\0")
    return head.ljust(108, b"\0") + ethernet(packet)


def prism(packet: bytes) -> bytes:
    """144 bytes, then an 802.11 frame."""
    return struct.pack("<II", 0x44, 144) + b"wlan0".ljust(136, b"\0") + ieee_802_11(control=0x0801)(packet)


FRAMES: Mapping[str, Wrap] = {
    "ethernet": ethernet,
    "padding": lambda packet: ethernet(packet) + bytes(9),
    "vlan": tagged(0x8100),
    "qinq": tagged(0x88A8, 0x8100),
    "five tags": tagged(0x88A8, 0x9100, 0x8100, 0x8100, 0x8100),
    "mpls": mpls(1),
    "mpls, five labels": mpls(5),
    "mpls, multicast": mpls(1, number=0x8848),
    "mpls pseudowire": pseudowire(b""),
    "mpls pseudowire, control word": pseudowire(b"\x00\x00\x00\x07"),
    "mpls pseudowire, control word, mpls": lambda packet: mpls(2, head=b"\x00\x00\x00\x07")(mpls(1)(packet)),
    "vlan, mpls": lambda packet: MACS + b"\x81\x00\x00\x07" + mpls(2)(packet)[12:],
    "pppoe": lambda packet: MACS + b"\x88\x64" + pppoe(packet),
    "pppoe in vlan": lambda packet: MACS + b"\x81\x00\x00\x07\x88\x64" + pppoe(packet) + bytes(3),
    "802.3": ieee_802_3,
    "802.3 in vlan": lambda packet: MACS + b"\x81\x00\x00\x07" + ieee_802_3(packet)[12:],
}
"""Ethernet frames around an IP packet."""

AIR: Mapping[str, Wrap] = {
    "from a station": ieee_802_11(control=0x0801),
    "to a station": ieee_802_11(control=0x0802),
    "four addresses": ieee_802_11(control=0x0803, four=True),
    "quality of service": ieee_802_11(control=0x8801, extra=b"\x00\x00"),
    "quality, four addresses": ieee_802_11(control=0x8803, extra=b"\x05\x00", four=True),
    "quality, high throughput": ieee_802_11(control=0x8881, extra=bytes(6)),
}
"""802.11 frames around an IP packet."""
RADIOTAP = b"\x00\x00\x0e\x00" + struct.pack("<I", 0x2E) + b"\x00\x6c\x6c\x09\x80\x04"
AVS = struct.pack(">II", 0x80211001, 64).ljust(64, b"\0")

LINKS: Mapping[str, tuple[int, Wrap]] = {
    **{name: (1, wrap) for name, wrap in FRAMES.items()},
    **{f"802.11, {name}": (105, wrap) for name, wrap in AIR.items()},
    **{f"radiotap, {name}": (127, behind(RADIOTAP)(wrap)) for name, wrap in AIR.items()},
    "prism": (119, prism),
    "avs as prism": (119, behind(AVS)(AIR["quality of service"])),
    "avs": (163, behind(AVS)(AIR["quality of service"])),
    "null, little-endian": (0, lambda packet: b"\x02\x00\x00\x00" + packet),
    "null, big-endian": (0, lambda packet: b"\x00\x00\x00\x02" + packet),
    "loop": (108, lambda packet: b"\x00\x00\x00\x02" + packet),
    "ppp": (9, lambda packet: ppp_number(packet) + packet),
    "ppp, framed": (9, lambda packet: b"\xff\x03" + ppp_number(packet) + packet),
    "ppp, short number": (9, lambda packet: b"\xff\x03" + ppp_number(packet)[1:] + packet),
    "ppp hdlc": (50, lambda packet: b"\xff\x03" + ppp_number(packet) + packet),
    "cisco as ppp hdlc": (50, lambda packet: b"\x0f\x00" + ethertype(packet) + packet),
    "cisco hdlc": (104, lambda packet: b"\x8f\x00" + ethertype(packet) + packet),
    "ppp ether": (51, pppoe),
    "raw": (101, bytes),
    "raw 12": (12, bytes),
    "raw 14": (14, bytes),
    "ipv4": (228, bytes),
    "sll": (113, lambda packet: b"\0\0\0\1\0\6" + MACS[:8] + ethertype(packet) + packet),
    "sll, vlan": (113, lambda packet: b"\0\0\0\1\0\6" + MACS[:8] + tagged(0x8100)(packet)[12:]),
    "sll2": (276, lambda packet: ethertype(packet) + b"\0\0\0\0\0\2\0\1\0\6" + MACS[:8] + packet),
    "nflog": (239, nflog),
    "pktap": (258, pktap),
    "pktap of older macos": (149, pktap),
}
"""Link types around an IP packet."""


def gre(number: int, inside: bytes, *, flags: int = 0, fields: bytes = b"") -> bytes:
    """GRE in IPv4."""
    return ip4(47, struct.pack(">HH", flags, number) + fields + inside)


def geneve(number: int, inside: bytes, options: bytes = b"") -> bytes:
    """GENEVE in UDP."""
    return udp(6081, struct.pack(">BBHI", len(options) // 4, 0, number, 42 << 8) + options + inside)


def gtp(inside: bytes, flags: int = 0x30, extra: bytes = b"") -> bytes:
    """A T-PDU of GTP-U."""
    return udp(2152, struct.pack(">BBHI", flags, 255, len(extra) + len(inside), 7) + extra + inside)


VXLAN = b"\x08\x00\x00\x00\x00\x00\x2a\x00"
GENEVE_OPTION = b"\x01\x02\x80\x01" + bytes(4)
ERSPAN_2 = b"\x10\x64\x00\x0a\x00\x00\x00\x05"
ERSPAN_3 = b"\x20\x64\x00\x0a" + bytes(6)
GTP_EXTENSION = b"\x00\x00\x00\x85\x01\x00\x09\x00"


def number_of(packet: bytes) -> int:
    """EtherType as a number."""
    return int.from_bytes(ethertype(packet), "big")


def in_ip(packet: bytes) -> int:
    """IP protocol of an IP packet."""
    return 41 if packet[0] >> 4 == 6 else 4


TUNNELS: Mapping[str, Wrap] = {
    "vxlan": lambda packet: ip4(17, udp(4789, VXLAN + ethernet(packet))),
    "vxlan of linux": lambda packet: ip4(17, udp(8472, VXLAN + ethernet(packet))),
    "vxlan over ipv6": lambda packet: ip6(17, udp(4789, VXLAN + ethernet(packet))),
    "vxlan, vlan": lambda packet: ip4(17, udp(4789, VXLAN + FRAMES["vlan"](packet))),
    "geneve": lambda packet: ip4(17, geneve(0x6558, ethernet(packet))),
    "geneve of ip": lambda packet: ip4(17, geneve(number_of(packet), packet)),
    "geneve, options": lambda packet: ip4(17, geneve(0x6558, ethernet(packet), GENEVE_OPTION * 3)),
    "gre": lambda packet: gre(number_of(packet), packet),
    "gre, key": lambda packet: gre(number_of(packet), packet, flags=0x2000, fields=bytes(4)),
    "gre, all fields": lambda packet: gre(number_of(packet), packet, flags=0xB000, fields=bytes(12)),
    "gre of ethernet": lambda packet: gre(0x6558, ethernet(packet), flags=0x2000, fields=bytes(4)),
    "gre of mpls": lambda packet: gre(0x8847, mpls(2)(packet)[14:]),
    "gre over ipv6": lambda packet: ip6(47, struct.pack(">HH", 0, number_of(packet)) + packet),
    "pptp": lambda packet: gre(
        0x880B, b"\xff\x03" + ppp_number(packet) + packet, flags=0x3081,
        fields=struct.pack(">HHII", len(packet) + 4, 7, 1, 1),
    ),
    "pptp, no acknowledgement": lambda packet: gre(
        0x880B, b"\xff\x03" + ppp_number(packet) + packet, flags=0x3001,
        fields=struct.pack(">HHI", len(packet) + 4, 7, 1),
    ),
    "erspan 1": lambda packet: gre(0x88BE, ethernet(packet)),
    "erspan 2": lambda packet: gre(0x88BE, ERSPAN_2 + ethernet(packet), flags=0x1000, fields=bytes(4)),
    "erspan 3": lambda packet: gre(0x22EB, ERSPAN_3 + b"\0\0" + ethernet(packet), flags=0x1000, fields=bytes(4)),
    "erspan 3, long": lambda packet: gre(
        0x22EB, ERSPAN_3 + b"\0\1" + bytes(8) + ethernet(packet), flags=0x1000, fields=bytes(4)
    ),
    "ip in ipv4": lambda packet: ip4(in_ip(packet), packet),
    "ip in ipv6": lambda packet: ip6(in_ip(packet), packet),
    "ip in ipv6, options": lambda packet: ip6(60, bytes([in_ip(packet), 0, 1, 4, 0, 0, 0, 0]) + packet),
    "authentication": lambda packet: ip4(51, bytes([in_ip(packet), 4, 0, 0]) + bytes(20) + packet),
    "authentication over ipv6": lambda packet: ip6(51, bytes([in_ip(packet), 4, 0, 0]) + bytes(20) + packet),
    "gtp-u": lambda packet: ip4(17, gtp(packet)),
    "gtp-u, sequence": lambda packet: ip4(17, gtp(packet, 0x32, bytes(4))),
    "gtp-u, extension": lambda packet: ip4(17, gtp(packet, 0x34, GTP_EXTENSION)),
}  # fmt: skip
"""IP packets around an IP packet."""
