"""IP defragmentation (RFC 791, 3.2; RFC 8200, 4.5): the only packets that are read one by one, in any order.

A complete datagram gets the IP header of the fragment that completed it. It is copied to the store only when TCP was
found in it: other traffic is fragmented as well, and in any volume.

Invariants:
  * a byte, once seen, never changes: of two fragments that overlap the first one captured wins;
  * what is held is bounded by `limits.fragment_bytes`, in bytes and so in number; the oldest datagram is dropped first;
  * a packet whose datagram never came whole is counted, once, and nothing raises.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.transport.headers import Layer, NextHeader, ProtocolNumbers
from dissector.transport.ip import V4_HEADER, V6_HEADER

INCOMPLETE: Final = "IP fragment without the others"
FRAGMENT_CUT: Final = "cut off IP fragment"
FRAGMENT_HEADER: Final = 8
LARGEST: Final = 65_535
"""Bytes of an IP datagram's payload: a fragment that ends behind it is an attack, or damage (RFC 1858)."""
MOST_FRAGMENTS: Final = 2_048
"""Of one datagram: 64 KiB at the least MTU of IPv4, 68 bytes, are 1,366."""
UNIT: Final = 8
"""The unit of offsets, in bytes; the size of every fragment but the last is a multiple of it."""
OVERHEAD: Final = 200
"""Bytes that holding a fragment costs besides its data: so many small ones are bounded as well."""


class DatagramKey(NamedTuple):
    """Identifies the datagram of a fragment."""

    source: bytes
    destination: bytes
    identification: int
    protocol: int
    """Of IPv4; 0 for IPv6, which does not need it."""


@dataclass(slots=True)
class _DatagramFragments:
    """The fragments of one datagram so far."""

    pieces: dict[int, bytes] = field(default_factory=dict)
    size: int = 0
    """Of all pieces, overlaps counted twice."""
    covered: int = 0
    """A bit for each 8 bytes that are there: checking for completeness costs the same however it was fragmented."""
    total: int = -1
    """Bytes of the datagram, -1 until its last fragment is there."""
    packets: int = 0


class Fragments:
    """All incomplete datagrams."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[DatagramKey, _DatagramFragments] = {}
        self._cost = 0
        self.given_up = 0
        """Packets whose datagram was dropped."""

    def feed(self, key: DatagramKey, offset: int, more: bool, data: bytes) -> bytes | None:
        """Add a fragment; return the datagram's payload if it completes it."""
        if offset + len(data) > LARGEST or (more and (not data or len(data) % UNIT)):
            self.given_up += 1
            return None
        parts = self._held.setdefault(key, _DatagramFragments())
        parts.packets += 1
        if offset not in parts.pieces:
            parts.pieces[offset] = data
            parts.size += len(data)
            parts.covered |= _units(len(data)) << offset // UNIT
            self._cost += len(data) + OVERHEAD
        if not more and parts.total < 0:
            parts.total = offset + len(data)
        wanted = _units(parts.total)
        whole = None
        if parts.total >= 0 and parts.covered & wanted == wanted:
            whole = _whole(self._forget(key))
        elif len(parts.pieces) > MOST_FRAGMENTS:
            self._give_up(key)
        while self._cost > self._limit:
            self._give_up(next(iter(self._held)))
        return whole

    def flush(self) -> None:
        """Drop all datagrams: the capture ends."""
        for key in list(self._held):
            self._give_up(key)

    @property
    def held_bytes(self) -> int:
        """Bytes of the fragments that wait, and what holding them costs."""
        return self._cost

    def _forget(self, key: DatagramKey) -> _DatagramFragments:
        parts = self._held.pop(key)
        self._cost -= parts.size + OVERHEAD * len(parts.pieces)
        return parts

    def _give_up(self, key: DatagramKey) -> None:
        self.given_up += self._forget(key).packets


