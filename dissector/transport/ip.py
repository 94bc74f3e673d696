"""IPv4 (RFC 791), IPv6 with its extension headers (RFC 8200) and UDP (RFC 768) as columns.

The length of a packet is that in its IP header, never that captured: Ethernet pads short packets, and a snap length
cuts long ones. `fragments` handles those that are fragments.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from dissector.transport.headers import (
    NOT_IP,
    NOT_TCP,
    NOTHING,
    HeaderColumns,
    HeaderProtocol,
    Layer,
    NextHeader,
    ProtocolNumbers,
    Terminal,
)

V4_HEADER: Final = 20
V6_HEADER: Final = 40
ETHERTYPE_V4: Final = 0x0800
ETHERTYPE_V6: Final = 0x86DD
MORE_OR_OFFSET: Final = 0x3FFF
WHOLE: Final = 0xFFF9
"""Bits of a fragment header that are 0 where nothing is missing (RFC 6946)."""
JUMBO: Final = 0xC204
"""Type and length of the jumbo payload option (RFC 2675)."""
DAMAGED: Final = "damaged IP header"


def _ipv4(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    first, total, number = head.u8(0), head.u16(2), head.u8(9)
    header = (first & 15) * 4
    four = (first >> 4) == 4
    good = four & (header >= V4_HEADER) & ((total >= header) | (total == 0))
    plain = good & ((head.u16(6) & MORE_OR_OFFSET) == 0)
    # A total length of 0 is a segment that the network card was to split: it ends with the enclosing layer.
    end = layer.at + total
    if not total.all():
        end = np.where(total == 0, layer.end, end)
    inside = replace(layer, ip=layer.at, at=layer.at + header, end=end, depth=layer.depth + 1)
    if plain.all():
        yield NextHeader(inside, ProtocolNumbers.IP_PROTOCOL, number)
        return
    for to, rows in ((ProtocolNumbers.IP_PROTOCOL, plain), (ProtocolNumbers.IP_FRAGMENT, good & ~plain)):
        yield NextHeader(inside.where(rows), to, number[rows])
    yield NextHeader(layer.where(four & ~good), DAMAGED)
    yield NextHeader(layer.where(~four), NOT_IP)


def _ipv6(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    good, size, number = (head.u8(0) >> 4) == 6, head.u16(4), head.u8(6)
    # A payload length of 0 is a jumbogram, or a segment that the network card was to split.
    end = np.where(size == 0, layer.end, layer.at + V6_HEADER + size)
    inside = replace(layer, ip=layer.at, at=layer.at + V6_HEADER, end=end, depth=layer.depth + 1)
    yield NextHeader(inside.where(good), ProtocolNumbers.NEXT_HEADER, number[good])
    yield NextHeader(layer.where(~good), NOT_IP)


def _extension(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    yield NextHeader(layer.after((head.u8(1) + 1) * 8), ProtocolNumbers.NEXT_HEADER, head.u8(0))


def _hop_by_hop(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """The jumbo option comes first; behind others it is not read, and the packet's length is used."""
    jumbo = (head.u16(2) == JUMBO) & (layer.ip_header(V6_HEADER).u16(4) == 0)
    end = np.where(jumbo, layer.ip + V6_HEADER + head.u32(4), layer.end)
    yield NextHeader(layer.after((head.u8(1) + 1) * 8, end), ProtocolNumbers.NEXT_HEADER, head.u8(0))


def _fragment(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    whole = (head.u16(2) & WHOLE) == 0
    yield NextHeader(layer.after(FRAGMENT.size).where(whole), ProtocolNumbers.NEXT_HEADER, head.u8(0)[whole])
    yield NextHeader(layer.where(~whole), Terminal.FRAGMENT)


def _by_version(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    version = head.u8(0) >> 4
    number = np.where(version == 4, ETHERTYPE_V4, np.where(version == 6, ETHERTYPE_V6, NOTHING))
    yield NextHeader(layer, ProtocolNumbers.ETHERTYPE, number)


def _udp(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    size = head.u16(4)
    end = np.where(size < UDP.size, layer.end, layer.at + size)
    yield NextHeader(layer.after(UDP.size, end), ProtocolNumbers.UDP_PORT, head.u16(2))


def _authentication(following: ProtocolNumbers) -> HeaderProtocol:
    """RFC 4302: signed, not encrypted."""

    def read(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
        yield NextHeader(layer.after((head.u8(1) + 2) * 4), following, head.u8(0))

    return HeaderProtocol("authentication", 12, read, runt=NOT_TCP)


IPV4: Final = HeaderProtocol("IP", V4_HEADER, _ipv4)
IPV6: Final = HeaderProtocol("IP", V6_HEADER, _ipv6)
IP: Final = HeaderProtocol("IP", 1, _by_version, runt=NOT_IP)
"""Where only the first four bits give the version."""
HOP_BY_HOP: Final = HeaderProtocol("IP", 8, _hop_by_hop)
EXTENSION: Final = HeaderProtocol("IP", 8, _extension)
FRAGMENT: Final = HeaderProtocol("IP", 8, _fragment)
AUTHENTICATION: Final = _authentication(ProtocolNumbers.IP_PROTOCOL)
AUTHENTICATION_6: Final = _authentication(ProtocolNumbers.NEXT_HEADER)
UDP: Final = HeaderProtocol("UDP", 8, _udp, runt=NOT_TCP)
