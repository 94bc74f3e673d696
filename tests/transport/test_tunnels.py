"""Tunnels and links below exchanges: what is cut, cut up, encrypted, damaged, or looks like a tunnel and is none."""

import random
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session.tally import CaptureTally
from dissector.core.batches import RunKind
from dissector.core.limits import DEFAULT
from dissector.core.store import Store
from dissector.transport import Transport
from dissector.transport.fragments import INCOMPLETE
from dissector.transport.header_parser import MOST_TUNNELS, NESTED, TOO_DEEP, HeaderParser
from dissector.transport.headers import ENCRYPTED, NOT_IP, NOT_TCP, HeaderProtocol, Layer, NextHeader
from tests.cases import cases
from tests.traffic import Turn, bytes_without_mark, conversation, seeds
from tests.transport.reading import batch, read
from tests.transport.wrapping import (
    ERSPAN_2,
    ERSPAN_3,
    FRAMES,
    LINKS,
    TUNNELS,
    Wrap,
    ethernet,
    fragments,
    gre,
    gtp,
    ieee_802_11,
    ip4,
    ip6,
    mpls,
    over_ipv6,
    udp,
)

DATA = bytes_without_mark(600)
PACKETS = [packet.ip() for packet in conversation([Turn(True, DATA)], segment=200)]
WAYS: dict[str, tuple[int, Wrap]] = {
    **LINKS,
    **{name: (1, lambda packet, wrap=wrap: ethernet(wrap(packet))) for name, wrap in TUNNELS.items()},
}
six = cases("name", [name for name in WAYS if name != "ipv4"])


@pytest.mark.long
@six
def test_ipv6_goes_through_every_link_type_and_tunnel(name: str) -> None:
    link_type, wrap = WAYS[name]
    reading = read([wrap(over_ipv6(packet)) for packet in PACKETS], link_type=link_type)
    assert reading.streams == {0: DATA}
    assert not reading.transport.ignored


@pytest.mark.long
@pytest.mark.slow
@cases("kept", [0, 1, 199])
@cases("name", WAYS)
def test_what_a_snap_length_cuts_off_is_known_by_its_size(name: str, kept: int) -> None:
    link_type, wrap = WAYS[name]
    frames = [wrap(packet) for packet in PACKETS]
    reading = read(frames, link_type=link_type, snaplen=frames[-1].rindex(PACKETS[-1][40:]) + kept)
    parts = [DATA[at : at + kept] + b"?" * (200 - kept) for at in range(0, 600, 200)]
    assert reading.streams == {0: b"".join(parts)}
    assert {run.kind for run in reading.runs if not run.data} == {RunKind.TRUNCATED}
    assert not reading.transport.ignored


@cases("sent_so", [False, True], ids=["cut off", "sent so"])
@cases("name", WAYS)
def test_a_packet_cut_in_its_headers_is_counted_and_reads_nothing_of_the_next_one(name: str, sent_so: bool) -> None:
    link_type, wrap = WAYS[name]
    frame = wrap(PACKETS[-1])
    cut = [frame[:size] for size in range(frame.rindex(PACKETS[-1][40:]))]
    reading = read_cut(cut, link_type, [len(each) if sent_so else len(frame) for each in cut])
    assert not len(reading.connections)
    assert sum(reading.ignored.values()) == len(cut)


