"""IP defragmentation (RFC 791, 3.2; RFC 8200, 4.5), of fragments in any order.

Invariants:
  * a byte, once seen, never changes: of two fragments that overlap the first one captured wins;
  * what is held is bounded by `limits.fragment_bytes`, in bytes and so in number; the oldest datagram is dropped first;
  * a packet whose datagram never came whole is counted, once.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

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
