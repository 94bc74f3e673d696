"""Headers of TCP segments of one direction, made quickly, for packets that are built as bytes pass.

What stays the same is made once. Segments may be as long as IP allows, as they are on the way to a network card that
cuts them; and as on that way, the checksum of TCP is that of the pseudo-header alone, which the card completes.
"""

import struct
from ipaddress import IPv4Address, ip_address
from typing import Final

from dissector.conversation.headers import MACS, SYN, SYN_OPTIONS, TCP, WINDOW
from dissector.conversation.turns import End

LONGEST_PAYLOAD: Final = 65_495
"""Bytes of a segment with the longest IPv4 packet."""
_ACK_AND_FLAGS: Final = struct.Struct(">HHIIBBHHH")


class SegmentHeaders:
    """Headers from one end to the other. Both have addresses of one family."""

    def __init__(self, source: End, destination: End, *, outward: bool) -> None:
        sender, receiver = ip_address(source.host), ip_address(destination.host)
        self._ports = source.port, destination.port
        self._is_v4 = isinstance(sender, IPv4Address)
        macs = MACS[outward] + MACS[not outward]
        self._macs = macs + (b"\x08\x00" if self._is_v4 else b"\x86\xdd")
        self._addresses = sender.packed + receiver.packed
        self._pseudo_sum = _words(self._addresses) + TCP
        self._ip_sum = _words(self._addresses) + 0x4500 + 0x4000 + (64 << 8 | TCP)

    def header(self, flags: int, seq: int, ack: int, size: int) -> bytes:
        """Return what stands before `size` bytes of payload. Sequence numbers wrap."""
        options = SYN_OPTIONS if flags & SYN else b""
        length = 20 + len(options) + size
        tcp = _ACK_AND_FLAGS.pack(
            *self._ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, (20 + len(options)) // 4 << 4, flags, WINDOW,
            _folded(self._pseudo_sum + length), 0,
        )  # fmt: skip
        if not self._is_v4:
            return self._macs + struct.pack(">IHBB", 6 << 28, length, TCP, 64) + self._addresses + tcp + options
        total = 20 + length
        checksum = 0xFFFF - _folded(self._ip_sum + total)
        head = struct.pack(">BBHHHBBH", 0x45, 0, total, 0, 0x4000, 64, TCP, checksum)
        return self._macs + head + self._addresses + tcp + options


def _words(data: bytes) -> int:
    return sum(struct.unpack(f">{len(data) // 2}H", data))


def _folded(total: int) -> int:
    """Return a sum of 16-bit words in one's complement."""
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total