@cases(("name", "begins"), [
    ("five tags", {"Ethernet": 0, "VLAN": 14, "IP": 34, "TCP": 54}),
    ("mpls, five labels", {"Ethernet": 0, "MPLS": 14, "IP": 34 + 18, "TCP": 54}),  # one byte is not enough to tell
    ("pppoe", {"Ethernet": 0, "PPPoE": 14, "PPP": 20, "IP": 22, "TCP": 42}),
    ("802.3", {"Ethernet": 0, "LLC": 14, "IP": 22, "TCP": 42}),
    ("802.11, quality of service", {"802.11": 0, "LLC": 26, "IP": 34, "TCP": 54}),
    ("radiotap, from a station", {"radiotap": 0, "802.11": 4, "LLC": 38, "IP": 46, "TCP": 66}),
    ("avs", {"802.11 monitor": 0, "802.11": 8, "LLC": 90, "IP": 98, "TCP": 118}),
    ("loop", {"loopback": 0, "IP": 4, "TCP": 24}),
    ("ppp hdlc", {"HDLC": 0, "PPP": 1, "IP": 4, "TCP": 24}),
    ("cisco hdlc", {"HDLC": 0, "IP": 4, "TCP": 24}),
    ("sll", {"cooked": 0, "IP": 16, "TCP": 36}),
    ("sll2", {"cooked": 0, "IP": 20, "TCP": 40}),
    ("nflog", {"NFLOG": 0, "IP": 32, "TCP": 52}),
    ("pktap", {"PKTAP": 0, "Ethernet": 12, "IP": 122, "TCP": 142}),
    ("gre", {"Ethernet": 0, "IP": 14, "GRE": 34, "IP ": 38, "TCP": 58}),
    ("geneve of ip", {"Ethernet": 0, "IP": 14, "UDP": 34, "GENEVE": 42, "IP ": 50, "TCP": 70}),
    ("gtp-u, extension", {"Ethernet": 0, "IP": 14, "UDP": 34, "GTP-U": 42, "IP ": 59, "TCP": 78}),
    ("authentication", {"Ethernet": 0, "IP": 14, "authentication": 34, "IP ": 46, "TCP": 78}),
    ("vxlan", {"Ethernet": 0, "IP": 14, "UDP": 34, "VXLAN": 42, "Ethernet ": 50, "IP ": 64, "TCP": 84}),
    ("erspan 2", {"Ethernet": 0, "IP": 14, "GRE": 34, "ERSPAN": 38, "Ethernet ": 50, "IP ": 64, "TCP": 84}),
    ("erspan 3", {"Ethernet": 0, "IP": 14, "GRE": 34, "ERSPAN": 38, "Ethernet ": 54, "IP ": 68, "TCP": 88}),
])  # fmt: skip
def test_a_packet_is_cut_in_the_header_of_which_a_part_is_there(name: str, begins: dict[str, int]) -> None:
    link_type, wrap = WAYS[name]
    frame, begun = wrap(PACKETS[-1]), list(begins.values())
    for size in {*begun, *(at - 1 for at in begun[1:])}:
        header = next(each for each in reversed(begins) if begins[each] <= size).strip()
        ignored = read_cut([frame[:size]], link_type, [len(frame)]).ignored
        assert ignored == {f"truncated {header} header": 1}


def read_cut(frames: list[bytes], link_type: int, lengths: list[int]) -> Transport:
    """Frames that had other lengths on the wire."""
    transport = Transport(Store(), DEFAULT)
    transport.feed(batch(frames, link_type=link_type, lengths=lengths))
    transport.flush()
    return transport


def test_what_a_switch_cuts_off_of_what_it_mirrors_is_known_by_its_size() -> None:
    """The outer headers have the size of the cut packet, the inner ones that of the whole one."""
    frames = [ethernet(gre(0x88BE, ERSPAN_2 + ethernet(p)[:104], flags=0x1000, fields=bytes(4))) for p in PACKETS]
    assert read(frames).streams == {0: b"".join(DATA[at : at + 50] + b"?" * 150 for at in range(0, 600, 200))}


@cases("wrap", [FRAMES[name] for name in ("ethernet", "vlan", "qinq", "mpls", "pppoe")])
def test_a_frame_behind_a_control_word_is_told_by_its_ethertype(wrap: Wrap) -> None:
    for packets in (PACKETS, [over_ipv6(packet) for packet in PACKETS]):
        assert read([mpls(2, head=b"\0\0\0\7")(wrap(packet)) for packet in packets]).streams == {0: DATA}


@cases("number", [0x281, 0x283])
def test_labels_may_be_in_ppp(number: int) -> None:
    frames = [b"\xff\x03" + number.to_bytes(2, "big") + mpls(1)(packet)[14:] for packet in PACKETS]
    assert read(frames, link_type=9).streams == {0: DATA}


def test_fragments_are_whole_in_as_many_tunnels_as_are_followed() -> None:
    parts = fragments(PACKETS[-1], 7, 120)
    for _ in range(MOST_TUNNELS - 1):
        parts = [ip6(4 if each[0] >> 4 == 4 else 41, each) for each in parts]
    assert read(parts, link_type=101).streams == {0: DATA[400:]}
    assert read([ip6(41, each) for each in parts], link_type=101).transport.ignored == {TOO_DEEP: 2}


