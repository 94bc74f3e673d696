"""Writes packets to a pcapng file: one section, nanosecond timestamps, an interface per link type, a block per packet.

draft-ietf-opsawg-pcapng. The section's comment says where the packets come from; each packet may have comments, too.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

ETHERNET: Final = 1
"""LINKTYPE_ETHERNET."""
LATEST: Final = (1 << 63) - 1
"""Maximum time, nanoseconds since 1970; the minimum is 0."""
LONGEST_COMMENT: Final = 1 << 14
"""Maximum bytes of UTF-8; an option could have 64 KiB."""
_SECTION: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_STATISTICS: Final = 5
_PACKET: Final = 6
_SECRETS: Final = 10
"""A Decryption Secrets Block."""
TLS_KEY_LOG: Final = 0x544C534B
_COMMENT: Final = 1
_USER_APPLICATION: Final = 4
_IF_TSRESOL: Final = 9
_NANOSECONDS: Final = b"\x09"


class Packet(NamedTuple):
    """A packet with its time, captured or built."""

    time_ns: int
    data: bytes
    length: int | None = None
    """Bytes on the wire, if the capture has fewer."""
    link_type: int = ETHERNET
    """LINKTYPE_ number."""
    comments: tuple[str, ...] = ()


def pcapng(
    packets: Iterable[Packet], comment: str, key_log: bytes = b"", *, notes: Sequence[str] = ()
) -> Iterator[bytes]:
    """Yield the file, block by block; with a key log, if there is one, which decrypts TLS connections in it; with notes
    behind the packets, as comments of a statistics block."""
    yield section(option(_COMMENT, _text(comment)))
    if key_log:
        yield block(_SECRETS, struct.pack("<II", TLS_KEY_LOG, len(key_log)) + key_log + bytes(-len(key_log) % 4))
    interfaces: dict[int, int] = {}
    for packet in packets:
        if packet.link_type not in interfaces:
            interfaces[packet.link_type] = len(interfaces)
            yield interface(packet.link_type)
        yield _packet(packet, interfaces[packet.link_type])
    if not interfaces:
        yield interface(ETHERNET)  # Wireshark does not open a section without one
    if notes:
        options = b"".join(option(_COMMENT, _text(note)) for note in notes)
        yield block(_STATISTICS, bytes(12) + options + bytes(4))


def _packet(packet: Packet, interface: int) -> bytes:
    time_ns, data = packet.time_ns, packet.data
    length = len(data) if packet.length is None else packet.length
    head = struct.pack("<IIIII", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), length)
    options = b"".join(option(_COMMENT, _text(comment)) for comment in packet.comments)
    return block(_PACKET, head + data + bytes(-len(data) % 4) + options + bytes(4 if options else 0))


def _text(comment: str) -> bytes:
    """Encode a comment; a long one is cut, but not inside a character."""
    return comment.encode(errors="replace")[:LONGEST_COMMENT].decode(errors="ignore").encode()


def section(options: bytes = b"") -> bytes:
    """Return a section header block in little-endian order."""
    options += option(_USER_APPLICATION, b"kdissect")
    return block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + options + bytes(4))


def interface(link_type: int, snaplen: int = 0, options: bytes = b"") -> bytes:
    """Return an interface description block with nanosecond timestamps. A `snaplen` of 0 is no limit."""
    options += option(_IF_TSRESOL, _NANOSECONDS)
    return block(_INTERFACE, struct.pack("<HHI", link_type, 0, snaplen) + options + bytes(4))


def block(kind: int, body: bytes) -> bytes:
    """Return a block; `body` must be padded to four bytes."""
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def option(code: int, value: bytes) -> bytes:
    """Return an option of a block; four zeros end a block's options."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
