"""Packets to byte streams: headers read as columns, connections, reassembly. Knows nothing of Kafka."""

from collections import Counter

from dissector.events import PacketBatch, RunBatch
from dissector.limits import Limits
from dissector.store import Store
from dissector.transport.flows import Flows
from dissector.transport.reassembly import Reassembler
from dissector.transport.tcp import segments

__all__ = ["Flows", "Transport"]


class Transport:
    """The stage as a whole: packets in, runs of bytes out."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self._reassembler = Reassembler(limits)
        self.flows = Flows()
        self.ignored: Counter[str] = Counter()
        """Packets that are not TCP, or could not be read, by reason."""

    def feed(self, packets: PacketBatch) -> RunBatch:
        """Bytes that these packets complete."""
        return self._reassembler.feed(segments(packets, self.flows, self.ignored))

    def finish(self) -> RunBatch:
        """The capture ends: what waited for missing bytes comes out, the holes as gaps."""
        return self._reassembler.finish()
