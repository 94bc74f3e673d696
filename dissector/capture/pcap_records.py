"""What a pcap record's header looks like, by the file's magic; and where, behind damage, one stands again.

A header begins with four words: seconds, fraction, captured length, length. The patched tcpdumps of old Linux
distributions and of Nokia wrote more behind them, under magics of others: there the first records tell.
"""

import re
import struct
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.integers import ByteOrder, find_words
from dissector.capture.parallel_scan import byte_pattern
from dissector.core.arrays import Bool, Int64, UInt8, UInt32

CHAIN: Final = 3
"""Records in a row that make sense are not chance."""
DAY: Final = 86_400
"""Seconds that a packet is away from the last one before the damage at the most."""
LONGEST_ON_WIRE: Final = 1 << 26
HEADER_WORDS: Final = 4
NOT_YET: Final = -2
"""More bytes will tell."""
NOWHERE: Final = -1


class PcapLayout(NamedTuple):
    """How records are written."""

    order: ByteOrder
    fractions: int
    """Of a second, in one unit of a timestamp's fraction: a million or a billion."""
    header: int
    """Bytes before a packet's own."""


_SIZES: Final = {0xA1B2C3D4: (16, 24, 20), 0xA1B2CD34: (24, 28), 0xA1B23C4D: (16,)}
"""Sizes of the header under a magic, the usual one first."""
MAGICS: Final[dict[bytes, tuple[PcapLayout, ...]]] = {
    struct.pack(f"{order}I", magic): tuple(PcapLayout(order, 10**9 if magic == 0xA1B23C4D else 10**6, n) for n in sizes)
    for order in ("<", ">")
    for magic, sizes in _SIZES.items()
}


class Sense(NamedTuple):
    """What makes sense as a record of this file."""

    layout: PcapLayout
    largest: int
    second: int | None
    """When the last good packet came."""

    @property
    def mark(self) -> tuple[re.Pattern[bytes], int]:
        """What the header of a usual record looks like, and how many bytes of it are before that: seconds whose upper
        half is that of the last one's, a fraction, lengths."""
        high = [re.escape(bytes([part])) for part in struct.pack(">I", self.second or 0)[:2]]
        fraction = (
            (b"\\0", b"[\\0-\x0f]", b".", b".") if self.layout.fractions == 10**6 else (b"[\\0-\x3b]", b".", b".", b".")
        )
        pattern = byte_pattern(
            self.layout.order,
            (high[0], high[1], b".", b"."),
            fraction,
            (b"\\0", b"[\\0-\4]", b".", b"."),
            (b"\\0", b".", b".", b"."),
        )
        before = 2 if self.layout.order == "<" else 0  # patterns that begin with a byte that is known are found faster
        return re.compile(pattern[before:], re.DOTALL), before

    def all(self, words: list[UInt32]) -> Bool:
        """Which of many places make sense, by four words each."""
        second, fraction, captured, length = words
        good = (captured > 0) & (captured <= self.largest) & (fraction < self.layout.fractions)
        good &= (captured <= length) & (length <= LONGEST_ON_WIRE)
        if self.second is not None:
            good &= (second >= max(0, self.second - DAY)) & (second <= self.second + DAY)
        return good

    def one(self, data: memoryview, at: int) -> tuple[int, int] | None:
        """Captured length and second of the record at a place, if it makes sense."""
        second, fraction, captured, length = struct.unpack_from(self.layout.order + "4I", data, at)
        near = self.second is None or abs(second - self.second) <= DAY
        if near and captured <= min(length, self.largest) and length and fraction < self.layout.fractions:
            return captured, second
        return None

    def odd(self, second: Int64, fraction: Int64, captured: Int64, length: Int64) -> Bool:
        """Which of records in a row, whose lengths led from one to the next, make no sense for all that."""
        before = np.concatenate([second[:1] if self.second is None else [self.second], second[:-1]])
        odd = (abs(second - before) > DAY) | (fraction >= self.layout.fractions)
        return np.asarray(odd | (captured > length) | (length > LONGEST_ON_WIRE))

    def chain(self, data: memoryview, at: int, *, ended: bool) -> bool | None:
        """Whether records that make sense follow each other from a place on; None where more bytes will tell."""
        sense, header = self, self.layout.header
        for count in range(CHAIN):
            if at + header > len(data):
                return (count > 0 and at == len(data)) or count > 1 if ended else None
            found = sense.one(data, at)
            if found is None:
                return False
            at += header + found[0]
            sense = self._replace(second=found[1])
        return True


def layout_of(magic: bytes, data: UInt8, at: int, largest: int, *, ended: bool) -> PcapLayout | None:
    """The layout of a file: the first under its magic in which the first records make sense, else the usual one; None
    where more bytes will tell."""
    for layout in MAGICS[magic] if len(MAGICS[magic]) > 1 else ():
        chain = Sense(layout, largest, None).chain(memoryview(data.data), at, ended=ended)
        if chain is not False:
            return layout if chain else None
    return MAGICS[magic][0]


def next_record(data: UInt8, start: int, until: int, sense: Sense, *, ended: bool) -> tuple[int, int]:
    """Where from `start` to `until` the first chain of records begins, or `NOWHERE`, or `NOT_YET`; and the place up to
    which there is none."""
    stretch = data[: until + HEADER_WORDS * 4]
    for places in find_words(stretch, start, HEADER_WORDS, sense.layout.order, sense.all):
        for place in places.tolist():
            chain = sense.chain(memoryview(data.data), place, ended=ended)
            if chain is not False:
                return (NOT_YET if chain is None else place), place
    return NOWHERE, max(start, len(stretch) - HEADER_WORDS * 4 + 1)
