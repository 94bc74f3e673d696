"""The transport stage: packets in, runs of bytes out."""

from collections import Counter

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch, RunBatch, SegmentBatch
from dissector.core.limits import Limits
from dissector.core.stage import Position, oldest_position
from dissector.core.store import Store
from dissector.transport.connection_table import ConnectionTable
from dissector.transport.header_parser import HeaderParser
from dissector.transport.partitions import Partition
from dissector.transport.reassembly import Reassembler
from dissector.transport.retransmissions import Retransmissions
from dissector.transport.tcp import segments
from dissector.transport.tcp_facts import TcpFactsTable


class Transport:
    """Reassembles the TCP streams of a capture, or those of one `partition` of it. A `Stage`."""

    def __init__(self, store: Store, limits: Limits, partition: Partition | None = None) -> None:
        self._partition = partition
        self.connections = ConnectionTable(limits)
        self.ignored: Counter[str] = Counter()
        """Packets that are not TCP, or could not be read, by reason."""
        self.closed_connections = np.zeros(0, np.int64)
        """Connections that get nothing more after the packets fed last. `feed` has returned their last runs; stages
        behind this one need an `end` for them."""
        self.retransmissions = Retransmissions(limits)
        self.facts = TcpFactsTable(self.retransmissions)
        """What TCP did on each connection."""
        self._headers = HeaderParser(store, limits, self.ignored)
        self._reassembler = Reassembler(limits, self.ignored, self.retransmissions)

    def feed(self, batch: PacketBatch) -> list[RunBatch]:
        """Return the bytes that these packets complete; set `closed_connections`."""
        return [self.reassemble(self.segments(batch))]

    def segments(self, packets: PacketBatch) -> SegmentBatch:
        """Return the TCP segments of these packets: the first half of `feed`."""
        found = segments(packets, self.connections, self._headers, self.ignored, self._partition)
        self.closed_connections = self.connections.take_closed()
        self.facts.feed(found)
        return found

    def reassemble(self, segments: SegmentBatch) -> RunBatch:
        """Return the bytes that these segments complete: the second half of `feed`."""
        return self._counted(self._reassembler.feed(segments, self.closed_connections))

    def end(self, connections: Int64) -> list[RunBatch]:
        """Return what waited for missing bytes of these connections, the holes as gaps."""
        return [self._counted(self._reassembler.end(connections))] if len(connections) else []

    def flush(self) -> list[RunBatch]:
        """Return what waited for missing bytes, the holes as gaps."""
        self._headers.flush()
        return [self._counted(self._reassembler.flush())]

    def _counted(self, runs: RunBatch) -> RunBatch:
        self.facts.add_gaps(runs)
        return runs

    @property
    def held_bytes(self) -> int:
        """At most `limits.out_of_order_bytes` a direction, and `limits.fragment_bytes` at each depth of tunnels."""
        return self._reassembler.held_bytes + self._headers.held_bytes

    def held_regions(self) -> Int64:
        """Addresses and sizes of bytes that wait for missing ones, `(2, n)`."""
        return self._reassembler.held_regions()

    def oldest_pending(self, after_ns: int = -1) -> Position:
        """The first packet with bytes that wait for missing ones."""
        return oldest_position(self._reassembler.pending(), after_ns)

    @property
    def fragments(self) -> Int64:
        """Rows of the packets fed last that are fragments of IP datagrams."""
        return self._headers.fragments