def test_a_switch_may_mirror_ip_alone() -> None:
    packets = [gre(0x22EB, ERSPAN_3 + b"\x08\0" + p, flags=0x1000, fields=bytes(4)) for p in PACKETS]
    assert read(packets, link_type=101).streams == {0: DATA}


def test_only_datagrams_with_tcp_are_kept() -> None:
    store = Store()
    header_parser = HeaderParser(store, DEFAULT, Counter())
    other = [piece for n in range(9) for piece in fragments(ip4(17, udp(2049, bytes(999))), n, 504)]
    assert not header_parser.segments(batch(other, link_type=101))
    assert store.add(b"first") == 0
    [layer] = header_parser.segments(batch([*other, *fragments(PACKETS[-1], 99, 80)], link_type=101))
    assert bytes(store.read(layer.base + int(layer.at[0]) + 20, 200)) == DATA[400:]


@given(
    chance=seeds,
    tunnels=st.lists(st.sampled_from(sorted(TUNNELS)), max_size=3),
    depths=st.sets(st.integers(0, 3)),
    size=st.integers(2, 40).map(lambda units: units * 8),
    cuts=st.lists(st.integers(0, 999), max_size=9),
)
def test_fragments_inside_around_and_between_tunnels_are_whole(
    chance: random.Random, tunnels: list[str], depths: set[int], size: int, cuts: list[int]
) -> None:
    """Each packet's fragments in any order, in batches of any size."""
    reading = read(in_fragments(chance, tunnels, depths, size), cuts=cuts)
    assert reading.streams == {0: DATA}
    assert not reading.transport.ignored


def in_fragments(
    chance: random.Random, tunnels: list[str], depths: set[int], size: int, packets: Sequence[bytes] = PACKETS
) -> list[bytes]:
    """The packets as frames, cut into fragments at these depths of tunnels."""
    frames: list[bytes] = []
    number = 0
    for packet in packets:
        parts = [packet]
        for depth, name in enumerate([*tunnels, None]):
            if depth in depths:
                number += len(parts)
                parts = [piece for n, part in enumerate(parts, number) for piece in fragments(part, n, size)]
            if name is not None:
                parts = [TUNNELS[name](part) for part in parts]
        frames += chance.sample([ethernet(part) for part in parts], len(parts))
    return frames


@given(
    chance=seeds,
    tunnels=st.lists(st.sampled_from(sorted(TUNNELS)), max_size=3),
    depths=st.sets(st.integers(0, 3)),
    cuts=st.lists(st.integers(0, 999), max_size=20),
    limit=st.sampled_from([1_000, 1 << 20]),
)
def test_fragments_that_are_lost_repeated_or_given_up_are_so_in_batches_of_any_size(
    chance: random.Random, tunnels: list[str], depths: set[int], cuts: list[int], limit: int
) -> None:
    """But for SYNs: one behind segments of its connection is looked for in the batch of the first of them."""
    frames = in_fragments(chance, tunnels, depths, 80, PACKETS[2:])
    frames = [frame for frame in frames for _ in range(chance.choice([0, 1, 1, 1, 2]))]
    frames = [frames[n] for n in sorted(range(len(frames)), key=lambda n: n + chance.randint(0, 9))]
    bounds = replace(DEFAULT, fragment_bytes=limit)
    whole, cut = read(frames, limits=bounds), read(frames, limits=bounds, cuts=cuts)
    assert whole.streams == cut.streams
    assert sorted(whole.runs) == sorted(cut.runs)
    assert whole.transport.ignored == cut.transport.ignored


