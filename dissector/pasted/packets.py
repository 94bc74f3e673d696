"""Whether bytes in a text are packets: link headers, IP, TCP.

A packet is believed by its own numbers: an IP header with TCP behind it, a length that ends where the bytes end (or,
of a packet that was cut, a checksum that is right), a TCP header inside. Kafka's frames, whose first bytes are sizes,
never read so.
"""

import re
from typing import Final, NamedTuple

from dissector.conversation.headers import checksum
from dissector.core.times import SECOND, fraction_ns

_LINKS: Final = (
    # LINKTYPE_ number, bytes of the header, where the protocol's number is in it, and its values.
    (101, 0, None),
    (1, 14, 12),
    (1, 18, 16),
    (113, 16, 14),
    (276, 20, 0),
    (0, 4, None),
)
_ETHERTYPES: Final = (b"\x08\x00", b"\x86\xdd")
_FAMILIES: Final = frozenset(
    made for family in (2, 24, 28, 30) for made in (family.to_bytes(4, "little"), family.to_bytes(4, "big"))
)
"""IPv4, and IPv6 as BSDs and macOS number it."""
_TCP: Final = 6
_IPV4, _IPV6, _TCP_HEADER = 20, 40, 20
_PADDED: Final = 60
"""Bytes to which Ethernet pads a short packet."""
_STAMP: Final = re.compile(
    r"(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[ T])?"
    r"(?<!\d)(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)\.(?P<fraction>\d{1,9})"
    r"|(?<![\d.:])(?P<epoch>\d{9,10})\.(?P<part>\d{1,9})(?![\d.:])"
)


class PacketHead(NamedTuple):
    """What a packet's headers say."""

    link_type: int
    length: int
    """Bytes on the wire."""


def packet_head(data: bytes, missing: int = 0) -> PacketHead | None:
    """Return what the headers of a packet say; None if the bytes are no packet of TCP. Of a packet that was cut, at
    least `missing` bytes are not there."""
    for link_type, size, at in _LINKS:
        if len(data) < size + _IPV4 + _TCP_HEADER:
            continue
        if at is not None and data[at : at + 2] not in _ETHERTYPES:
            continue
        if link_type == 0 and data[:4] not in _FAMILIES:
            continue
        length = _ip_length(data[size:], padding=size if link_type == 1 else 0)
        if length is not None and size + length >= len(data) + missing - _PADDED:
            return PacketHead(link_type, max(len(data), size + length))
    return None


def _ip_length(data: bytes, padding: int) -> int | None:
    """Return the length of an IP packet with TCP inside; None if it is none."""
    version = data[0] >> 4
    if version == 4:
        size, length, protocol = 4 * (data[0] & 15), int.from_bytes(data[2:4], "big"), data[9]
        right = size >= _IPV4 and checksum(data[:10] + b"\0\0" + data[12:size]).to_bytes(2, "big") == data[10:12]
        if length == 0 and right:  # left to the network card
            length = len(data)
    elif version == 6 and len(data) >= _IPV6 + _TCP_HEADER:
        size, length, protocol, right = _IPV6, _IPV6 + int.from_bytes(data[4:6], "big"), data[6], False
    else:
        return None
    if size < _IPV4 or protocol != _TCP or len(data) < size + _TCP_HEADER or length < size + _TCP_HEADER:
        return None
    if data[size + 12] >> 4 < 5 or size + 4 * (data[size + 12] >> 4) > length or data[size + 12] & 14:
        return None
    whole = length == len(data)
    padded = bool(padding) and length < len(data) and padding + len(data) <= _PADDED
    return length if whole or padded or (length > len(data) and (right or version == 6)) else None


def time_in(context: str) -> int | None:
    """Return the time in the text before a packet, as `tcpdump` and `tshark` print it, in nanoseconds since 1970 (of a
    time without a date: since midnight); None if there is none."""
    found_all = list(_STAMP.finditer(context))
    if not found_all:
        return None
    last = found_all[-1]
    if last["epoch"]:
        return int(last["epoch"]) * SECOND + fraction_ns(last["part"])
    seconds = int(last["h"]) * 3600 + int(last["m"]) * 60 + int(last["s"])
    if last["year"]:
        from datetime import date

        try:
            seconds += (date(int(last["year"]), int(last["month"]), int(last["day"])) - date(1970, 1, 1)).days * 86_400
        except ValueError:
            return None
    found = seconds * SECOND + fraction_ns(last["fraction"])
    return found if 0 <= found < 1 << 63 else None