def _units(size: int) -> int:
    """A bit for each unit of so many bytes."""
    return (1 << -(-size // UNIT)) - 1 if size > 0 else 0


def _whole(parts: _DatagramFragments) -> bytes:
    """The payload."""
    out = bytearray(parts.total)
    for offset, data in reversed(parts.pieces.items()):  # so that the first one captured is written last
        if offset < parts.total:
            out[offset : offset + len(data)] = data
    return bytes(out[: parts.total])


class _Datagram(NamedTuple):
    """A complete datagram, with the IP header of the fragment that completed it."""

    row: int
    kind: int
    """IP protocol of its payload."""
    header: int
    """Bytes before its payload."""
    data: bytes


class FragmentReader:
    """Reads fragments of one depth of tunnels, which come as columns."""

    def __init__(self, limits: Limits, ignored: Counter[str]) -> None:
        self._ignored = ignored
        self._fragments = Fragments(limits.fragment_bytes)

    def read(self, layers: list[Layer]) -> list[NextHeader]:
        """Return the datagrams that these fragments, all of one depth, complete, by IP protocol."""
        if not layers:
            return []
        views = [memoryview(layer.data.data) for layer in layers]
        whole: list[_Datagram] = []
        for n, row, ip, at, captured, end in _in_capture_order(layers):
            if end > captured or end < at:
                self._ignored[FRAGMENT_CUT] += 1
                continue
            datagram = self._datagram(row, views[n][ip:end], at - ip)
            if datagram is not None:
                whole.append(datagram)
        self._count_given_up()
        depth = layers[0].depth
        versions = [(V4_HEADER, ProtocolNumbers.IP_PROTOCOL), (V6_HEADER, ProtocolNumbers.NEXT_HEADER)]
        parts = [([datagram for datagram in whole if datagram.header == header], to) for header, to in versions]
        return [NextHeader(_located(part, depth), to, _kinds(part)) for part, to in parts if part]

    def flush(self) -> None:
        """Count the fragments that still wait: the capture ends."""
        self._fragments.flush()
        self._count_given_up()

    @property
    def held_bytes(self) -> int:
        """Bytes of the fragments that wait."""
        return self._fragments.held_bytes

    def _count_given_up(self) -> None:
        if self._fragments.given_up:
            self._ignored[INCOMPLETE] += self._fragments.given_up
            self._fragments.given_up = 0

    def _datagram(self, row: int, packet: memoryview, at: int) -> _Datagram | None:
        """Add a fragment, from its IP header on; return the datagram if it completes it."""
        if packet[0] >> 4 == 4:
            header, kind = V4_HEADER, packet[9]
            identification, head = struct.unpack_from(">HH", packet, 4)
            key = DatagramKey(bytes(packet[12:16]), bytes(packet[16:20]), identification, kind)
            offset, more = (head & 0x1FFF) * 8, head & 0x2000
        else:
            header, kind = V6_HEADER, packet[at]
            head, identification = struct.unpack_from(">HI", packet, at + 2)
            key = DatagramKey(bytes(packet[8:24]), bytes(packet[24:40]), identification, 0)
            offset, more = head & 0xFFF8, head & 1
            at += FRAGMENT_HEADER
        payload = self._fragments.feed(key, offset, bool(more), bytes(packet[at:]))
        return None if payload is None else _Datagram(row, kind, header, bytes(packet[:header]) + payload)


def _kinds(whole: list[_Datagram]) -> Int64:
    return np.array([datagram.kind for datagram in whole], np.int64)


def _located(whole: list[_Datagram], depth: int) -> Layer:
    """Copy the datagrams to one buffer."""
    size = np.array([len(datagram.data) for datagram in whole], np.int64)
    start = np.cumsum(size) - size
    data = np.frombuffer(b"".join(datagram.data for datagram in whole), np.uint8)
    row, header = np.array([(datagram.row, datagram.header) for datagram in whole], np.int64).T
    end = start + size
    return Layer(data, NOWHERE, row, start + header, end, end, start, depth)


def copy_to_store(layer: Layer, store: Store) -> Layer:
    """Copy a layer to a region of the store, from the innermost IP header on."""
    view = memoryview(layer.data.data)
    places = zip(layer.ip.tolist(), layer.captured.tolist(), strict=True)
    data = b"".join(view[ip:captured] for ip, captured in places)
    size = layer.captured - layer.ip
    moved = np.cumsum(size) - size - layer.ip
    columns = (layer.at + moved, layer.captured + moved, layer.end + moved, layer.ip + moved)
    return Layer(np.frombuffer(data, np.uint8), store.add(data), layer.rows, *columns, layer.depth)


def _in_capture_order(layers: list[Layer]) -> Iterator[list[int]]:
    """Yield number of the layer, row, ip, at, captured and end of each packet."""
    tables = [
        np.stack([np.full(len(layer), n), layer.rows, layer.ip, layer.at, layer.captured, layer.end], axis=1)
        for n, layer in enumerate(layers)
    ]
    table = np.concatenate(tables)
    return iter(table[np.argsort(table[:, 1], kind="stable")].tolist())
