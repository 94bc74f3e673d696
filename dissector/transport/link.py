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


def _behind(size: int, ethertype_at: int | None = None) -> Layout:
    """A header of fixed size, with an EtherType in it or without."""

    def layout(view: PacketView) -> Ints:
        at = view.offset + size
        if ethertype_at is None:
            return at
        kind = view.u16(view.offset + ethertype_at)
        return np.where((kind == IPV4) | (kind == IPV6), at, NOT_IP)

    return layout


def _ethernet(view: PacketView) -> Ints:
    """IEEE 802.3 with any VLAN tags (802.1Q, 802.1ad) between addresses and EtherType."""
    at = view.offset + 12
    kind = view.u16(at)
    for _ in range(DEEPEST_VLAN):
        tagged = np.isin(kind, VLAN_TAGS)
        if not tagged.any():
            break
        at = np.where(tagged, at + 4, at)
        kind = view.u16(at)
    return np.where((kind == IPV4) | (kind == IPV6), at + 2, NOT_IP)


LINK_LAYOUTS: Final[dict[int, Layout]] = {
    0: _behind(4),  # NULL: BSD loopback, address family in host byte order
    1: _ethernet,
    12: _behind(0),  # RAW, as some systems number it
    14: _behind(0),
    101: _behind(0),  # RAW
    108: _behind(4),  # LOOP: OpenBSD loopback
    113: _behind(16, ethertype_at=14),  # LINUX_SLL
    228: _behind(0),  # IPV4
    229: _behind(0),  # IPV6
    276: _behind(20, ethertype_at=0),  # LINUX_SLL2
}
