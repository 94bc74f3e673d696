"""Which packets go together: those of one pair of endpoints, told without keeping anything from one batch to the next.

For whoever deals a capture out to several that read a part each. Of a fragment of an IP datagram nobody knows the
endpoints before it is whole: it is told apart, and whoever deals has to give it to all.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from dissector.core.arrays import Int64, UInt64
from dissector.core.batches import PacketBatch
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.transport.header_parser import HeaderParser
from dissector.transport.partitions import marks_of
from dissector.transport.tcp import located


class Routed(NamedTuple):
    """Rows of a batch, ascending. Others are no TCP, or could not be read."""

    row: Int64
    """With a TCP segment: `(n,)`."""
    pair: UInt64
    """The same for all packets of a pair of endpoints, in either direction: `(n,)`."""
    fragment: Int64
    """Fragments of IP datagrams: `(m,)`."""


class Routing:
    """Reads headers, and nothing behind them."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self.ignored: Counter[str] = Counter()
        """Packets that are not TCP, or could not be read, by reason: without those that are fragments."""
        self._peeling = HeaderParser(store, limits, self.ignored)

    def route(self, packets: PacketBatch) -> Routed:
        """Where each packet belongs."""
        layers, fragment = self._peeling.unfragmented(packets)
        parts = [part for layer in layers for part in located(layer, self.ignored)]
        row = np.concatenate([np.zeros(0, np.int64), *(part.row for part in parts)])
        pair = [marks_of(part.source, part.source_port, part.destination, part.destination_port) for part in parts]
        order = np.argsort(row, kind="stable")
        return Routed(row[order], np.concatenate([np.zeros(0, np.uint64), *pair])[order], fragment)
