"""IPv4 (RFC 791) and IPv6 (RFC 8200) headers as columns: who sends TCP to whom, and where the segment is.

Packets that need more than this (fragments, extension headers) are named in `Slow`, for `slow_path`.
"""

from collections import Counter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dissector.transport.view import Flags, Ints, PacketView

TCP: Final = 6
V4_HEADER: Final = 20
V6_HEADER: Final = 40
V4_MAPPED: Final = bytes(10) + b"\xff\xff"
MORE_OR_OFFSET: Final = 0x3FFF
IPV6_EXTENSIONS: Final = (0, 43, 44, 51, 60, 135)
"""Hop-by-hop options, routing, fragment, authentication, destination options, mobility."""
NOT_IP_PACKET: Final = "not IP"
NOT_TCP: Final = "not TCP"
ORDINARY: Final = frozenset({NOT_IP_PACKET, NOT_TCP})
"""Reasons to leave a packet out that cannot hide Kafka."""
CUT_OFF: Final = "cut off inside the IP header"


class Datagrams(NamedTuple):
    """Packets that carry a TCP segment, `(n,)` each."""

    view: PacketView
    source: npt.NDArray[np.uint8]
    """`(n, 16)`: IPv6, or IPv4 mapped into it (RFC 4291, 2.5.5.2)."""
    destination: npt.NDArray[np.uint8]
    segment: Ints
    """Where the TCP header begins."""
    end: Ints
    """Where the segment ends by the IP header; past the captured bytes where those were cut."""


class Slow(NamedTuple):
    """Packets left to the slow path: rows of the batch, and where their IP header begins."""

    rows: Ints
    ip: Ints


def datagrams(view: PacketView, ip: Ints, ignored: Counter[str]) -> tuple[list[Datagrams], list[Slow]]:
    """The packets whose IP header at `ip` says TCP, by version of IP, and those that can't be told by columns."""
    version = view.u8(ip) >> 4
    room = view.end - ip
    known = (version == 4) | (version == 6)
    four = (version == 4) & (room >= V4_HEADER)
    six = (version == 6) & (room >= V6_HEADER)
    count(ignored, CUT_OFF, known & ~four & ~six)
    count(ignored, NOT_IP_PACKET, ~known)
    found = [_ipv4(view.where(four), ip[four], ignored), _ipv6(view.where(six), ip[six], ignored)]
    return [fast for fast, _ in found], [slow for _, slow in found]


def count(ignored: Counter[str], reason: str, rows: Flags) -> None:
    """Note why these packets are left out."""
    number = int(np.count_nonzero(rows))
    if number:
        ignored[reason] += number


def _ipv4(view: PacketView, ip: Ints, ignored: Counter[str]) -> tuple[Datagrams, Slow]:
    header = (view.u8(ip) & 15) * 4
    total = view.u16(ip + 2)
    tcp = view.u8(ip + 9) == TCP
    damaged = tcp & ((header < V4_HEADER) | ((total != 0) & (total < header)))
    fragment = tcp & ~damaged & ((view.u16(ip + 6) & MORE_OR_OFFSET) != 0)
    count(ignored, NOT_TCP, ~tcp)
    count(ignored, "damaged IP header", damaged)
    slow = Slow(view.rows[fragment], ip[fragment])
    keep = tcp & ~damaged & ~fragment
    view, ip, header, total = view.where(keep), ip[keep], header[keep], total[keep]
    # A total length of 0 is a segment that the network card was to cut: it is as long as the packet.
    end = np.where(total == 0, view.offset + view.length, ip + total)
    prefix = np.broadcast_to(np.frombuffer(V4_MAPPED, np.uint8), (len(ip), 12))
    addresses = view.raw(ip + 12, 8)
    source = np.concatenate([prefix, addresses[:, :4]], axis=1)
    return Datagrams(view, source, np.concatenate([prefix, addresses[:, 4:]], axis=1), ip + header, end), slow


def _ipv6(view: PacketView, ip: Ints, ignored: Counter[str]) -> tuple[Datagrams, Slow]:
    following = view.u8(ip + 6)
    extended = np.isin(following, IPV6_EXTENSIONS)
    count(ignored, NOT_TCP, ~extended & (following != TCP))
    slow = Slow(view.rows[extended], ip[extended])
    keep = following == TCP
    view, ip = view.where(keep), ip[keep]
    size = view.u16(ip + 4)
    end = np.where(size == 0, view.offset + view.length, ip + V6_HEADER + size)
    return Datagrams(view, view.raw(ip + 8, 16), view.raw(ip + 24, 16), ip + V6_HEADER, end), slow
