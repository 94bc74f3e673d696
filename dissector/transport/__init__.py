"""Packets to byte streams: headers read as columns, connections, reassembly. Knows nothing of Kafka."""

from collections import Counter

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch, RunBatch, SegmentBatch
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.transport.connection_table import ConnectionTable
from dissector.transport.header_parser import HeaderParser
from dissector.transport.partitions import Partition
from dissector.transport.reassembly import Reassembler
from dissector.transport.retransmissions import Retransmissions
from dissector.transport.tcp import segments

__all__ = ["ConnectionTable", "Retransmissions", "Transport"]


class Transport:
    """The stage as a whole: packets in, runs of bytes out. Of a capture that is read in parts, those of a `share`."""

    def __init__(self, store: Store, limits: Limits, share: Partition | None = None) -> None:
        self._share = share
        self.flows = ConnectionTable(limits)
        self.ignored: Counter[str] = Counter()
        """Packets that are not TCP, or could not be read, by reason."""
        self.left = np.zeros(0, np.int64)
        """Connections of which the last packets that were fed brought the end, and of which nothing more can come."""
        self._peeling = HeaderParser(store, limits, self.ignored)
        self.resent = Retransmissions(limits)
        """What TCP sent again, and what waited for it."""
        self._reassembler = Reassembler(limits, self.ignored, self.resent)

    def feed(self, packets: PacketBatch) -> RunBatch:
        """Bytes that these packets complete. `left` has then the connections of which nothing more can come."""
        return self.reassemble(self.segments(packets))

    def segments(self, packets: PacketBatch) -> SegmentBatch:
        """The TCP segments of these packets: the first half of `feed`."""
        read = segments(packets, self.flows, self._peeling, self.ignored, self._share)
        self.left = self.flows.take_left()
        return read

    def reassemble(self, read: SegmentBatch) -> RunBatch:
        """The other half."""
        return self._reassembler.feed(read, self.left)

    def places(self) -> Int64:
        """Addresses and sizes of bytes that wait for missing ones, `(2, n)`."""
        return self._reassembler.places()

    def waits(self) -> Int64:
        """Time and packet of what waits for missing bytes, `(2, n)`."""
        return self._reassembler.waits()

    @property
    def fragments(self) -> Int64:
        """Rows of the packets fed last that are fragments of IP datagrams."""
        return self._peeling.fragments

    def finish(self) -> RunBatch:
        """The capture ends: what waited for missing bytes comes out, the holes as gaps."""
        self._peeling.finish()
        return self._reassembler.finish()
