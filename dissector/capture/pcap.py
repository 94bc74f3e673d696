"""The pcap format: a 24-byte header, then packets of a record header and their bytes.

draft-ietf-opsawg-pcap. Reads both byte orders, microseconds and nanoseconds. A record header begins with four words:
seconds, fraction, captured length, length. The patched tcpdumps of old Linux distributions and of Nokia wrote more
after them, under the magics of other formats: the layout is then chosen by the first records. Positions of record
headers are collected first, natively (`capture.c`); all fields are then read at once.

Invariants:
  * the file may still grow: packets and findings are the same, wherever it ended when it was read;
  * `done` is the offset of the next record header; bytes that can't be one are skipped up to the next chain of
    plausible records, and reported.
"""

import struct
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dissector.capture.errors import CaptureError, Damage
from dissector.capture.integers import NOWHERE, ByteOrder, find_chain, read_unsigned, read_words, room_for
from dissector.core.arrays import Bool, Int64, UInt8, UInt32
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding
from dissector.core.kernel import kernel_function
from dissector.core.limits import BATCH_BYTES, BATCH_PACKETS, FIRST_PACKETS, Limits

FILE_HEADER: Final = 24
LARGEST_PACKET: Final = 262_144
"""Bytes, unless the file's snap length is larger: the maximum of tcpdump and Wireshark."""
LARGEST_SNAPLEN: Final = 1 << 28
"""Larger snap lengths are ignored."""
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


