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
    yield section(option(_COMMENT, comment.encode(errors="replace")))
    yield interface(ETHERNET)
    for time_ns, data in packets:
        head = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), len(data))
        yield block(_PACKET, head + data + bytes(-len(data) % 4))


def section(options: bytes = b"") -> bytes:
    """A section header block of little-endian order."""
    options += option(_USER_APPLICATION, b"kdissect")
    return block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + options + bytes(4))


def interface(link_type: int, snaplen: int = 0, options: bytes = b"") -> bytes:
    """An interface description block; its clock counts nanoseconds. A `snaplen` of 0 is no limit."""
    options += option(_IF_TSRESOL, _NANOSECONDS)
    return block(_INTERFACE, struct.pack("<HHI", link_type, 0, snaplen) + options + bytes(4))


def block(kind: int, body: bytes) -> bytes:
    """A block; the body is padded to four bytes."""
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def option(code: int, value: bytes) -> bytes:
    """An option of a block; four zeros end a block's options."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
