"""The pcap format: a 24-byte header, then packets of a record header and their bytes.

draft-ietf-opsawg-pcap. Reads both byte orders, microseconds and nanoseconds, and the variants with longer record
headers (`pcap_records.py`). Positions of record headers are collected first (`parallel_scan.py`); all fields are then
read at once.

Invariants:
  * the file may still grow: packets and findings are the same, wherever it ended when it was read;
  * `done` is the offset of the next record header; bytes that can't be one are skipped up to the next chain of
  plausible records, and reported.
"""

import struct
from functools import partial
from typing import Final

import numpy as np

from dissector.capture.errors import CaptureError, Damage
from dissector.capture.integers import read_unsigned, read_words, unaligned_words
from dissector.capture.parallel_scan import RecordPattern, scan_records
from dissector.capture.pcap_records import MAGICS, NOWHERE, Sense, layout_of, next_record
from dissector.core.arrays import Int64, UInt8
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding
from dissector.core.limits import BATCH_BYTES, BATCH_PACKETS, FIRST_PACKETS, Limits

FILE_HEADER: Final = 24
LARGEST_PACKET: Final = 262_144
"""Bytes, unless the file's snap length is larger: the maximum of tcpdump and Wireshark."""
LARGEST_SNAPLEN: Final = 1 << 28
"""Larger snap lengths are ignored."""


