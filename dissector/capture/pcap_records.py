"""The layout of pcap record headers, by the file's magic; where records begin, which the native kernel finds by their
lengths (`capture.c`); and the search for the next record after damage.

A header begins with four words: seconds, fraction, captured length, length. The patched tcpdumps of old Linux
distributions and of Nokia wrote more after them, under the magics of other formats: the layout is then chosen by the
first records.
"""

import struct
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.integers import ByteOrder, find_chain
from dissector.core.arrays import Bool, Int64, UInt8, UInt32
from dissector.core.kernel import kernel_function

_pcap_records = kernel_function("pcap_records", "PqqqqqiPq")
CHAIN: Final = 3
"""Plausible records in a row that are not chance."""
DAY: Final = 86_400
"""Maximum seconds between a packet and the last one before the damage."""
LONGEST_ON_WIRE: Final = 1 << 26
HEADER_WORDS: Final = 4


class PcapLayout(NamedTuple):
    """Layout of records."""

    order: ByteOrder
    fractions: int
    """Units of a timestamp's fraction in a second: a million or a billion."""
    header: int
    """Bytes of a record header."""


_SIZES: Final = {0xA1B2C3D4: (16, 24, 20), 0xA1B2CD34: (24, 28), 0xA1B23C4D: (16,)}
"""Sizes of the header under a magic, the usual one first."""
MAGICS: Final[dict[bytes, tuple[PcapLayout, ...]]] = {
    struct.pack(f"{order}I", magic): tuple(PcapLayout(order, 10**9 if magic == 0xA1B23C4D else 10**6, n) for n in sizes)
    for order in ("<", ">")
    for magic, sizes in _SIZES.items()
}


class RecordCheck(NamedTuple):
    """Checks whether bytes are plausible as a record of this file."""

    layout: PcapLayout
    largest: int
    second: int | None
    """Seconds of the last good packet's timestamp."""

    def is_plausible(self, words: list[UInt32]) -> Bool:
        """Return which positions are plausible, by the four words at each."""
        second, fraction, captured, length = words
        good = (captured > 0) & (captured <= self.largest) & (fraction < self.layout.fractions)
        good &= (captured <= length) & (length <= LONGEST_ON_WIRE)
        if self.second is not None:
            good &= (second >= max(0, self.second - DAY)) & (second <= self.second + DAY)
        return good

    def read_if_plausible(self, data: memoryview, at: int) -> tuple[int, int] | None:
        """Return captured length and seconds of the record at a position, if it is plausible."""
        second, fraction, captured, length = struct.unpack_from(self.layout.order + "4I", data, at)
        near = self.second is None or abs(second - self.second) <= DAY
        if near and captured <= min(length, self.largest) and length and fraction < self.layout.fractions:
            return captured, second
        return None

    def implausible(self, second: Int64, fraction: Int64, captured: Int64, length: Int64) -> Bool:
        """Return which of consecutive records, each at the end of the one before, are implausible."""
        before = np.concatenate([second[:1] if self.second is None else [self.second], second[:-1]])
        odd = (abs(second - before) > DAY) | (fraction >= self.layout.fractions)
        return np.asarray(odd | (captured > length) | (length > LONGEST_ON_WIRE))

    def chain(self, data: memoryview, at: int, *, ended: bool) -> bool | None:
        """Whether a chain of plausible records begins at a position; None if more bytes are needed."""
        check, header = self, self.layout.header
        for count in range(CHAIN):
            if at + header > len(data):
                return (count > 0 and at == len(data)) or count > 1 if ended else None
            found = check.read_if_plausible(data, at)
            if found is None:
                return False
            at += header + found[0]
            check = self._replace(second=found[1])
        return True


def choose_layout(magic: bytes, data: UInt8, at: int, largest: int, *, ended: bool) -> PcapLayout | None:
    """Return the layout of a file: the first under its magic in which the first records are plausible, else the usual
    one. None if more bytes are needed."""
    for layout in MAGICS[magic] if len(MAGICS[magic]) > 1 else ():
        chain = RecordCheck(layout, largest, None).chain(memoryview(data.data), at, ended=ended)
        if chain is not False:
            return layout if chain else None
    return MAGICS[magic][0]


def next_record(data: UInt8, start: int, until: int, check: RecordCheck, *, ended: bool) -> tuple[int, int]:
    """Return where the first chain of records between `start` and `until` begins, or `NOWHERE`, or `NOT_YET`; and the
    position up to which there is none."""
    return find_chain(
        data, start, until, HEADER_WORDS, check.layout.order, check.is_plausible, partial(check.chain, ended=ended)
    )


def pcap_records(
    data: UInt8, at: int, stop: int, positions: Int64, *, header: int, largest: int, order: ByteOrder
) -> tuple[int, int]:
    """Write the positions of pcap records from `at` to before `stop` into all of `positions` but the last place. Return
    how many there are; and the next position: before `stop`, if the record there is impossible or incomplete, or the
    places are full. Records have `header` bytes and at most `largest` of a packet."""
    found = _pcap_records()(
        data.ctypes.data, len(data), at, stop, header, largest, order == ">", positions.ctypes.data, len(positions) - 1
    )
    return found, int(positions[found])
