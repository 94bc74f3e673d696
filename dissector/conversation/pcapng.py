"""Packets to a pcapng file: one section, one Ethernet interface whose clock counts nanoseconds, a block a packet.

draft-ietf-opsawg-pcapng. A comment on the section says that the packets are made, and from what.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from dissector.conversation.headers import ETHERNET
from dissector.conversation.packets import MadePacket

LATEST: Final = (1 << 63) - 1
"""Nanoseconds since 1970: what a time may be at most, and at least 0."""
_SECTION: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_PACKET: Final = 6
_COMMENT: Final = 1
_USER_APPLICATION: Final = 4
_IF_TSRESOL: Final = 9
_NANOSECONDS: Final = b"\x09"


def pcapng(packets: Iterable[MadePacket], comment: str) -> Iterator[bytes]:
    """The file, block by block."""
    about = _option(_COMMENT, comment.encode(errors="replace")) + _option(_USER_APPLICATION, b"kdissect")
    yield _block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + about + bytes(4))
    yield _block(_INTERFACE, struct.pack("<HHI", ETHERNET, 0, 0) + _option(_IF_TSRESOL, _NANOSECONDS) + bytes(4))
    for time_ns, data in packets:
        head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), len(data))
        yield _block(_PACKET, head + data + bytes(-len(data) % 4))


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
