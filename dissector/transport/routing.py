"""Which packets go together: those of one pair of endpoints, told without keeping anything from one batch to the next.

For whoever deals a capture out to several that read a part each. Of a fragment of an IP datagram nobody knows the
endpoints before it is whole: it is told apart, and whoever deals has to give it to all.
"""

from collections import Counter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dissector.events import Int64, PacketBatch
from dissector.limits import Limits
from dissector.store import Store
from dissector.transport.pairs import Words, pairs_of
from dissector.transport.peeling import Peeling
from dissector.transport.tcp import located

_FACTORS: Final = tuple(
    np.uint64(each)
    for each in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
)  # fmt: skip
"""Odd numbers without pattern: the same in every process, so that all deal alike."""


class Routed(NamedTuple):
    """Rows of a batch, ascending. Others are no TCP, or could not be read."""

    row: Int64
    """With a TCP segment: `(n,)`."""
    pair: npt.NDArray[np.uint64]
    """The same for all packets of a pair of endpoints, in either direction: `(n,)`."""
    fragment: Int64
    """Fragments of IP datagrams: `(m,)`."""


class Routing:
    """Reads headers, and nothing behind them."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self.ignored: Counter[str] = Counter()
        """Packets that are not TCP, or could not be read, by reason: without those that are fragments."""
        self._peeling = Peeling(store, limits, self.ignored)

    def route(self, packets: PacketBatch) -> Routed:
        """Where each packet belongs."""
        layers, fragment = self._peeling.unfragmented(packets)
        parts = [part for layer in layers for part in located(layer, self.ignored)]
        row = np.concatenate([np.zeros(0, np.int64), *(part.row for part in parts)])
        pair = [
            _mixed(pairs_of(part.source, part.source_port, part.destination, part.destination_port)[0])
            for part in parts
        ]
        order = np.argsort(row, kind="stable")
        return Routed(row[order], np.concatenate([np.zeros(0, np.uint64), *pair])[order], fragment)


def _mixed(keys: Words) -> npt.NDArray[np.uint64]:
    """A word for each key."""
    mixed: npt.NDArray[np.uint64] = np.zeros(len(keys), np.uint64)
    for word, factor in enumerate(_FACTORS):
        mixed ^= keys[:, word]
        mixed *= factor
        mixed ^= mixed >> np.uint64(29)
    return mixed
