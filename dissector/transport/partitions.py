"""Capture partitions: parts of a capture that are read on their own, each with whole pairs of endpoints.

Invariant: all packets of a pair, in either direction, belong to one partition, the same in every process.

`PacketRouter` finds the pair of each packet, without state from batch to batch. The endpoints of an IP fragment are
unknown until its datagram is complete: fragments are listed, and belong to every partition.
"""

from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt64
from dissector.core.batches import PacketBatch
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.transport.header_parser import HeaderParser
from dissector.transport.tcp import tcp_headers

_FACTORS: Final = tuple(
    np.uint64(each)
    for each in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
)  # fmt: skip
"""Odd numbers without pattern. Constants, so that every process partitions in the same way."""


class Partition(NamedTuple):
    """One of `parts` partitions, numbered from 0."""

    number: int
    parts: int

    def contains(self, hashes: UInt64) -> Bool:
        """Which pairs are in this partition, by their hashes, `(n,)`."""
        contains: Bool = partitions_of(hashes, self.parts) == self.number
        return contains


def partitions_of(hashes: UInt64, parts: int) -> Int64:
    """Return the number of the partition of each pair, by their hashes, `(n,)`."""
    return (hashes % np.uint64(parts)).astype(np.int64)


def pair_hashes(keys: UInt64) -> UInt64:
    """Return a hash of each pair of endpoints, by its key as in `EndpointIndex`: the same in either direction."""
    mixed: UInt64 = np.zeros(len(keys), np.uint64)
    for word, factor in enumerate(_FACTORS):
        mixed ^= keys[:, word]
        mixed *= factor
        mixed ^= mixed >> np.uint64(29)
    return mixed


class RoutedPackets(NamedTuple):
    """Rows of a batch, ascending. Other packets are not TCP, or could not be read."""

    row: Int64
    """With a TCP segment: `(n,)`."""
    pair: UInt64
    """A hash, the same for all packets of a pair of endpoints, in either direction: `(n,)`."""
    fragment: Int64
    """Fragments of IP datagrams: `(m,)`."""


class PacketRouter:
    """Reads headers only."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self.ignored: Counter[str] = Counter()
        """Packets that are not TCP, or could not be read, by reason, without fragments."""
        self._headers = HeaderParser(store, limits, self.ignored)

    def route(self, packets: PacketBatch) -> RoutedPackets:
        """Return the pairs of endpoints of packets."""
        layers, fragment = self._headers.unfragmented(packets)
        parts = [tcp_headers(layer, self.ignored) for layer in layers]
        row = np.concatenate([np.zeros(0, np.int64), *(part.row for part in parts)])
        pair = [pair_hashes(part.keys) for part in parts]
        order = np.argsort(row, kind="stable")
        return RoutedPackets(row[order], np.concatenate([np.zeros(0, np.uint64), *pair])[order], fragment)
