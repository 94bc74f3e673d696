"""From the link layer down to TCP, through any tunnels: all packets of a batch at once, one header at a step.

Invariants:
  * every packet leads to a TCP segment, waits for its other fragments, or is counted in `ignored` by reason, once;
  * what comes of a packet follows from it and from the fragments before it, never from where a batch ends;
  * work is bounded: of so many headers, and so many tunnels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.core.batches import NOWHERE, PacketBatch
from dissector.core.limits import Limits
from dissector.core.store import Store
from dissector.transport.header_columns import Layer
from dissector.transport.next_header import HeaderProtocol, Next, NextHeader, ProtocolNumbers, Terminal
from dissector.transport.registry import REGISTRY
from dissector.transport.slow_path import FragmentPath, stored

DEEPEST: Final = 48
"""Headers before the slow path, and so many again behind it: twelve tunnels of Ethernet, IP, UDP and VXLAN."""
MOST_TUNNELS: Final = 8
"""IP headers in IP headers of which the innermost may still be a fragment's."""
TOO_DEEP: Final = "too many headers"
NESTED: Final = "IP fragment of a fragment"


class HeaderParser:
    """Finds the TCP segments of packets. Holds fragments of those that have not come whole yet."""

    def __init__(self, store: Store, limits: Limits, ignored: Counter[str]) -> None:
        self._store = store
        self._ignored = ignored
        self._slow_paths = [FragmentPath(limits, ignored) for _ in range(MOST_TUNNELS)]
        """One for each depth, so that each meets its fragments in capture order, however deep others are."""
        self.fragments: Int64 = np.zeros(0, np.int64)
        """Rows of the last batch that are fragments."""

    def segments(self, packets: PacketBatch) -> list[Layer]:
        """The TCP segments, each row of the batch at most once."""
        found: list[Layer] = []
        self.fragments = self.fragments[:0]
        self._find(packets, found)
        return [stored(layer, self._store) if layer.base == NOWHERE else layer for layer in found]

    def unfragmented(self, packets: PacketBatch) -> tuple[list[Layer], Int64]:
        """The TCP segments that came whole, and the rows that are fragments of IP datagrams, ascending: nothing is kept
        of these, and nothing counted."""
        found: list[Layer] = []
        slow = self._peel(
            [NextHeader(Layer.of(packets), ProtocolNumbers.LINK_TYPE, packets.link_type.astype(np.int64))], found
        )
        return found, np.unique(np.concatenate([np.zeros(0, np.int64), *(layer.rows for layer in slow)]))

    def flush(self) -> None:
        """Count the fragments that still wait: the capture ends."""
        for slow_path in self._slow_paths:
            slow_path.flush()

    @property
    def held_bytes(self) -> int:
        """Bytes of fragments that wait for others of their datagram."""
        return sum(slow_path.held_bytes for slow_path in self._slow_paths)

    def _find(self, packets: PacketBatch, found: list[Layer]) -> None:
        slow = self._peel(
            [NextHeader(Layer.of(packets), ProtocolNumbers.LINK_TYPE, packets.link_type.astype(np.int64))], found
        )
        for depth, slow_path in enumerate(self._slow_paths, 1):
            if not slow:
                return
            now = [layer for layer in slow if layer.depth == depth]
            self.fragments = np.concatenate([self.fragments, *(layer.rows for layer in now)])
            again = self._peel(slow_path.read(now), found)
            self._leave_out(NESTED, (layer for layer in again if layer.depth == depth))
            slow = [layer for layer in [*slow, *again] if layer.depth > depth]
        self._leave_out(TOO_DEEP, slow)

    def _peel(self, steps: list[NextHeader], found: list[Layer]) -> list[Layer]:
        """Header by header, as far as columns go; what is left for the slow path."""
        goals: dict[Terminal, list[Layer]] = {Terminal.TCP: found, Terminal.SLOW_PATH: []}
        for _ in range(DEEPEST):
            alike: dict[tuple[HeaderProtocol, int, int], list[Layer]] = {}
            for entry, layer in (resolved for step in steps for resolved in self._resolved(step)):
                if isinstance(entry, Terminal):
                    goals[entry].append(layer)
                elif isinstance(entry, str):
                    self._ignored[entry] += len(layer)
                else:
                    alike.setdefault((entry, id(layer.data), layer.depth), []).append(layer)
            # What came here on many ways goes on as one: so work does not grow with the number of ways.
            steps = [step for key, layers in alike.items() for step in self._behind(key[0], Layer.joined(layers))]
            if not steps:
                break
        self._leave_out(TOO_DEEP, (step.layer for step in steps))
        return goals[Terminal.SLOW_PATH]

    def _resolved(self, step: NextHeader) -> Iterator[tuple[Next, Layer]]:
        """What a step's rows are, none of them empty."""
        if not isinstance(step.to, ProtocolNumbers):
            yield step.to, step.layer
            return
        listed = REGISTRY[step.to]
        for entry, rows in listed.parts(step.numbers):
            if entry is None:
                self._ignored.update(listed.why(step.numbers[rows]))
            else:
                yield entry, step.layer.where(rows)

    def _behind(self, protocol: HeaderProtocol, layer: Layer) -> Iterator[NextHeader]:
        """What one header leads to."""
        fits = layer.room >= protocol.size
        if not fits.all():
            layer, short = layer.split(fits)
            self._count_short(protocol, short)
        if len(layer):
            yield from (step for step in protocol.read(layer, layer.header(protocol.size)) if len(step.layer))

    def _count_short(self, protocol: HeaderProtocol, short: Layer) -> None:
        """Packets without room for a header: sent so, or cut off."""
        sent_so = np.count_nonzero(short.end - short.at < protocol.size) if protocol.runt else 0
        counts = {protocol.runt: int(sent_so), f"cut off inside the {protocol.name} header": len(short) - int(sent_so)}
        self._ignored.update({reason: count for reason, count in counts.items() if count})

    def _leave_out(self, reason: str, layers: Iterable[Layer]) -> None:
        for layer in layers:
            self._ignored[reason] += len(layer)
