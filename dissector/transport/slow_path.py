"""Packets that columns can't tell: IPv6 extension headers (RFC 8200, 4), fragments of IPv4 and IPv6. One by one.

A segment that stands in its packet is located there; one put together from fragments goes to the store. What can't be
read is counted by reason and never raises.
"""

import struct
from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from dissector.events import PacketBatch
from dissector.limits import Limits
from dissector.store import Store
from dissector.transport.fragments import Fragments, Key
from dissector.transport.ip import (
    CUT_OFF,
    IPV6_EXTENSIONS,
    NOT_TCP,
    TCP,
    V4_HEADER,
    V4_MAPPED,
    V6_HEADER,
    Datagrams,
    Slow,
)
from dissector.transport.view import Ints, PacketView

FRAGMENT: Final = 44
AUTHENTICATION: Final = 51
MOST_EXTENSIONS: Final = 16
INCOMPLETE: Final = "IP fragment without the others"
FRAGMENT_CUT: Final = "cut off IP fragment"


class _UnreadableError(Exception):
    """Why a packet is left out."""


class _Located(NamedTuple):
    """A segment: in its packet (`whole` is None), or in bytes of its own."""

    row: int
    source: bytes
    destination: bytes
    at: int
    end: int
    whole: bytes | None = None


class SlowPath:
    """Holds the fragments seen so far."""

    def __init__(self, store: Store, limits: Limits, ignored: Counter[str]) -> None:
        self._store = store
        self._ignored = ignored
        self._fragments = Fragments(limits.fragment_bytes)

    def read(self, packets: PacketBatch, slow: list[Slow]) -> list[Datagrams]:
        """The TCP segments of these packets."""
        rows = np.concatenate([part.rows for part in slow])
        ip = np.concatenate([part.ip for part in slow])
        order = np.argsort(rows, kind="stable")
        found = []
        for row, at in zip(rows[order].tolist(), ip[order].tolist(), strict=True):
            try:
                segment = self._segment(packets, row, at)
            except _UnreadableError as error:
                self._ignored[str(error)] += 1
            else:
                if segment is not None:
                    found.append(segment)
        self._count_given_up()
        in_place = [segment for segment in found if segment.whole is None]
        rebuilt = [segment for segment in found if segment.whole is not None]
        return [self._in_place(packets, in_place)] * bool(in_place) + [self._rebuilt(rebuilt)] * bool(rebuilt)

    def finish(self) -> None:
        """The capture ends: fragments that still wait are counted."""
        self._fragments.finish()
        self._count_given_up()

    def _count_given_up(self) -> None:
        if self._fragments.given_up:
            self._ignored[INCOMPLETE] += self._fragments.given_up
            self._fragments.given_up = 0

    def _segment(self, packets: PacketBatch, row: int, ip: int) -> _Located | None:
        start = int(packets.offset[row])
        packet = memoryview(packets.data.data)[ip : start + int(packets.captured[row])]
        wire = start + int(packets.length[row]) - ip
        if packet[0] >> 4 == 4:
            return self._ipv4_fragment(row, packet, wire)
        (size,) = struct.unpack_from(">H", packet, 4)
        source, destination = bytes(packet[8:24]), bytes(packet[24:40])
        at, kind, fragment = _skip_extensions(packet, V6_HEADER, packet[6])
        end = V6_HEADER + size if size else wire
        if fragment < 0:
            if kind != TCP:
                raise _UnreadableError(NOT_TCP)
            return _Located(row, source, destination, ip + at, ip + end)
        head, identification = struct.unpack_from(">HI", packet, fragment + 2)
        key = Key(source, destination, identification, 6)
        return self._join(row, key, kind, head & 0xFFF8, bool(head & 1), packet, at, end)

    def _ipv4_fragment(self, row: int, packet: memoryview, wire: int) -> _Located | None:
        total, identification, head = struct.unpack_from(">HHH", packet, 2)
        source, destination = (V4_MAPPED + bytes(packet[at : at + 4]) for at in (12, 16))
        header = max((packet[0] & 15) * 4, V4_HEADER)
        key = Key(source, destination, identification, 4)
        offset, more = (head & 0x1FFF) * 8, bool(head & 0x2000)
        return self._join(row, key, TCP, offset, more, packet, header, total or wire)

    def _join(
        self, row: int, key: Key, kind: int, offset: int, more: bool, packet: memoryview, at: int, end: int
    ) -> _Located | None:
        if len(packet) < end or end < at:
            raise _UnreadableError(FRAGMENT_CUT)
        whole = self._fragments.feed(key, offset, more, bytes(packet[at:end]))
        if whole is None:
            return None
        at, kind, fragment = _skip_extensions(memoryview(whole), 0, kind)
        if kind != TCP or fragment >= 0:
            raise _UnreadableError(NOT_TCP)
        return _Located(row, key.source, key.destination, at, len(whole), whole)

    def _in_place(self, packets: PacketBatch, found: list[_Located]) -> Datagrams:
        view = PacketView.of(packets, np.array([segment.row for segment in found], np.int64))
        return _datagrams(view, found, np.zeros(len(found), np.int64))

    def _rebuilt(self, found: list[_Located]) -> Datagrams:
        """The segments of datagrams that were put together, in a region of the store."""
        parts = [segment.whole or b"" for segment in found]
        size = np.array([len(part) for part in parts], np.int64)
        offset = np.cumsum(size) - size
        joined = b"".join(parts)
        base = self._store.add(joined)
        rows = np.array([segment.row for segment in found], np.int64)
        view = PacketView(np.frombuffer(joined, np.uint8), base, rows, offset, size, size)
        return _datagrams(view, found, offset)


def _datagrams(view: PacketView, found: list[_Located], offset: Ints) -> Datagrams:
    source = np.frombuffer(b"".join(segment.source for segment in found), np.uint8).reshape(-1, 16)
    destination = np.frombuffer(b"".join(segment.destination for segment in found), np.uint8).reshape(-1, 16)
    at = np.array([segment.at for segment in found], np.int64) + offset
    end = np.array([segment.end for segment in found], np.int64) + offset
    return Datagrams(view, source, destination, at, end)


def _skip_extensions(data: memoryview, at: int, kind: int) -> tuple[int, int, int]:
    """Where the payload begins, what it is, and where the fragment header stands, -1 for none.

    Behind a fragment header only the first fragment goes on with headers, so the chain stops there.
    """
    for _ in range(MOST_EXTENSIONS):
        if kind not in IPV6_EXTENSIONS:
            return at, kind, -1
        if at + 8 > len(data):
            raise _UnreadableError(CUT_OFF)
        following, length = data[at], data[at + 1]
        if kind == FRAGMENT:
            (head,) = struct.unpack_from(">H", data, at + 2)
            if head & 0xFFF9:
                return at + 8, following, at
            length = 0  # an atomic fragment is whole (RFC 6946)
        at += (length + 2) * 4 if kind == AUTHENTICATION else (length + 1) * 8
        kind = following
    raise _UnreadableError("too many IPv6 extension headers")