class Pcap:
    """A pcap file, read in batches."""

    def __init__(self, name: str, magic: bytes, base: int, limits: Limits) -> None:
        self._name = name
        self._magic = magic
        self.base = base
        self._most_skipped = limits.skipped_bytes
        self._check = RecordCheck(MAGICS[magic][0], LARGEST_PACKET, None)
        self._link_type = 0
        self._searched = 0
        """The offset up to which no record was found after the damage at `done`."""
        self._accepted = -1
        """Offset of a record that is accepted although it is implausible after the one before."""
        self._accepts_all = False
        """Whether all implausible records are accepted."""
        self.damage = Damage(name)
        self.packets = 0
        self.done = 0
        self.stopped = False

    @property
    def problems(self) -> list[Finding]:
        """Problems of the file, as far as it was read."""
        return self.damage.findings

    def next(self, data: UInt8, *, ended: bool, most: int | None = None) -> PacketBatch | None:
        """Return the next packets of `data`, at `most` so many; None if there are none (yet). Raises `CaptureError`."""
        if not self.open(data, ended=ended):
            return None
        while self.done < len(data) and not self.stopped:
            positions = self._locate_records(data, min(most or BATCH_PACKETS, FIRST_PACKETS + self.packets))
            fields = self._fields(data, positions)
            if len(positions) and (sound := self._count_sound(positions, fields)):
                return self._batch(data, positions[:sound], [field[:sound] for field in fields])
            if len(positions):
                if self._accept_doubtful(data, int(positions[0]), ended=ended):
                    continue
                break
            if self._is_truncated(data, ended=ended):
                return self._truncated_packet(data)
            if not self._skip(data, ended=ended):
                break
        return None

    def open(self, data: UInt8, *, ended: bool) -> bool:
        """Read the file's header; return whether enough is there. Raises `CaptureError` if there never will be."""
        if self.done:
            return True
        if len(data) < FILE_HEADER:
            if ended:
                raise CaptureError(f"{self._name}: the file ends after {len(data)} bytes, inside its header")
            return False
        snaplen, network = struct.unpack_from(self._check.layout.order + "II", data.data, 16)
        largest = max(LARGEST_PACKET, snaplen if snaplen <= LARGEST_SNAPLEN else 0)
        layout = choose_layout(self._magic, data, FILE_HEADER, largest, ended=ended)
        if layout is None:
            return False
        self._link_type = network & 0xFFFF  # the upper half: the size of frame check sequences, and reserved bits
        self._check = RecordCheck(layout, largest, None)
        self.done = FILE_HEADER
        return True

    def _locate_records(self, data: UInt8, most: int) -> Int64:
        """Return the offsets of the next record headers, up to one that is impossible or incomplete."""
        order, _, header = self._check.layout
        stop = min(len(data) - header, self.done + BATCH_BYTES) + 1
        positions = room_for(most, self.done, stop, header)
        found, self.done = pcap_records(
            data, self.done, stop, positions, header=header, largest=self._check.largest, order=order
        )
        return positions[:found]

    def _fields(self, data: UInt8, positions: Int64) -> list[Int64]:
        """Return seconds, fractions, captured lengths, lengths."""
        return read_words(data, positions, 4, self._check.layout.order)

    def _count_sound(self, positions: Int64, fields: list[Int64]) -> int:
        """Return how many records precede an implausible one, which may come from damage. `done` moves to that one."""
        if self._accepts_all:
            return len(positions)
        odd = self._check.implausible(*fields)
        odd &= positions != self._accepted
        if not odd.any():
            return len(positions)
        sound = int(odd.argmax())
        self.done = int(positions[sound])
        return sound

    def _accept_doubtful(self, data: UInt8, at: int, *, ended: bool) -> bool:
        """Whether reading can continue at a record that is implausible after the last one, or after it; otherwise more
        bytes are needed. It is accepted if plausible records follow it, or if none follow anywhere."""
        alone = self._check._replace(second=None).chain(memoryview(data.data), at, ended=ended)
        if alone is None:
            return False
        if alone:
            self._accepted = at
            return True
        position = self._search(data, ended=ended)
        if position >= 0:
            self.damage.add_skipped(self.packets + 1, at, position - at, "no packet's time and lengths")
            self.done = position
        elif position == NOWHERE and (ended or self._searched > at + self._most_skipped):
            self._accepts_all = True  # the file's writer produces such records
        return position >= 0 or self._accepts_all

    def _batch(self, data: UInt8, positions: Int64, fields: list[Int64]) -> PacketBatch:
        layout = self._check.layout
        self._check = self._check._replace(second=int(fields[0][-1]))
        first, self.packets = self.packets, self.packets + len(positions)
        offset = positions + layout.header
        return PacketBatch(
            data=data,
            base=self.base,
            number=np.arange(first, self.packets),
            time_ns=fields[0] * 1_000_000_000 + fields[1] * (1_000_000_000 // layout.fractions),
            offset=offset,
            captured=np.minimum(fields[2], len(data) - offset),
            length=np.maximum(fields[2], fields[3]),
            link_type=np.full(len(positions), self._link_type, np.uint16),
        )

    def _is_truncated(self, data: UInt8, *, ended: bool) -> bool:
        """Whether the file apparently ends inside this packet."""
        if not ended or len(data) - self.done < self._check.layout.header or self._reason(data):
            return False
        return self._search(data, ended=True) == NOWHERE

    def _truncated_packet(self, data: UInt8) -> PacketBatch:
        """Return the packet in which the file ends, with the bytes that the file has."""
        at = self.done
        positions = np.array([at], np.int64)
        batch = self._batch(data, positions, self._fields(data, positions))
        needed = (
            int(read_unsigned(data, np.array([at + 8]), 4, self._check.layout.order)[0]) + self._check.layout.header
        )
        self.damage.add_truncation(self.packets, at, needed, len(data) - at)
        self.done = len(data)
        return batch

    def _skip(self, data: UInt8, *, ended: bool) -> bool:
        """Continue after bytes that can't be a record; False if there is nothing more, or not yet."""
        at, remaining = self.done, len(data) - self.done
        header = self._check.layout.header
        reason = self._reason(data) if remaining >= header else ""
        if not ended and not reason:
            return False
        if remaining < header:
            self.damage.add_truncation(self.packets + 1, at, header, remaining)
            self.done = len(data)
            return False
        position = self._search(data, ended=ended)
        if position >= 0:
            self.damage.add_skipped(self.packets + 1, at, position - at, reason or "a length that leads into others")
            self.done = position
        elif position == NOWHERE and (ended or self._searched > at + self._most_skipped):
            self.damage.add_end(self.packets + 1, at, reason, len(data) - at)
            self.stopped = True
            self.done = len(data)
        return position >= 0

    def _reason(self, data: UInt8) -> str:
        """Return why no packet is here; empty if one may be."""
        (captured,) = struct.unpack_from(self._check.layout.order + "I", data.data, self.done + 8)
        if captured > self._check.largest:
            return f"a length of {captured:,} bytes can't be"
        return "zeros" if _is_blank(memoryview(data.data), self.done) else ""

    def _search(self, data: UInt8, *, ended: bool) -> int:
        start, until = max(self.done + 1, self._searched), self.done + self._most_skipped
        position, self._searched = next_record(data, start, until, self._check, ended=ended)
        return position


def _is_blank(data: memoryview, at: int) -> bool:
    return not any(data[at : at + 16])
