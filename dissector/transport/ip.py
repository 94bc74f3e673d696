"""IPv4 (RFC 791), IPv6 (RFC 8200) and UDP (RFC 768) headers as columns.

How long a packet is, IP says, and never what was captured: Ethernet pads short packets, and a snap length cuts long
ones. Fragments and IPv6 extension headers are left to `slow_path`.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from dissector.transport.steps import NOT_IP, NOT_TCP, NOTHING, Goal, Numbers, Protocol, Step
from dissector.transport.view import Header, Layer

V4_HEADER: Final = 20
V6_HEADER: Final = 40
ETHERTYPE_V4: Final = 0x0800
ETHERTYPE_V6: Final = 0x86DD
MORE_OR_OFFSET: Final = 0x3FFF
IPV6_EXTENSIONS: Final = (0, 43, 44, 51, 60, 135)
"""Hop-by-hop options, routing, fragment, authentication, destination options, mobility."""
DAMAGED: Final = "damaged IP header"


def _ipv4(layer: Layer, head: Header) -> Iterator[Step]:
    first, total, number = head.u8(0), head.u16(2), head.u8(9)
    version, header = first >> 4, (first & 15) * 4
    damaged = (header < V4_HEADER) | ((total != 0) & (total < header))
    whole = (head.u16(6) & MORE_OR_OFFSET) == 0
    good = (version == 4) & ~damaged
    # A total length of 0 is a segment that the network card was to cut: it is as long as what is around it.
    end = np.where(total == 0, layer.end, layer.at + total)
    inside = replace(layer, ip=layer.at, at=layer.at + header, end=end, depth=layer.depth + 1)
    for to, rows in ((Numbers.IP_PROTOCOL, good & whole), (Numbers.IP_FRAGMENT, good & ~whole)):
        yield Step(inside.where(rows), to, number[rows])
    yield Step(layer.where((version == 4) & damaged), DAMAGED)
    yield Step(layer.where(version != 4), NOT_IP)


def _ipv6(layer: Layer, head: Header) -> Iterator[Step]:
    good, size, number = (head.u8(0) >> 4) == 6, head.u16(4), head.u8(6)
    # A payload length of 0 is a jumbogram (RFC 2675), or a segment that the network card was to cut.
    end = np.where(size == 0, layer.end, layer.at + V6_HEADER + size)
    inside = replace(layer, ip=layer.at, at=layer.at + V6_HEADER, end=end, depth=layer.depth + 1)
    extended = np.isin(number, IPV6_EXTENSIONS)
    plain = good & ~extended
    yield Step(inside.where(plain), Numbers.IP_PROTOCOL, number[plain])
    yield Step(inside.where(good & extended), Goal.SLOW_PATH)
    yield Step(layer.where(~good), NOT_IP)


def _by_version(layer: Layer, head: Header) -> Iterator[Step]:
    version = head.u8(0) >> 4
    number = np.where(version == 4, ETHERTYPE_V4, np.where(version == 6, ETHERTYPE_V6, NOTHING))
    yield Step(layer, Numbers.ETHERTYPE, number)


def _udp(layer: Layer, head: Header) -> Iterator[Step]:
    size = head.u16(4)
    end = np.where(size < UDP.size, layer.end, layer.at + size)
    yield Step(layer.behind(UDP.size, end), Numbers.UDP_PORT, head.u16(2))


def _authentication(layer: Layer, head: Header) -> Iterator[Step]:
    yield Step(layer.behind((head.u8(1) + 2) * 4), Numbers.IP_PROTOCOL, head.u8(0))


IPV4: Final = Protocol("IP", V4_HEADER, _ipv4)
IPV6: Final = Protocol("IP", V6_HEADER, _ipv6)
IP: Final = Protocol("IP", 1, _by_version, runt=NOT_IP)
"""Where nothing but its first four bits tells the version."""
UDP: Final = Protocol("UDP", 8, _udp, runt=NOT_TCP)
AUTHENTICATION: Final = Protocol("authentication", 12, _authentication, runt=NOT_TCP)
"""RFC 4302: signed, not encrypted."""
