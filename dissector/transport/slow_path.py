"""Fragments of IPv4 and IPv6, one by one: the only packets that columns cannot handle.

A complete datagram gets the IP header of the fragment that completed it. It is copied to the store only when TCP was
found in it: other traffic is fragmented as well, and in any volume. What cannot be read is counted by reason and never
raises.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.transport.fragments import DatagramKey, Fragments
from dissector.transport.header_columns import Layer
from dissector.transport.ip import V4_HEADER, V6_HEADER
from dissector.transport.next_header import NextHeader, ProtocolNumbers

INCOMPLETE: Final = "IP fragment without the others"
FRAGMENT_CUT: Final = "cut off IP fragment"
FRAGMENT_HEADER: Final = 8


class _Whole(NamedTuple):
    """A complete datagram, with the IP header of the fragment that completed it."""

    row: int
    kind: int
    """IP protocol of its payload."""
    header: int
    """Bytes before its payload."""
    data: bytes


class FragmentPath:
    """Holds the fragments of incomplete datagrams."""

    def __init__(self, limits: Limits, ignored: Counter[str]) -> None:
        self._ignored = ignored
        self._fragments = Fragments(limits.fragment_bytes)

    def read(self, layers: list[Layer]) -> list[NextHeader]:
        """Return the datagrams that these fragments, all of one depth, complete, by IP protocol."""
        if not layers:
            return []
        views = [memoryview(layer.data.data) for layer in layers]
        whole: list[_Whole] = []
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

    def _datagram(self, row: int, packet: memoryview, at: int) -> _Whole | None:
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
        return None if payload is None else _Whole(row, kind, header, bytes(packet[:header]) + payload)


def _kinds(whole: list[_Whole]) -> Int64:
    return np.array([datagram.kind for datagram in whole], np.int64)


def _located(whole: list[_Whole], depth: int) -> Layer:
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
