"""Link layers, wireless ones included, and the headers between them and IP: VLAN tags, MPLS labels, PPP, LLC.

Numbers: the tcpdump group's list of LINKTYPE_ values, with its descriptions; EtherTypes: IEEE 802.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dissector.transport.headers import (
    NOT_IP,
    NOTHING,
    HeaderColumns,
    HeaderProtocol,
    Layer,
    NextHeader,
    ProtocolNumbers,
)
from dissector.transport.ip import ETHERTYPE_V4, ETHERTYPE_V6, IP

LINK_ETHERNET: Final = 1
MPLS_UNICAST: Final = 0x8847
MPLS_MULTICAST: Final = 0x8848
CONTROL_WORD: Final = 4
FRAMED: Final = (ETHERTYPE_V4, ETHERTYPE_V6, 0x8100, 0x88A8, MPLS_UNICAST, 0x8864)
"""EtherTypes by which a frame behind a control word is recognized."""
PPP_ETHERTYPES: Final = {0x21: ETHERTYPE_V4, 0x57: ETHERTYPE_V6, 0x281: MPLS_UNICAST, 0x283: MPLS_MULTICAST}
"""EtherTypes of PPP numbers (IANA)."""
PPP_ADDRESS: Final = 0xFF03
SNAP_HEAD: Final = 0xAAAA03
SNAP_ETHERTYPES: Final = (0x000000, 0x0000F8)
"""OUIs behind which an EtherType follows: RFC 1042, and bridges (IEEE 802.1H)."""
NFLOG_PAYLOAD: Final = 9
ENCRYPTED_FRAME: Final = "encrypted 802.11 frame"
FRAGMENT: Final = "802.11 fragment"
AGGREGATE: Final = "802.11 aggregate"
DATA, TYPE = 0x08, 0x0C
QOS, NO_DATA = 0x80, 0x40
BOTH_WAYS, MORE_FRAGMENTS, PROTECTED, ORDER = 0x03, 0x04, 0x40, 0x80
AGGREGATED: Final = 0x80


def _typed(name: str, size: int, ethertype_at: int) -> HeaderProtocol:
    """A header of fixed size with an EtherType in it."""

    def read(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
        yield NextHeader(layer.after(size), ProtocolNumbers.ETHERTYPE, head.u16(ethertype_at))

    return HeaderProtocol(name, size, read, runt=NOT_IP)


def _loopback(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    yield NextHeader(layer.after(LOOPBACK.size), IP)


def _snap(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    known = ((head.u32(0) >> 8) == SNAP_HEAD) & np.isin(head.u32(3) >> 8, SNAP_ETHERTYPES)
    yield NextHeader(layer.after(SNAP.size), ProtocolNumbers.ETHERTYPE, np.where(known, head.u16(6), NOTHING))


def _mpls(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    last, more = layer.after(MPLS.size).split((head.u8(2) & 1) == 1)
    yield NextHeader(last, MPLS_PAYLOAD)
    yield NextHeader(more, MPLS)


def _mpls_payload(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """No label identifies its payload: IP, an Ethernet frame, or one behind a control word (RFC 4385, 4448).

    A control word begins with four zero bits, and so do many MAC addresses: the offset of the EtherType decides.
    """
    nibble = head.u8(0) >> 4
    ip = (nibble == 4) | (nibble == 6)
    control = (nibble == 0) & np.isin(head.u16(CONTROL_WORD + 12), FRAMED)
    yield NextHeader(layer.where(ip), IP)
    yield NextHeader(layer.after(CONTROL_WORD).where(control), ProtocolNumbers.LINK_TYPE, LINK_ETHERNET)
    yield NextHeader(layer.where(~ip & ~control), ProtocolNumbers.LINK_TYPE, LINK_ETHERNET)


def _pppoe(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    session = head.u16(0) == 0x1100
    inside = layer.after(PPPOE.size, layer.at + PPPOE.size + head.u16(4))
    yield NextHeader(inside.where(session), PPP)
    yield NextHeader(layer.where(~session), NOT_IP)


def _ppp(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """RFC 1661 and 1662: address and control may be omitted, and so may a number's first byte if it is 0."""
    framed = head.u16(0) == PPP_ADDRESS
    short = (head.u8(0) & 1) == 1
    number = np.where(short, head.u8(0), head.u16(0))
    ethertype = np.full(len(number), NOTHING)
    for ppp, value in PPP_ETHERTYPES.items():
        ethertype[number == ppp] = value
    inside = layer.after(np.where(short, 1, 2))
    yield NextHeader(inside.where(~framed), ProtocolNumbers.ETHERTYPE, ethertype[~framed])
    yield NextHeader(layer.after(2).where(framed), PPP)


