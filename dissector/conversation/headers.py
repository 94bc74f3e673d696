"""Builds Ethernet frames of TCP segments: Ethernet II, IPv4 or IPv6, TCP, with valid checksums; and headers alone, for
packets that are built as bytes pass.

RFC 791, 8200, 9293. Both MAC addresses are locally administered ones, which no network card has.
"""

import struct
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from dissector.conversation.turns import End

FIN: Final = 1
SYN: Final = 2
PSH: Final = 8
ACK: Final = 16
LARGEST_PAYLOAD: Final = 1440
"""Bytes that fit into 1,500 bytes of Ethernet after the headers of IPv6 and TCP, and so of IPv4."""
WINDOW: Final = 0xFFFF
SYN_OPTIONS: Final = struct.pack(">BBHBBB", 2, 4, LARGEST_PAYLOAD, 3, 3, 7) + b"\x00"
"""Maximum segment size, and a window in units of 128 bytes, so that it is never full."""
TCP: Final = 6
MACS: Final = (bytes.fromhex("020000000001"), bytes.fromhex("020000000002"))
LONGEST_PAYLOAD: Final = 65_495
"""Bytes of a segment with the longest IPv4 packet."""
_AFTER_LENGTH: Final = struct.pack(">HHBB", 0, 0x4000, 64, TCP)
"""Of IPv4, up to the checksum: do not fragment, time to live 64."""
_V4: Final = struct.Struct(">16sH6sH12sIIHHHH")
_V6: Final = struct.Struct(">18sHBB36sIIHHHH")


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071). As 2**16 is 1 modulo 0xffff, the sum of all words is one remainder."""
    padded = data + b"\x00" if len(data) % 2 else data
    return 0xFFFF - (int.from_bytes(padded, "big") % 0xFFFF or 0xFFFF)


def frame(source: End, destination: End, flags: int, seq: int, ack: int, payload: bytes, *, outward: bool) -> bytes:
    """Return the bytes on the wire. Sequence numbers wrap; `outward` selects which of the two cards sends."""
    sender, receiver = _address(source.host), _address(destination.host)
    options = SYN_OPTIONS if flags & SYN else b""
    head = struct.pack(
        ">HHIIBBHHH", source.port, destination.port, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF,
        (20 + len(options)) // 4 << 4, flags, WINDOW, 0, 0,
    )  # fmt: skip
    segment = head + options + payload
    pseudo = sender.packed + receiver.packed + struct.pack(">IHBB", len(segment), 0, 0, TCP)
    segment = segment[:16] + checksum(pseudo + segment).to_bytes(2, "big") + segment[18:]
    macs = MACS[outward] + MACS[not outward]
    if isinstance(sender, IPv4Address):
        return macs + b"\x08\x00" + _ipv4(sender.packed, receiver.packed, len(segment)) + segment
    return macs + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(segment), TCP, 64) + pseudo[:32] + segment


@lru_cache(maxsize=1 << 14)
def _address(host: str) -> IPv4Address | IPv6Address:
    """The ends of a capture are few, and to read one takes longer than to build the frame."""
    return ip_address(host)


def _ipv4(sender: bytes, receiver: bytes, size: int) -> bytes:
    """Return the header for `size` bytes: do not fragment, time to live 64."""
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + size, 0, 0x4000, 64, TCP, 0) + sender + receiver
    return head[:10] + checksum(head).to_bytes(2, "big") + head[12:]


class SegmentHeaders:
    """Headers from one end to the other, made quickly: what stays the same is made once. Both ends have addresses of
    one family. Segments may be as long as IP allows, as they are on the way to a network card that cuts them; and as
    on that way, the checksum of TCP is that of the pseudo-header alone, which the card completes."""

    def __init__(self, source: End, destination: End, *, outward: bool) -> None:
        sender, receiver = ip_address(source.host), ip_address(destination.host)
        macs = MACS[outward] + MACS[not outward]
        self.is_v4 = isinstance(sender, IPv4Address)
        addresses = sender.packed + receiver.packed
        self._pseudo_sum = _words(addresses) + TCP
        self._ip_sum = _words(addresses) + _words(_AFTER_LENGTH) + 0x4500
        self._begin = macs + (b"\x08\x00\x45\x00" if self.is_v4 else b"\x86\xdd\x60\x00\x00\x00")
        self._ends = addresses + struct.pack(">HH", source.port, destination.port)

    def header(self, flags: int, seq: int, ack: int, size: int) -> bytes:
        """Return what stands before `size` bytes of payload. Sequence numbers have 32 bits."""
        options = SYN_OPTIONS if flags & SYN else b""
        length = 20 + len(options) + size
        offset_and_flags = (20 + len(options)) << 10 | flags
        checksum = _folded(self._pseudo_sum + length)
        if not self.is_v4:
            made = _V6.pack(self._begin, length, TCP, 64, self._ends, seq, ack, offset_and_flags, WINDOW, checksum, 0)
            return made + options
        total = 20 + length
        made = _V4.pack(
            self._begin, total, _AFTER_LENGTH, 0xFFFF - _folded(self._ip_sum + total), self._ends, seq, ack,
            offset_and_flags, WINDOW, checksum, 0,
        )  # fmt: skip
        return made + options


def _words(data: bytes) -> int:
    return sum(struct.unpack(f">{len(data) // 2}H", data))


def _folded(total: int) -> int:
    """Return a sum of 16-bit words in one's complement."""
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total
