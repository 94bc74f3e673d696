"""Parses headers from the link layer to TCP, through any tunnels: all packets of a batch at once, header by header.

Invariants:
  * every packet gives a TCP segment, waits for its other fragments, or is counted in `ignored` by reason, once;
  * the result for a packet depends on it and on the fragments before it, never on where a batch ends;
  * work is bounded: headers by `DEEPEST`, tunnels by `MOST_TUNNELS`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, PacketBatch
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.transport.fragments import FragmentReader, copy_to_store
from dissector.transport.headers import HeaderProtocol, Layer, Next, NextHeader, ProtocolNumbers, Terminal
from dissector.transport.registry import REGISTRY

DEEPEST: Final = 48
"""Headers up to those of a fragment, and as many behind it: twelve tunnels of Ethernet, IP, UDP and VXLAN."""
MOST_TUNNELS: Final = 8
"""Nested IP headers of which the innermost may still be a fragment's."""
TOO_DEEP: Final = "too many headers"
NESTED: Final = "IP fragment of a fragment"


class HeaderParser:
    """Finds the TCP segments of packets. Holds IP fragments until their datagram is complete."""

    def __init__(self, store: Store, limits: Limits, ignored: Counter[str]) -> None:
        self._store = store
        self._ignored = ignored
        self._fragment_readers = [FragmentReader(limits, ignored) for _ in range(MOST_TUNNELS)]
        """One for each depth, so that each gets its fragments in capture order, however deep others are."""
        self.fragments: Int64 = np.zeros(0, np.int64)
        """Rows of the last batch that are fragments."""

    def segments(self, packets: PacketBatch) -> list[Layer]:
        """Return the TCP segments, each row of the batch at most once."""
        found: list[Layer] = []
        self.fragments = self.fragments[:0]
        self._find(packets, found)
        return [copy_to_store(layer, self._store) if layer.base == NOWHERE else layer for layer in found]

    def unfragmented(self, packets: PacketBatch) -> tuple[list[Layer], Int64]:
        """Return the TCP segments that are not fragmented, and the rows that are IP fragments, ascending. These are
        neither held nor counted."""
        found: list[Layer] = []
        fragments = self._parse(_from_link_layer(packets), found)
        return found, np.unique(np.concatenate([np.zeros(0, np.int64), *(layer.rows for layer in fragments)]))

    def flush(self) -> None:
        """Count the fragments that still wait: the capture ends."""
        for reader in self._fragment_readers:
            reader.flush()

    @property
    def held_bytes(self) -> int:
        """Bytes of fragments that wait for others of their datagram."""
        return sum(reader.held_bytes for reader in self._fragment_readers)

    def _find(self, packets: PacketBatch, found: list[Layer]) -> None:
        fragments = self._parse(_from_link_layer(packets), found)
        for depth, reader in enumerate(self._fragment_readers, 1):
            if not fragments:
                return
            now = [layer for layer in fragments if layer.depth == depth]
            self.fragments = np.concatenate([self.fragments, *(layer.rows for layer in now)])
            again = self._parse(reader.read(now), found)
            self._leave_out(NESTED, (layer for layer in again if layer.depth == depth))
            fragments = [layer for layer in [*fragments, *again] if layer.depth > depth]
        self._leave_out(TOO_DEEP, fragments)

    def _parse(self, steps: list[NextHeader], found: list[Layer]) -> list[Layer]:
        """Parse header by header, as far as columns go; return the layers that are fragments."""
        terminals: dict[Terminal, list[Layer]] = {Terminal.TCP: found, Terminal.FRAGMENT: []}
        for _ in range(DEEPEST):
            by_protocol: dict[tuple[HeaderProtocol, int, int], list[Layer]] = {}
            for entry, layer in (resolved for step in steps for resolved in self._resolved(step)):
                if isinstance(entry, Terminal):
                    terminals[entry].append(layer)
                elif isinstance(entry, str):
                    self._ignored[entry] += len(layer)
                else:
                    by_protocol.setdefault((entry, id(layer.data), layer.depth), []).append(layer)
            # Layers of one protocol are merged: so work does not grow with the combinations of headers before it.
            steps = [
                step for key, layers in by_protocol.items() for step in self._parse_header(key[0], Layer.joined(layers))
            ]
            if not steps:
                break
        self._leave_out(TOO_DEEP, (step.layer for step in steps))
        return terminals[Terminal.FRAGMENT]

    def _resolved(self, step: NextHeader) -> Iterator[tuple[Next, Layer]]:
        """Yield the protocol of each of a step's rows; none is empty."""
        if not isinstance(step.to, ProtocolNumbers):
            yield step.to, step.layer
            return
        listed = REGISTRY[step.to]
        for entry, rows in listed.parts(step.numbers):
            if entry is None:
                self._ignored.update(listed.why(step.numbers[rows]))
            else:
                yield entry, step.layer.where(rows)

    def _parse_header(self, protocol: HeaderProtocol, layer: Layer) -> Iterator[NextHeader]:
        """Parse one header; yield what follows it."""
        fits = layer.room >= protocol.size
        if not fits.all():
            layer, short = layer.split(fits)
            self._count_short(protocol, short)
        if len(layer):
            yield from (step for step in protocol.read(layer, layer.header(protocol.size)) if len(step.layer))

    def _count_short(self, protocol: HeaderProtocol, short: Layer) -> None:
        """Count packets without room for a header: sent that short, or cut off."""
        sent_so = np.count_nonzero(short.end - short.at < protocol.size) if protocol.runt else 0
        counts = {protocol.runt: int(sent_so), f"truncated {protocol.name} header": len(short) - int(sent_so)}
        self._ignored.update({reason: count for reason, count in counts.items() if count})

    def _leave_out(self, reason: str, layers: Iterable[Layer]) -> None:
        for layer in layers:
            self._ignored[reason] += len(layer)


def _from_link_layer(packets: PacketBatch) -> list[NextHeader]:
    return [NextHeader(Layer.of(packets), ProtocolNumbers.LINK_TYPE, packets.link_type.astype(np.int64))]
