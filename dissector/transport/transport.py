"""The transport stage: packets in, runs of bytes out."""

from collections import Counter

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import PacketBatch, RunBatch, SegmentBatch
from dissector.core.limits import Limits
from dissector.core.stage import Position, oldest_position
from dissector.core.store import Store
from dissector.transport.connection_table import ConnectionTable
from dissector.transport.deliveries import Deliveries
from dissector.transport.header_parser import HeaderParser
from dissector.transport.partitions import Partition, pair_hashes
from dissector.transport.reassembly import Reassembler
from dissector.transport.retransmissions import Retransmissions
from dissector.transport.tcp import TcpHeaders, joined_headers, tcp_headers
from dissector.transport.tcp_facts import TcpFactsTable


class Transport:
    """Reassembles the TCP streams of a capture, or those of one `partition` of it. A `Stage`."""

    def __init__(
        self, store: Store, limits: Limits, partition: Partition | None = None, *, is_patient: bool = False
    ) -> None:
        """It `is_patient` in a capture that does not grow: late bytes are waited for."""
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
        self.deliveries = Deliveries(limits)
        """What it got through, and what it did not."""
        self._headers = HeaderParser(store, limits, self.ignored)
        self._reassembler = Reassembler(limits, self.ignored, self.retransmissions, is_patient=is_patient)

    def feed(self, batch: PacketBatch) -> list[RunBatch]:
        """Return the bytes that these packets complete; set `closed_connections`."""
        return [self.reassemble(self.segments(batch))]

    def segments(self, packets: PacketBatch) -> SegmentBatch:
        """Return the TCP segments of these packets, in capture order: the first half of `feed`. Other packets are
        counted in `ignored`.

        IP fragments are in all partitions of a capture, and the segment of their datagram belongs to one."""
        parts = [tcp_headers(layer, self.ignored) for layer in self._headers.segments(packets)]
        found = self._segments(joined_headers(parts), packets)
        self.closed_connections = self.connections.take_closed()
        self.facts.feed(found)
        self.deliveries.feed(found)
        return found

    def _segments(self, found: TcpHeaders, packets: PacketBatch) -> SegmentBatch:
        if self._partition is not None and len(self._headers.fragments):
            is_ours = self._partition.contains(pair_hashes(found.keys))
            found = TcpHeaders._make(column[is_ours] for column in found)
        packet, time_ns = packets.number[found.row], packets.time_ns[found.row]
        direction = self.connections.directions(
            found.keys, found.higher, found.flags, found.seq, found.ack, found.size + found.missing, packet, time_ns
        )
        return SegmentBatch(
            packet, time_ns, direction, found.seq.astype(np.uint32), found.ack.astype(np.uint32),
            found.flags.astype(np.uint8), found.address, found.size, found.missing, found.window,
            found.scale,
        )  # fmt: skip

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
