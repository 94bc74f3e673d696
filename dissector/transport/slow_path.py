"""Packets that columns can't tell: IPv6 extension headers (RFC 8200, 4), fragments of IPv4 and IPv6. One by one.

What stands in its packet is located there; what is put together from fragments goes to the store, behind the header of
the packet that made it whole. What can't be read is counted by reason and never raises.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.limits import Limits
from dissector.store import Store
from dissector.transport.fragments import Fragments, Key
from dissector.transport.ip import IPV6_EXTENSIONS, V4_HEADER, V6_HEADER
from dissector.transport.steps import Numbers, Step
from dissector.transport.view import Layer

HOP_BY_HOP: Final = 0
FRAGMENT: Final = 44
AUTHENTICATION: Final = 51
JUMBO: Final = 0xC2
MOST_EXTENSIONS: Final = 16
INCOMPLETE: Final = "IP fragment without the others"
FRAGMENT_CUT: Final = "cut off IP fragment"
NESTED: Final = "IP fragment of a fragment"
CUT_OFF: Final = "cut off inside the IP header"


class _UnreadableError(Exception):
    """Why a packet is left out."""


class _Packet(NamedTuple):
    """From its IP header to the last captured byte; places in it count from the IP header."""

    data: memoryview
    at: int
    """Where IP's payload begins."""
    end: int
    """Past its last byte, as IP or what is around it says."""


class _Payload(NamedTuple):
    """What IP carries: in its packet (`whole` is None), or behind an IP header in bytes of its own."""

    kind: int
    at: int
    end: int
    whole: bytes | None = None


class _Found(NamedTuple):
    """A row of a batch, where its IP header stands and its captured bytes end, and what was found in it."""

    row: int
    ip: int
    captured: int
    payload: _Payload


class SlowPath:
    """Holds the fragments seen so far."""

    def __init__(self, store: Store, limits: Limits, ignored: Counter[str]) -> None:
        self._store = store
        self._ignored = ignored
        self._fragments = Fragments(limits.fragment_bytes)

    def read(self, layers: list[Layer]) -> list[Step]:
        """What is inside of these packets, all of one depth, by IP protocol."""
        if not layers:
            return []
        views = [memoryview(layer.data.data) for layer in layers]
        in_place: list[list[_Found]] = [[] for _ in layers]
        rebuilt: list[_Found] = []
        for n, row, ip, at, captured, end in _in_capture_order(layers):
            try:
                payload = self._payload(_Packet(views[n][ip:captured], at - ip, end - ip))
            except _UnreadableError as error:
                self._ignored[str(error)] += 1
                continue
            if payload is not None:
                (in_place[n] if payload.whole is None else rebuilt).append(_Found(row, ip, captured, payload))
        self._count_given_up()
        steps = [_in_place(layer, found) for layer, found in zip(layers, in_place, strict=True) if found]
        return [*steps, self._rebuilt(rebuilt, layers[0].depth)] if rebuilt else steps

    def finish(self) -> None:
        """The capture ends: fragments that still wait are counted."""
        self._fragments.finish()
        self._count_given_up()

    def _count_given_up(self) -> None:
        if self._fragments.given_up:
            self._ignored[INCOMPLETE] += self._fragments.given_up
            self._fragments.given_up = 0

    def _payload(self, packet: _Packet) -> _Payload | None:
        data = packet.data
        if data[0] >> 4 == 4:
            identification, head = struct.unpack_from(">HH", data, 4)
            key = Key(bytes(data[12:16]), bytes(data[16:20]), identification, data[9])
            return self._join(packet, V4_HEADER, key, data[9], (head & 0x1FFF) * 8, bool(head & 0x2000))
        at, kind, fragment = _skip_extensions(data, V6_HEADER, data[6])
        packet = packet._replace(at=at, end=_jumbo(data) or packet.end)
        if fragment < 0:
            return _Payload(kind, at, packet.end)
        head, identification = struct.unpack_from(">HI", data, fragment + 2)
        key = Key(bytes(data[8:24]), bytes(data[24:40]), identification, 0)
        return self._join(packet, V6_HEADER, key, kind, head & 0xFFF8, bool(head & 1))

    def _join(self, packet: _Packet, header: int, key: Key, kind: int, offset: int, more: bool) -> _Payload | None:
        data, at, end = packet
        if len(data) < end or end < at:
            raise _UnreadableError(FRAGMENT_CUT)
        joined = self._fragments.feed(key, offset, more, bytes(data[at:end]))
        if joined is None:
            return None
        whole = bytes(data[:header]) + joined
        at, kind, fragment = _skip_extensions(memoryview(whole), header, kind)
        if fragment >= 0:
            raise _UnreadableError(NESTED)
        return _Payload(kind, at, len(whole), whole)

    def _rebuilt(self, found: list[_Found], depth: int) -> Step:
        """Datagrams that were put together, in a region of the store."""
        parts = [each.payload.whole or b"" for each in found]
        size = np.array([len(part) for part in parts], np.int64)
        offset = np.cumsum(size) - size
        joined = b"".join(parts)
        base = self._store.add(joined)
        table = np.array([(each.row, each.payload.at, each.payload.kind) for each in found], np.int64)
        end = offset + size
        layer = Layer(np.frombuffer(joined, np.uint8), base, table[:, 0], offset + table[:, 1], end, end, offset, depth)
        return Step(layer, Numbers.IP_PROTOCOL, table[:, 2])


def _in_capture_order(layers: list[Layer]) -> Iterator[list[int]]:
    """Number of its layer, row, ip, at, captured and end of each packet."""
    tables = [
        np.stack([np.full(len(layer), n), layer.rows, layer.ip, layer.at, layer.captured, layer.end], axis=1)
        for n, layer in enumerate(layers)
    ]
    table = np.concatenate(tables)
    return iter(table[np.argsort(table[:, 1], kind="stable")].tolist())


def _in_place(layer: Layer, found: list[_Found]) -> Step:
    rows = [(each.row, each.ip, each.captured, each.payload.at, each.payload.end, each.payload.kind) for each in found]
    row, ip, captured, at, end, kind = np.array(rows, np.int64).T
    return Step(
        Layer(layer.data, layer.base, row, ip + at, captured, ip + end, ip, layer.depth), Numbers.IP_PROTOCOL, kind
    )


def _jumbo(data: memoryview) -> int:
    """Where the payload of a jumbogram ends (RFC 2675), 0 where the packet is none."""
    (size,) = struct.unpack_from(">H", data, 4)
    if size or data[6] != HOP_BY_HOP:
        return 0
    at, end = V6_HEADER + 2, V6_HEADER + (data[V6_HEADER + 1] + 1) * 8
    while at + 6 <= min(end, len(data)):
        if data[at] == JUMBO:
            return V6_HEADER + int.from_bytes(data[at + 2 : at + 6], "big")
        at += data[at + 1] + 2 if data[at] else 1
    return 0


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