class Pcap:
    """A pcap file, read in batches."""

    def __init__(self, name: str, magic: bytes, base: int, limits: Limits) -> None:
        self._name = name
        self._magic = magic
        self.base = base
        self._most_skipped = limits.skipped_bytes
        self._sense = Sense(MAGICS[magic][0], LARGEST_PACKET, None)
        self._link_type = 0
        self._searched = 0
        """Up to where no record was found behind the damage at `done`."""
        self._believed = -1
        """Offset of a record that is accepted although it is implausible after the one before."""
        self._trusted = False
        """Whether all implausible records are accepted."""
        self._mean = 256
        """Approximate bytes of a record."""
        self.damage = Damage(name)
        self.packets = 0
        self.done = 0
        self.over = False

    @property
    def problems(self) -> list[Finding]:
        """Problems of the file, as far as it was read."""
        return self.damage.findings

    def next(self, data: UInt8, *, ended: bool, most: int | None = None) -> PacketBatch | None:
        """Return the next packets of `data`, at `most` so many; None if there are none (yet). Raises `CaptureError`."""
        if not self.open(data, ended=ended):
            return None
        while self.done < len(data) and not self.over:
            places = self._hop(data, most or min(BATCH_PACKETS, FIRST_PACKETS + self.packets))
            fields = self._fields(data, places)
            if len(places) and (sound := self._sound(places, fields)):
                return self._batch(data, places[:sound], [field[:sound] for field in fields])
            if len(places):
                if self._believe(data, int(places[0]), ended=ended):
                    continue
                break
            if self._is_cut(data, ended=ended):
                return self._cut(data)
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
        snaplen, network = struct.unpack_from(self._sense.layout.order + "II", data.data, 16)
        largest = max(LARGEST_PACKET, snaplen if snaplen <= LARGEST_SNAPLEN else 0)
        layout = layout_of(self._magic, data, FILE_HEADER, largest, ended=ended)
        if layout is None:
            return False
        self._link_type = network & 0xFFFF  # above: how long the frame check sequence is, and reserved
        self._sense = Sense(layout, largest, None)
        self.done = FILE_HEADER
        return True

    def _hop(self, data: UInt8, most: int) -> Int64:
        """Return the offsets of the next record headers, up to one that is impossible or incomplete."""
        stop = min(len(data) - self._sense.layout.header, self.done + BATCH_BYTES) + 1
        looks, walk = self._looks(data), partial(self._walk, data)
        places, at = scan_records(data, self.done, stop, most, self._mean, looks, walk)
        if len(places):
            self._mean = (at - self.done) // len(places)
        self.done = at
        return places

    def _walk(self, data: UInt8, at: int, until: int, most: int) -> tuple[list[int], int]:
        header, largest, end = self._sense.layout.header, self._sense.largest, len(data)
        read = struct.Struct(self._sense.layout.order + "8xI").unpack_from
        places: list[int] = []
        buffer = memoryview(data.data)
        while at < until and len(places) < most:
            (captured,) = read(buffer, at)
            after = at + header + captured
            if after > end or captured > largest or (not captured and _is_blank(buffer, at)):
                break
            places.append(at)
            at = after
        return places, at

    def _looks(self, data: UInt8) -> RecordPattern:
        order, _, header = self._sense.layout
        longest, end = header + self._sense.largest, len(data)
        captured_at = unaligned_words(data[8:], order)
        return RecordPattern(
            *self._sense.mark,
            sizes=lambda at: captured_at[at] + np.int64(header),
            good=lambda at, size: (size > header) & (size <= longest) & (at + size <= end),
        )

    def _fields(self, data: UInt8, places: Int64) -> list[Int64]:
        """Return seconds, fractions, captured lengths, lengths."""
        return read_words(data, places, 4, self._sense.layout.order)

    def _sound(self, places: Int64, fields: list[Int64]) -> int:
        """Return how many records precede an implausible one, which may come from damage. `done` moves to that one."""
        if self._trusted:
            return len(places)
        odd = self._sense.odd(*fields)
        odd &= places != self._believed
        if not odd.any():
            return len(places)
        sound = int(odd.argmax())
        self.done = int(places[sound])
        return sound

    def _believe(self, data: UInt8, at: int, *, ended: bool) -> bool:
        """Whether reading can continue at a record that is implausible after the last one, or behind it; otherwise more
        bytes are needed. It is accepted if plausible records follow it, or if none follow anywhere."""
        alone = self._sense._replace(second=None).chain(memoryview(data.data), at, ended=ended)
        if alone is None:
            return False
        if alone:
            self._believed = at
            return True
        place = self._search(data, ended=ended)
        if place >= 0:
            self.damage.skipped(self.packets + 1, at, place - at, "no packet's time and lengths")
            self.done = place
        elif place == NOWHERE and (ended or self._searched > at + self._most_skipped):
            self._trusted = True  # the file's writer produces such records
        return place >= 0 or self._trusted

    def _batch(self, data: UInt8, places: Int64, fields: list[Int64]) -> PacketBatch:
        layout = self._sense.layout
        self._sense = self._sense._replace(second=int(fields[0][-1]))
        first, self.packets = self.packets, self.packets + len(places)
        offset = places + layout.header
        return PacketBatch(
            data=data,
            base=self.base,
            number=np.arange(first, self.packets),
            time_ns=fields[0] * 1_000_000_000 + fields[1] * (1_000_000_000 // layout.fractions),
            offset=offset,
            captured=np.minimum(fields[2], len(data) - offset),
            length=np.maximum(fields[2], fields[3]),
            link_type=np.full(len(places), self._link_type, np.uint16),
        )

    def _is_cut(self, data: UInt8, *, ended: bool) -> bool:
        """Whether the file apparently ends inside this packet."""
        if not ended or len(data) - self.done < self._sense.layout.header or self._reason(data):
            return False
        return self._search(data, ended=True) == NOWHERE

    def _cut(self, data: UInt8) -> PacketBatch:
        """Return the packet in which the file ends, with the bytes that are there."""
        at = self.done
        places = np.array([at], np.int64)
        batch = self._batch(data, places, self._fields(data, places))
        needed = (
            int(read_unsigned(data, np.array([at + 8]), 4, self._sense.layout.order)[0]) + self._sense.layout.header
        )
        self.damage.truncated(self.packets, at, needed, len(data) - at)
        self.done = len(data)
        return batch

    def _skip(self, data: UInt8, *, ended: bool) -> bool:
        """Continue after bytes that can't be a record; False if there is nothing more, or not yet."""
        at, left = self.done, len(data) - self.done
        header = self._sense.layout.header
        reason = self._reason(data) if left >= header else ""
        if not ended and not reason:
            return False
        if left < header:
            self.damage.truncated(self.packets + 1, at, header, left)
            self.done = len(data)
            return False
        place = self._search(data, ended=ended)
        if place >= 0:
            self.damage.skipped(self.packets + 1, at, place - at, reason or "a length that leads into others")
            self.done = place
        elif place == NOWHERE and (ended or self._searched > at + self._most_skipped):
            self.damage.ended(self.packets + 1, at, reason, len(data) - at)
            self.over = True
            self.done = len(data)
        return place >= 0

    def _reason(self, data: UInt8) -> str:
        """Return why no packet is here; empty if one may be."""
        (captured,) = struct.unpack_from(self._sense.layout.order + "I", data.data, self.done + 8)
        if captured > self._sense.largest:
            return f"a length of {captured:,} bytes can't be"
        return "zeros" if _is_blank(memoryview(data.data), self.done) else ""

    def _search(self, data: UInt8, *, ended: bool) -> int:
        start, until = max(self.done + 1, self._searched), self.done + self._most_skipped
        place, self._searched = next_record(data, start, until, self._sense, ended=ended)
        return place


def _is_blank(data: memoryview, at: int) -> bool:
    return not any(data[at : at + 16])
