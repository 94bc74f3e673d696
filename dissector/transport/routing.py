"""Finds the pair of endpoints of each packet, without state from batch to batch: to shuffle a capture into partitions.

The endpoints of an IP fragment are unknown until its datagram is complete: fragments are listed, and belong to every
partition.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from dissector.core.arrays import Int64, UInt64
from dissector.core.batches import PacketBatch
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.transport.header_parser import HeaderParser
from dissector.transport.partitions import pair_hashes
from dissector.transport.tcp import tcp_headers


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
