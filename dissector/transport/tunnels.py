"""Packets inside packets: GRE and ERSPAN over IP; VXLAN, GENEVE and GTP-U over UDP.

A UDP port is only a hint: what does not parse is other traffic, and so not TCP.
"""

from collections.abc import Iterator
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
)
from dissector.transport.ip import IP
from dissector.transport.link import LINK_ETHERNET

CHECKSUM, ROUTING, KEY, SEQUENCE = 0x8000, 0x4000, 0x2000, 0x1000
ACKNOWLEDGED, VERSION = 0x0080, 0x0007
BRIDGED: Final = 0x6558
"""EtherType of a whole Ethernet frame."""
ERSPAN_TYPE: Final = 0x88BE
VXLAN_HAS_ID: Final = 0x08
GTP_VERSION, GTP_EXTENDED, GTP_OPTIONAL = 0x30, 0x04, 0x07
GTP_PACKET: Final = 255


def _gre(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """RFC 2784 and 2890, and version 1 of PPTP (RFC 2637). ERSPAN I is the one without a sequence number."""
    flags, number = head.u16(0), head.u16(2)
    version = flags & VERSION
    fields = sum(((flags & flag) != 0).astype(np.int64) for flag in (CHECKSUM, KEY, SEQUENCE))
    fields += (version == 1) & ((flags & ACKNOWLEDGED) != 0)
    number = np.where((number == ERSPAN_TYPE) & ((flags & SEQUENCE) == 0), BRIDGED, number)
    number = np.where((version > 1) | ((flags & ROUTING) != 0), NOTHING, number)
    yield NextHeader(layer.after(GRE.size + 4 * fields), ProtocolNumbers.ETHERTYPE, number)


def _erspan_2(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    yield NextHeader(layer.after(ERSPAN_2.size), ProtocolNumbers.LINK_TYPE, LINK_ETHERNET)


def _erspan_3(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """The last bit announces 8 more bytes, five others identify what was mirrored."""
    mirrored = (head.u8(10) >> 2) & 31
    inside = layer.after(ERSPAN_3.size + 8 * (head.u8(11) & 1))
    yield NextHeader(inside.where(mirrored == 0), ProtocolNumbers.LINK_TYPE, LINK_ETHERNET)
    yield NextHeader(inside.where(mirrored == 2), IP)
    yield NextHeader(layer.where((mirrored != 0) & (mirrored != 2)), NOT_IP)


def _vxlan(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    good, other = layer.split((head.u8(0) & VXLAN_HAS_ID) != 0)
    yield NextHeader(good.after(VXLAN.size), ProtocolNumbers.LINK_TYPE, LINK_ETHERNET)
    yield NextHeader(other, NOT_TCP)


def _geneve(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    first = head.u8(0)
    good = (first >> 6) == 0
    inside = layer.after(GENEVE.size + 4 * (first & 63))
    yield NextHeader(inside.where(good), ProtocolNumbers.ETHERTYPE, head.u16(2)[good])
    yield NextHeader(layer.where(~good), NOT_TCP)


def _gtp(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """3GPP TS 29.281: one of three flags adds 4 bytes, one of them extension headers."""
    flags = head.u8(0)
    good = ((flags & 0xF0) == GTP_VERSION) & (head.u8(1) == GTP_PACKET)
    optional, extended = (flags & GTP_OPTIONAL) != 0, (flags & GTP_EXTENDED) != 0
    yield NextHeader(layer.after(GTP_U.size).where(good & ~optional), IP)
    yield NextHeader(layer.after(GTP_U.size + 4).where(good & optional & ~extended), IP)
    yield NextHeader(layer.after(GTP_U.size + 3).where(good & extended), _GTP_EXTENSION)
    yield NextHeader(layer.where(~good), NOT_TCP)


def _gtp_extension(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """Read from the type in the last byte of the header before: its length counts 4 bytes each."""
    kind, size = head.u8(0), head.u8(1) * 4
    more = (kind != 0) & (size != 0)
    yield NextHeader(layer.after(size).where(more), _GTP_EXTENSION)
    yield NextHeader(layer.after(1).where(kind == 0), IP)
    yield NextHeader(layer.where((kind != 0) & (size == 0)), NOT_TCP)


GRE: Final = HeaderProtocol("GRE", 4, _gre, runt=NOT_TCP)
ERSPAN_2: Final = HeaderProtocol("ERSPAN", 8, _erspan_2)
ERSPAN_3: Final = HeaderProtocol("ERSPAN", 12, _erspan_3)
VXLAN: Final = HeaderProtocol("VXLAN", 8, _vxlan, runt=NOT_TCP)
GENEVE: Final = HeaderProtocol("GENEVE", 8, _geneve, runt=NOT_TCP)
GTP_U: Final = HeaderProtocol("GTP-U", 8, _gtp, runt=NOT_TCP)
_GTP_EXTENSION: Final = HeaderProtocol("GTP-U", 2, _gtp_extension, runt=NOT_TCP)