@cases(
    ("packet", "reason"),
    [
        (ip4(50, bytes(60)), ENCRYPTED),
        (ip6(50, bytes(60)), ENCRYPTED),
        (ip4(17, udp(4500, bytes(60))), ENCRYPTED),
        (ip4(17, udp(51820, bytes(60))), ENCRYPTED),
        (TUNNELS["vxlan"](ip4(50, bytes(60))), ENCRYPTED),
        (ip4(50, bytes(60), offset=80), ENCRYPTED),
        (ip4(17, udp(53, bytes(60))), NOT_TCP),
        (ip4(17, udp(4789, b"hello")), NOT_TCP),
        (ip4(17, udp(4789, b"hello, this is not a tunnel")), NOT_IP),
        (ip4(17, udp(4789, b"@" * 60)), NOT_TCP),
        (ip4(17, udp(6081, b"hello, this is not a tunnel")), NOT_TCP),
        (ip4(17, udp(2152, b"hello, this is not a tunnel")), NOT_TCP),
        (ip4(17, udp(2152, b"")), NOT_TCP),
        (ip4(47, b"\x40\0\x08\0" + PACKETS[0]), NOT_IP),
        (gre(0x22EB, ERSPAN_3[:10] + b"\4\0" + PACKETS[0], flags=0x1000, fields=bytes(4)), NOT_IP),
        (ip4(17, gtp(PACKETS[0], 0x34, b"\0\0\0\x85\0" + bytes(3))), NOT_TCP),
        (ip4(99, PACKETS[0]), NOT_TCP),
        (ip4(17, bytes(8), offset=80), INCOMPLETE),
        (ip4(99, bytes(8), offset=80), NOT_TCP),
        (bytes(40), NOT_IP),
        (b"", NOT_IP),
        (b"\x45", "truncated IP header"),
        (b"\x60", "truncated IP header"),
    ],
)
def test_packets_without_tcp_are_counted_by_reason(packet: bytes, reason: str) -> None:
    assert read([packet], link_type=101).transport.ignored == {reason: 1}


AIR = ieee_802_11(control=0x8801, extra=b"\x80\x00")(PACKETS[-1])


@cases(
    ("frame", "reason"),
    [
        (ieee_802_11(control=0x0841)(PACKETS[-1]), "encrypted 802.11 frame"),
        (ieee_802_11(control=0x88C1, extra=bytes(6))(PACKETS[-1]), "encrypted 802.11 frame"),
        (ieee_802_11(control=0x0805)(PACKETS[-1]), "802.11 fragment"),
        (AIR[:22] + b"\x11\x00" + AIR[24:], "802.11 fragment"),
        (AIR, "802.11 aggregate"),
        (ieee_802_11(control=0x4801)(PACKETS[-1]), NOT_IP),
        (ieee_802_11(control=0x8000)(PACKETS[-1]), NOT_IP),
    ],
    ids=["protected", "protected, with order", "first fragment", "last fragment", "aggregate", "no data", "beacon"],
)
def test_a_frame_of_the_air_that_cannot_be_read_is_counted_by_reason(frame: bytes, reason: str) -> None:
    transport = read([frame], link_type=105).transport
    assert transport.ignored == {reason: 1}
    assert bool(CaptureTally(ignored=transport.ignored).problems) == (reason != NOT_IP)


def test_headers_without_end_are_counted() -> None:
    tower = PACKETS[-1]
    for _ in range(30):
        tower = ip4(4, tower)
    assert read([tower], link_type=101).streams == {0: DATA[400:]}
    for _ in range(30):
        tower = ip4(4, tower)
    assert read([tower, mpls(100)(tower)[14:]], link_type=101).transport.ignored == {TOO_DEEP: 1, NOT_IP: 1}


def test_fragments_in_fragments_without_end_are_counted() -> None:
    numbers = count()
    parts = fragments(PACKETS[-1], 0, 120)
    for _ in range(MOST_TUNNELS):
        parts = [piece for part in parts for piece in halves(ip4(4, part), next(numbers))]
    assert len(parts) == 2 ** (MOST_TUNNELS + 1)
    assert read(parts, link_type=101).transport.ignored == {TOO_DEEP: 2}


def test_ipv4_has_no_extension_headers_in_fragments_either() -> None:
    signed = ip4(51, bytes([0, 0]) + bytes(14))
    assert read([signed], link_type=101).transport.ignored == {NOT_TCP: 1}
    assert read(fragments(signed, 7, 8), link_type=101).transport.ignored == {NOT_TCP: 1}


