"""Protocols by number. A new link type is one entry here, and so is a new tunnel.

An entry is a protocol of `link`, `tunnels` or `ip`, a `Terminal`, or the reason why packets are ignored.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from dissector.core.arrays import Bool, Int64
from dissector.transport import ip, link, tunnels
from dissector.transport.headers import ENCRYPTED, NOT_IP, NOT_TCP, Next, ProtocolNumbers, Terminal

LINK_TYPES: Final[Mapping[int, Next]] = {
    0: link.LOOPBACK,  # NULL: BSD
    1: link.ETHERNET,
    9: link.PPP,
    12: ip.IP,  # RAW, as some systems number it
    14: ip.IP,
    50: link.HDLC,  # PPP_HDLC
    51: link.PPPOE,  # PPP_ETHER
    101: ip.IP,  # RAW
    104: link.CISCO_HDLC,
    105: link.WIRELESS,
    108: link.LOOPBACK,  # LOOP: OpenBSD
    113: link.COOKED,  # LINUX_SLL
    119: link.PRISM_OR_AVS,
    127: link.RADIOTAP,
    149: link.PKTAP,  # as older macOS numbers it
    163: link.PRISM_OR_AVS,
    228: ip.IPV4,
    229: ip.IPV6,
    239: link.NFLOG,
    258: link.PKTAP,
    276: link.COOKED_2,  # LINUX_SLL2
}
ETHERTYPES: Final[Mapping[int, Next]] = {
    **dict.fromkeys(range(1501), link.SNAP),
    0x0800: ip.IPV4,
    0x22EB: tunnels.ERSPAN_3,
    0x6558: link.ETHERNET,  # transparent Ethernet bridging
    0x8100: link.VLAN,  # 802.1Q
    0x86DD: ip.IPV6,
    0x880B: link.PPP,
    0x8847: link.MPLS,
    0x8848: link.MPLS,
    0x8864: link.PPPOE,
    0x88A8: link.VLAN,  # 802.1ad
    0x88BE: tunnels.ERSPAN_2,
    0x88E5: ENCRYPTED,  # MACsec
    0x9100: link.VLAN,
    0x9200: link.VLAN,
}
IP_PROTOCOLS: Final[Mapping[int, Next]] = {
    4: ip.IPV4,
    6: Terminal.TCP,
    17: ip.UDP,
    41: ip.IPV6,
    47: tunnels.GRE,
    50: ENCRYPTED,  # ESP
    51: ip.AUTHENTICATION,
}
NEXT_HEADERS: Final[Mapping[int, Next]] = {
    **IP_PROTOCOLS,
    0: ip.HOP_BY_HOP,
    43: ip.EXTENSION,  # routing
    44: ip.FRAGMENT,
    51: ip.AUTHENTICATION_6,
    60: ip.EXTENSION,  # destination options
    135: ip.EXTENSION,  # mobility
}
UDP_PORTS: Final[Mapping[int, Next]] = {
    2152: tunnels.GTP_U,
    4500: ENCRYPTED,  # ESP behind address translation
    4789: tunnels.VXLAN,
    6081: tunnels.GENEVE,
    8472: tunnels.VXLAN,  # Linux, before the port was assigned
    51820: ENCRYPTED,  # WireGuard
}
FRAGMENTS: Final[Mapping[int, Next]] = {
    number: entry if isinstance(entry, str) else Terminal.FRAGMENT for number, entry in IP_PROTOCOLS.items()
}


class Registered:
    """A list of numbers, for lookups of whole columns."""

    def __init__(self, entries: Mapping[int, Next], unknown: Callable[[Int64], Counter[str]]) -> None:
        self._entries = list(dict.fromkeys(entries.values()))
        place = {entry: n for n, entry in enumerate(self._entries)}
        self._unknown = len(self._entries)
        self._which = np.full(1 << 16, self._unknown, np.uint8)
        for number, entry in entries.items():
            self._which[number] = place[entry]
        self.why = unknown
        """Reasons why packets with these numbers are ignored."""

    def parts(self, numbers: Int64) -> Iterator[tuple[Next | None, Bool]]:
        """Yield the protocols of the numbers, None for unknown ones, and the rows of each. There must be a row."""
        same = numbers == numbers[0]
        if same.all():  # as in most captures
            yield self._entry(self._which[numbers[0]]), same
            return
        which = self._which[numbers]
        for n in np.flatnonzero(np.bincount(which)).tolist():
            yield self._entry(n), which == n

    def _entry(self, n: int) -> Next | None:
        return None if n == self._unknown else self._entries[n]


def _always(reason: str) -> Callable[[Int64], Counter[str]]:
    return lambda numbers: Counter({reason: len(numbers)})


def _named(numbers: Int64) -> Counter[str]:
    return Counter(f"link type {number}" for number in numbers.tolist())


REGISTRY: Final = {
    ProtocolNumbers.LINK_TYPE: Registered(LINK_TYPES, _named),
    ProtocolNumbers.ETHERTYPE: Registered(ETHERTYPES, _always(NOT_IP)),
    ProtocolNumbers.IP_PROTOCOL: Registered(IP_PROTOCOLS, _always(NOT_TCP)),
    ProtocolNumbers.IP_FRAGMENT: Registered(FRAGMENTS, _always(NOT_TCP)),
    ProtocolNumbers.NEXT_HEADER: Registered(NEXT_HEADERS, _always(NOT_TCP)),
    ProtocolNumbers.UDP_PORT: Registered(UDP_PORTS, _always(NOT_TCP)),
}
