"""What a header leads to: types shared by the protocols, their registry and the parser.

A protocol gives a number and the list that the number is from, as headers do. It names the next protocol only where
there is no number.
"""

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.transport.header_columns import HeaderColumns, Layer

NOT_IP: Final = "not IP"
NOT_TCP: Final = "not TCP"
ORDINARY: Final = frozenset({NOT_IP, NOT_TCP})
"""Reasons to ignore a packet that cannot hide Kafka."""
ENCRYPTED: Final = "encrypted tunnel"
NOTHING: Final = 0xFFFF
"""A number without a protocol in any list."""


class ProtocolNumbers(Enum):
    """Lists of numbers that identify the next protocol. All have 16 bits."""

    LINK_TYPE = auto()
    """LINKTYPE_ values of the tcpdump group."""
    ETHERTYPE = auto()
    """IEEE 802; up to 1,500 it is a length, and LLC follows."""
    IP_PROTOCOL = auto()
    IP_FRAGMENT = auto()
    """IP protocols once more, of an IPv4 packet that is a fragment."""
    NEXT_HEADER = auto()
    """IP protocols and the extension headers of IPv6."""
    UDP_PORT = auto()


class Terminal(Enum):
    """Where parsing of headers ends."""

    TCP = auto()
    SLOW_PATH = auto()
    """Fragments, handled one by one: of IPv4 from their payload on, of IPv6 from their fragment header on."""


class NextHeader(NamedTuple):
    """Rows that continue in the same way: by number, with a protocol, at a terminal, or ignored for a reason."""

    layer: Layer
    to: "ProtocolNumbers | Next"
    number: Int64 | int = 0

    @property
    def numbers(self) -> Int64:
        """The number of each row."""
        return np.broadcast_to(np.asarray(self.number), len(self.layer))


class HeaderProtocol(NamedTuple):
    """How to parse one header."""

    name: str
    size: int
    """Bytes of it that `read` gets; packets with less room are not passed to it."""
    read: Callable[[Layer, HeaderColumns], Iterable[NextHeader]]
    runt: str = ""
    """Why a packet that was sent with less than `size` bytes is ignored; empty where that is damage."""


Next = HeaderProtocol | Terminal | str
"""A string is the reason why packets are ignored."""