def test_work_does_not_grow_with_the_ways_that_packets_take(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = product(TUNNELS.values(), TUNNELS.values(), FRAMES.values())
    frames = [frame(outer(inner(PACKETS[-1]))) for inner, outer, frame in ways]
    read_headers = Counter[str]()

    def counting(header_parser: HeaderParser, protocol: HeaderProtocol, layer: Layer) -> Iterator[NextHeader]:
        read_headers[protocol.name] += 1
        return real(header_parser, protocol, layer)

    real = HeaderParser._parse_header
    monkeypatch.setattr(HeaderParser, "_parse_header", counting)
    [stream] = read(frames).streams.values()
    assert stream == DATA[400:]
    assert sum(read_headers.values()) < len(frames) / 10


def halves(packet: bytes, number: int) -> list[bytes]:
    """An IPv4 packet in two fragments."""
    return fragments(packet, number, (len(packet) - 20) // 16 * 8 + 8)


def test_a_fragment_of_a_fragment_is_counted() -> None:
    """IPv6 has one fragment header at the most; a second one never says anything."""
    inner = struct.pack(">BBHI", 6, 0, 1, 7) + bytes(64)
    pieces = fragments(ip6(44, inner), 9, 40)
    assert read(pieces, link_type=101).transport.ignored == {NESTED: 1}


LONG = bytes_without_mark(100_000)
SEGMENT = PACKETS[2][20:40] + LONG
JUMBO = b"\xc2\x04" + struct.pack(">I", 8 + len(SEGMENT))
PADDED = b"\0\1\2\0\0" + b"\xc2\x04" + struct.pack(">I", 16 + len(SEGMENT)) + b"\1\1\0"
LARGE = {
    "ipv4 without a length": ip4(6, SEGMENT),
    "ipv6 without a length": ip6(6, SEGMENT),
    "ipv6 jumbogram": ip6(0, b"\x06\x00" + JUMBO + SEGMENT),
    "ipv6 jumbogram, other options": ip6(0, b"\x06\x01" + PADDED + SEGMENT),
}


@cases("tunnel", [bytes, TUNNELS["gre"], TUNNELS["ip in ipv6"], TUNNELS["vxlan"]])
@cases("name", LARGE)
def test_segments_of_more_than_64_kib_are_whole(name: str, tunnel: Wrap) -> None:
    frame = ethernet(tunnel(LARGE[name]))
    assert read([frame]).streams == {0: LONG}
    assert read([frame], snaplen=200 + frame.index(LONG)).streams == {0: LONG[:200] + b"?" * (len(LONG) - 200)}


def test_what_follows_a_jumbogram_is_none_of_it() -> None:
    assert read([ip6(0, b"\x06\x00" + JUMBO + SEGMENT) + b"trailer"], link_type=101).streams == {0: LONG}


@cases("options", [b"\x06", b"\x06\0\xc2\x04\0", b"\x06\0\x05\xff\0\0\0\0", b"\x06\xff" + bytes(6)])
def test_a_damaged_jumbogram_is_counted_and_never_raises(options: bytes) -> None:
    packet = ip6(0, options)
    reading = read([packet[:4] + b"\0\0" + packet[6:]], link_type=101)
    assert not reading.streams
    assert sum(reading.transport.ignored.values()) == 1


@st.composite
def damaged(draw: st.DrawFn) -> tuple[int, bytes]:
    """A packet in some link type and tunnels with a few bytes changed, and its end cut off or made longer."""
    link_type, wrap = LINKS[draw(st.sampled_from(sorted(LINKS)))]
    packet = PACKETS[2]
    for name in draw(st.lists(st.sampled_from(sorted(TUNNELS)), max_size=3)):
        packet = TUNNELS[name](packet)
    frame = bytearray(wrap(packet))
    for at, value in draw(st.lists(st.tuples(st.integers(0, 150), st.integers(0, 255)), max_size=4)):
        frame[at % len(frame)] = value
    cut = draw(st.one_of(st.none(), st.integers(0, len(frame))))
    return link_type, bytes(frame[:cut])


random_bytes = st.tuples(st.sampled_from([*(link_type for link_type, _ in LINKS.values()), 77]), st.binary(max_size=90))


@given(st.one_of(damaged(), random_bytes), st.integers(0, 300))
def test_whatever_the_bytes_a_packet_is_a_segment_or_counted_once(packet: tuple[int, bytes], longer: int) -> None:
    link_type, frame = packet
    ignored: Counter[str] = Counter()
    header_parser = HeaderParser(Store(), DEFAULT, ignored)
    found = header_parser.segments(batch([frame], link_type=link_type, lengths=[len(frame) + longer]))
    header_parser.flush()
    assert sum(map(len, found)) + sum(ignored.values()) == 1
    transport = read_cut([frame, frame], link_type, [len(frame) + longer] * 2)
    assert len(transport.connections) <= 1
