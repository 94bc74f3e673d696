"""Shares of a capture that is read in parts: which part the packets of a pair of endpoints belong to.

Invariant: all packets of a pair, in either direction, belong to one part, in whatever process they are asked about.
"""

from typing import Final, NamedTuple

import numpy as np

from dissector.core.arrays import Bool, Int64, UInt8, UInt64
from dissector.transport.endpoint_index import pairs_of

_FACTORS: Final = tuple(
    np.uint64(each)
    for each in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
)  # fmt: skip
"""Odd numbers without pattern: the same in every process, so that all deal alike."""


class Partition(NamedTuple):
    """One part of so many, by number from 0."""

    number: int
    parts: int

    def has(self, marks: UInt64) -> Bool:
        """Which pairs it has, by their marks, `(n,)`."""
        has: Bool = parts_of(marks, self.parts) == self.number
        return has


def parts_of(marks: UInt64, parts: int) -> Int64:
    """The part of so many that each pair belongs to, by their marks, `(n,)`."""
    return (marks % np.uint64(parts)).astype(np.int64)


def marks_of(source: UInt8, source_port: Int64, destination: UInt8, destination_port: Int64) -> UInt64:
    """A word for each pair of endpoints, the same in either direction. Addresses are `(n, 16)`."""
    return _mixed(pairs_of(source, source_port, destination, destination_port)[0])


def _mixed(keys: UInt64) -> UInt64:
    mixed: UInt64 = np.zeros(len(keys), np.uint64)
    for word, factor in enumerate(_FACTORS):
        mixed ^= keys[:, word]
        mixed *= factor
        mixed ^= mixed >> np.uint64(29)
    return mixed
