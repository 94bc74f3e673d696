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
_AFTER_LENGTH: Final = struct.pack(">HHBB", 0, 0x4000, 64, TCP)
"""Of IPv4, up to the checksum: do not fragment, time to live 64."""
_V4: Final = struct.Struct(">16sH6sH12sIIHHHH")
_V6: Final = struct.Struct(">18sHBB36sIIHHHH")


class SegmentHeaders:
    """Headers from one end to the other. Both have addresses of one family."""

    def __init__(self, source: End, destination: End, *, outward: bool) -> None:
        sender, receiver = ip_address(source.host), ip_address(destination.host)
        macs = MACS[outward] + MACS[not outward]
        self._is_v4 = isinstance(sender, IPv4Address)
        addresses = sender.packed + receiver.packed
        self._pseudo_sum = _words(addresses) + TCP
        self._ip_sum = _words(addresses) + _words(_AFTER_LENGTH) + 0x4500
        self._begin = macs + (b"\x08\x00\x45\x00" if self._is_v4 else b"\x86\xdd\x60\x00\x00\x00")
        self._ends = addresses + struct.pack(">HH", source.port, destination.port)

    def header(self, flags: int, seq: int, ack: int, size: int) -> bytes:
        """Return what stands before `size` bytes of payload. Sequence numbers have 32 bits."""
        options = SYN_OPTIONS if flags & SYN else b""
        length = 20 + len(options) + size
        offset_and_flags = (20 + len(options)) << 10 | flags
        checksum = _folded(self._pseudo_sum + length)
        if not self._is_v4:
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
