"""IPv6 packets with TCP headers, as the layer that the parser of headers hands on."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dissector.core.arrays import UInt64
from dissector.transport.headers import Layer
from dissector.transport.tcp import TcpHeaders, tcp_headers

Pairs = list[tuple[tuple[bytes, int], tuple[bytes, int]]]
"""Addresses of 16 bytes, and ports: of the sender, and of the receiver."""
IP = 40


def layer_of(packets: Sequence[bytes], captured: Sequence[int] | None = None) -> Layer:
    """Packets that begin with an IPv6 header, each cut off behind so many bytes."""
    sizes = np.array([len(each) for each in packets], np.int64)
    at = np.cumsum(sizes) - sizes
    there = sizes if captured is None else np.minimum(captured, sizes)
    data = np.frombuffer(b"".join(packets), np.uint8)
    return Layer(data, 0, np.arange(len(packets)), at + IP, at + there, at + sizes, at, depth=1)


def packet(ends: tuple[tuple[bytes, int], tuple[bytes, int]], options: bytes = b"", flags: int = 16) -> bytes:
    """A packet without payload."""
    (source, from_port), (destination, to_port) = ends
    ports = from_port.to_bytes(2, "big") + to_port.to_bytes(2, "big")
    header = ports + bytes(8) + bytes((5 + len(options) // 4 << 4, flags)) + bytes(6)
    return b"\x60" + bytes(7) + source + destination + header + options


def headers_of(packets: Sequence[bytes], captured: Sequence[int] | None = None) -> tuple[TcpHeaders, Counter[str]]:
    """What is read of packets, and what is ignored."""
    ignored: Counter[str] = Counter()
    return tcp_headers(layer_of(packets, captured), ignored), ignored


def keys_of(pairs: Pairs) -> UInt64:
    """The keys of pairs of endpoints."""
    return headers_of([packet(each) for each in pairs])[0].keys