def _hdlc(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    cisco, ppp = layer.split(np.isin(head.u8(0), (0x0F, 0x8F)))
    yield NextHeader(cisco, CISCO_HDLC)
    yield NextHeader(ppp, PPP)


def _nflog(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    yield NextHeader(layer.after(NFLOG.size), NFLOG_ATTRIBUTE)


def _nflog_attribute(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """Length, type and value, padded to 4 bytes; the packet itself comes last and alone may be long."""
    size, kind = head.small16(0), head.small16(2)
    payload, other = kind == NFLOG_PAYLOAD, (kind != NFLOG_PAYLOAD) & (size >= NFLOG_ATTRIBUTE.size)
    yield NextHeader(layer.after(NFLOG_ATTRIBUTE.size).where(payload), IP)
    yield NextHeader(layer.after(size + 3 & ~3).where(other), NFLOG_ATTRIBUTE)
    yield NextHeader(layer.where(~payload & ~other), NOT_IP)


def _pktap(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """Apple's: the header's length, and the link type of what follows."""
    yield NextHeader(layer.after(head.small32(0)), ProtocolNumbers.LINK_TYPE, head.small32(8) & 0xFFFF)


def _wireless(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """IEEE 802.11: frame control, then up to four addresses; with quality of service one more control field."""
    kind, flags = head.u8(0), head.u8(1)
    data = ((kind & TYPE) == DATA) & ((kind & NO_DATA) == 0)
    protected = (flags & PROTECTED) != 0
    fragment = ((flags & MORE_FRAGMENTS) != 0) | ((head.u8(22) & 15) != 0)
    yield NextHeader(layer.where(~data), NOT_IP)
    yield NextHeader(layer.where(data & protected), ENCRYPTED_FRAME)
    yield NextHeader(layer.where(data & ~protected & fragment), FRAGMENT)
    plain = data & ~protected & ~fragment
    qos, order = (kind & QOS) != 0, (flags & ORDER) != 0
    inside = layer.after(WIRELESS.size + 6 * ((flags & BOTH_WAYS) == BOTH_WAYS))
    yield NextHeader(inside.where(plain & ~qos), SNAP)
    yield NextHeader(inside.where(plain & qos & ~order), _QOS)
    yield NextHeader(inside.where(plain & qos & order), _QOS_HT)


def _qos(size: int) -> HeaderProtocol:
    def read(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
        aggregate = (head.u8(0) & AGGREGATED) != 0
        yield NextHeader(layer.after(size).where(~aggregate), SNAP)
        yield NextHeader(layer.where(aggregate), AGGREGATE)

    return HeaderProtocol("802.11", size, read, runt=NOT_IP)


def _radiotap(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    yield NextHeader(layer.after(head.little16(2)), WIRELESS)


def _monitored(layer: Layer, head: HeaderColumns) -> Iterator[NextHeader]:
    """The header's length is at the same offset in both formats, in either byte order."""
    yield NextHeader(layer.after(head.small32(4)), WIRELESS)


ETHERNET: Final = _typed("Ethernet", 14, ethertype_at=12)
COOKED: Final = _typed("cooked", 16, ethertype_at=14)
COOKED_2: Final = _typed("cooked", 20, ethertype_at=0)
CISCO_HDLC: Final = _typed("HDLC", 4, ethertype_at=2)
VLAN: Final = _typed("VLAN", 4, ethertype_at=2)
LOOPBACK: Final = HeaderProtocol("loopback", 4, _loopback, runt=NOT_IP)
"""An address family in the host's byte order, whose values differ from system to system."""
SNAP: Final = HeaderProtocol("LLC", 8, _snap, runt=NOT_IP)
MPLS: Final = HeaderProtocol("MPLS", 4, _mpls)
MPLS_PAYLOAD: Final = HeaderProtocol("MPLS", CONTROL_WORD + 14, _mpls_payload, runt=NOT_IP)
PPPOE: Final = HeaderProtocol("PPPoE", 6, _pppoe)
PPP: Final = HeaderProtocol("PPP", 2, _ppp, runt=NOT_IP)
HDLC: Final = HeaderProtocol("HDLC", 1, _hdlc, runt=NOT_IP)
NFLOG: Final = HeaderProtocol("NFLOG", 4, _nflog)
NFLOG_ATTRIBUTE: Final = HeaderProtocol("NFLOG", 4, _nflog_attribute, runt=NOT_IP)
PKTAP: Final = HeaderProtocol("PKTAP", 12, _pktap)


WIRELESS: Final = HeaderProtocol("802.11", 24, _wireless, runt=NOT_IP)
_QOS: Final = _qos(2)
_QOS_HT: Final = _qos(6)
RADIOTAP: Final = HeaderProtocol("radiotap", 4, _radiotap)
PRISM_OR_AVS: Final = HeaderProtocol("802.11 monitor", 8, _monitored)
