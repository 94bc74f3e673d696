"""Link layers: where the IP header begins. A new link type is one entry in `LINK_LAYOUTS`.

Numbers: the tcpdump group's list of LINKTYPE_ values; EtherTypes: IEEE 802. Behind each header the version of IP is
read off its first four bits, which agree with the EtherType in every packet that can be read.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from dissector.transport.view import Ints, PacketView

IPV4: Final = 0x0800
IPV6: Final = 0x86DD
VLAN_TAGS: Final = (0x8100, 0x88A8, 0x9100)
DEEPEST_VLAN: Final = 4
NOT_IP: Final = -1

Layout = Callable[[PacketView], Ints]
"""Gives the place of each packet's IP header, `NOT_IP` where there is none."""


def _behind(size: int) -> Layout:
    """A header of fixed size that need not be looked at."""
    return lambda view: view.offset + size


def _typed(size: int, ethertype_at: int) -> Layout:
    """A header of fixed size with an EtherType in it, then any VLAN tags (802.1Q, 802.1ad), each with the next type."""

    def layout(view: PacketView) -> Ints:
        at = view.offset + size
        kind = view.u16(view.offset + ethertype_at)
        for _ in range(DEEPEST_VLAN):
            tagged = np.isin(kind, VLAN_TAGS)
            if not tagged.any():
                break
            kind = np.where(tagged, view.u16(at + 2), kind)
            at = np.where(tagged, at + 4, at)
        return np.where((kind == IPV4) | (kind == IPV6), at, NOT_IP)

    return layout


LINK_LAYOUTS: Final[dict[int, Layout]] = {
    0: _behind(4),  # NULL: BSD loopback, address family in host byte order
    1: _typed(14, ethertype_at=12),  # ETHERNET
    12: _behind(0),  # RAW, as some systems number it
    14: _behind(0),
    101: _behind(0),  # RAW
    108: _behind(4),  # LOOP: OpenBSD loopback
    113: _typed(16, ethertype_at=14),  # LINUX_SLL
    228: _behind(0),  # IPV4
    229: _behind(0),  # IPV6
    276: _typed(20, ethertype_at=0),  # LINUX_SLL2
}
