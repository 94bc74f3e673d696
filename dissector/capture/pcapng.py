"""The pcapng format: sections of blocks, several interfaces, each with its own link type and clock.

draft-ietf-opsawg-pcapng. Packets are read from enhanced, simple and (obsolete) packet blocks; comments, names and
statistics go to `pcapng_options.py`; unknown blocks are skipped by their length. Blocks are located first
(`parallel_scan.py`); packet fields are then read all at once.

Invariants:
  * the file may still grow: the same packets and findings come, however it was cut when it was read;
  * `done` is the offset of the next block; bytes that can't be one are skipped up to the next plausible blocks, with a
    finding.
"""

import re
import struct
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from dissector.capture.errors import CaptureError, Damage, length_mismatch
from dissector.capture.integers import ByteOrder, read_unsigned, read_words, unaligned_words
from dissector.capture.parallel_scan import RecordPattern, byte_pattern, scan_records
from dissector.capture.pcapng_blocks import (
    BYTE_ORDER_MAGIC,
    DECRYPTION_SECRETS,
    ENHANCED_PACKET,
    INTERFACE,
    INTERFACE_STATISTICS,
    LARGEST,
    LEAST,
    LEAST_SIZE,
    NAME_RESOLUTION,
    NOT_YET,
    NOWHERE,
    PACKETS,
    SECTION,
    SIMPLE_PACKET,
    has_sense,
    next_block,
    order_at,
)
from dissector.capture.pcapng_options import COMMENT, PcapngOptions, options
from dissector.core.arrays import Bool, Int64, UInt8, UInt16, UInt64
from dissector.core.batches import PacketBatch
from dissector.core.finding import Finding
from dissector.core.limits import BATCH_BYTES, BATCH_PACKETS, FIRST_PACKETS, Limits

TAKEN: Final = frozenset((SECTION, INTERFACE, NAME_RESOLUTION, INTERFACE_STATISTICS, DECRYPTION_SECRETS))
"""Blocks that are read besides packets."""
IF_NAME: Final = 2
IF_TSRESOL: Final = 9
IF_TSOFFSET: Final = 14
USUAL: Final = 1 << 17
"""Bytes of a packet's block above which its length is held against the one at its end at once."""
USUAL_PATTERNS: Final[dict[ByteOrder, re.Pattern[bytes]]] = {
    order: re.compile(
        byte_pattern(
            order, (b"\\0", b"\\0", b"\\0", b"\6"), (b"\\0", b"[\\0-\2]", b".", b"."), (b"\\0", b"\\0", b".", b".")
        ),
        re.DOTALL,
    )
    for order in BYTE_ORDER_MAGIC.values()
}
"""What the head of a usual packet's block looks like: type, length, interface."""
SECOND: Final = 1_000_000_000
FINEST: Final = 1 << 63
"""Ticks a second at the most: finer clocks don't fit 64 bits and don't exist."""
FARTHEST: Final = 1 << 62
"""Nanoseconds that a clock may be off: 146 years."""
UNDESCRIBED: Final = 1
"""Link type of an interface that the section never described: Ethernet, as most are."""


@dataclass(frozen=True, slots=True)
class PcapngInterface:
    """A clock and a link type. A time is `ticks * numerator // denominator + offset_ns` nanoseconds."""

    link_type: int
    snaplen: int
    numerator: int = 1000
    denominator: int = 1
    offset_ns: int = 0
    name: str = ""


@dataclass(slots=True)
class _Section:
    order: ByteOrder = "<"
    number: int = 0
    interfaces: list[PcapngInterface] = field(default_factory=list)


class Pcapng:
    """A pcapng file, read in batches."""

    def __init__(self, name: str, magic: bytes, base: int, limits: Limits) -> None:
        self._name = name
        self.base = base
        self._most_skipped = limits.skipped_bytes
        self._section = _Section()
        self._searched = 0
        """The offset up to which no block was found after the damage at `done`."""
        self._believed = -1
        """Offset of a block with two different lengths that is accepted."""
        self._mean = 256
        """Approximate bytes of a record."""
        self.damage = Damage(name)
        self._mismatches = (0, 0)
        """Number of blocks with two different lengths, and the packet of the first."""
        self.notes = PcapngOptions(name, limits)
        self.packets = 0
        self.done = 0
        self.over = False

    @property
    def problems(self) -> list[Finding]:
        """Problems of the file, as far as it was read."""
        count, packet = self._mismatches
        return [
            *self.damage.findings,
            *([length_mismatch(self._name, count, packet)] if count else []),
            *self.notes.findings,
        ]

    def open(self, data: UInt8, *, ended: bool) -> bool:
        """Whether enough of the first section's header is there. Raises `CaptureError` if there never will be."""
        if self._section.number or len(data) >= LEAST_SIZE[SECTION]:
            if not self._section.number and order_at(memoryview(data.data), 0) is None:
                raise CaptureError(f"{self._name}: a pcapng section without its byte-order magic")
            return True
        if ended:
            raise CaptureError(f"{self._name}: the file ends after {len(data)} bytes, inside its header")
        return False

    def next(self, data: UInt8, *, ended: bool, most: int | None = None) -> PacketBatch | None:
        """Return the next packets of `data`, at `most` so many; None if there are none (yet). Raises `CaptureError`."""
        if not self.open(data, ended=ended):
            return None
        while self.done < len(data) and not self.over:
            places = self._hop(data, most or min(BATCH_PACKETS, FIRST_PACKETS + self.packets))
            if len(places) and (sound := self._sound(data, places)):
                return self._batch(data, places[:sound])
            if len(places):
                if self._believe(data, int(places[0]), ended=ended):
                    continue
                break
            if self.done == len(data):
                break
            if self._is_cut(data, ended=ended):
                return self._cut(data)
            if not self._skip(data, ended=ended):
                break
        return None

    def _hop(self, data: UInt8, most: int) -> Int64:
        """Offsets of the next packet blocks, up to one that says something else, that can't be, or is not all there.

        What says something else is taken before the packets: so these can be gone over again."""
        self._take_ahead(data)
        stop = min(len(data) - LEAST, self.done + BATCH_BYTES) + 1
        looks, walk = self._looks(data), partial(self._walk, data)
        places, at = scan_records(data, self.done, stop, most, self._mean, looks, walk)
        if len(places):
            self._mean = (at - self.done) // len(places)
        self.done = at
        return places

    def _take_ahead(self, data: UInt8) -> None:
        """Read blocks up to the next packet, or to what is no block."""
        buffer = memoryview(data.data)
        while self.done + LEAST <= len(data):
            kind, size = self._head(buffer, self.done)
            if kind in PACKETS or not self._is_there(buffer, self.done, kind, size):
                return
            if kind in TAKEN:
                self._take(buffer, self.done, kind, size)
            self.done += size

    def _head(self, data: memoryview, at: int) -> tuple[int, int]:
        """Type and length of the block that begins here; of a section in the order that it says, else a length of 0."""
        kind, size = struct.unpack_from(self._section.order + "II", data, at)
        if kind == SECTION:
            order = order_at(data, at)
            size = struct.unpack_from(order + "I", data, at + 4)[0] if order else 0
        return kind, size

    def _walk(self, data: UInt8, at: int, until: int, most: int) -> tuple[list[int], int]:
        end = len(data)
        read = struct.Struct(self._section.order + "II").unpack_from
        buffer = memoryview(data.data)
        places: list[int] = []
        while at < until and len(places) < most:
            kind, size = read(buffer, at)
            if kind == ENHANCED_PACKET and 32 <= size <= USUAL and at + size <= end and not size & 3:
                places.append(at)
                at += size
                continue
            if kind in TAKEN or not self._is_there(buffer, at, kind, size):
                break
            if kind in PACKETS:
                places.append(at)
            at += size
        return places, at

    def _looks(self, data: UInt8) -> RecordPattern:
        order, end = self._section.order, len(data)
        kind_at = unaligned_words(data, order)
        size_at = unaligned_words(data[4:], order)
        return RecordPattern(
            pattern=USUAL_PATTERNS[order],
            offset=0,
            sizes=lambda at: np.maximum(size_at[at], np.int64(LEAST)),
            good=lambda at, size: (
                (kind_at[at] == ENHANCED_PACKET) & (size >= 32) & (size <= USUAL) & (at + size <= end) & (size & 3 == 0)
            ),
        )

    def _sound(self, data: UInt8, places: Int64) -> int:
        """Return how many blocks precede the first with two different lengths. `done` is set to that block."""
        order = self._section.order
        size = read_unsigned(data, places + 4, 4, order)
        other = read_unsigned(data, places + size - 4, 4, order) != size
        other &= places != self._believed
        if not other.any():
            return len(places)
        sound = int(other.argmax())
        self.done = int(places[sound])
        return sound

    def _believe(self, data: UInt8, at: int, *, ended: bool) -> bool:
        """Whether reading can continue after a packet with two different lengths, or inside it if blocks are there;
        otherwise more bytes are needed."""
        (size,) = struct.unpack_from(self._section.order + "I", data.data, at + 4)
        place, _ = next_block(data, at + 4, at + size - 1, self._section.order, ended=ended)
        if place >= 0:
            self.damage.skipped(self.packets + 1, at, place - at, f"a length of {size:,} bytes that leads into others")
            self.done = place
        elif place == NOWHERE:
            self._believe_one(at)
        return place != NOT_YET

    def _believe_one(self, at: int) -> None:
        count, packet = self._mismatches
        self._mismatches = (count + 1, packet or self.packets + 1)
        self._believed = at

    def _is_there(self, data: memoryview, at: int, kind: int, size: int) -> bool:
        if not self._can_be(kind, size) or at + size > len(data):
            return False
        if at == self._believed or (kind in PACKETS and size <= USUAL):  # packets' lengths are compared all at once
            return True
        return has_sense(data, at, kind, size, (order_at(data, at) if kind == SECTION else None) or self._section.order)

    def _can_be(self, kind: int, size: int) -> bool:
        return LEAST_SIZE.get(kind, LEAST) <= size <= LARGEST and not size & 3

    def _take(self, data: memoryview, at: int, kind: int, size: int) -> None:
        """A block that is no packet."""
        section = self._section
        if kind == SECTION:
            order = order_at(data, at) or section.order
            self._section = _Section(order, section.number + 1)
            for code, value in options(data, at + 24, at + size - 4, order):
                if code == COMMENT:
                    self.notes.remark(value)
        elif kind == INTERFACE:
            section.interfaces.append(self._interface(data, at, size, section.order))
        elif kind == NAME_RESOLUTION:
            self.notes.resolution(data, at, size, section.order)
        elif kind == INTERFACE_STATISTICS:
            names = [interface.name for interface in section.interfaces]
            self.notes.statistics(data, at, size, section.order, section.number, names)
        elif kind == DECRYPTION_SECRETS:
            self.notes.secrets()

    def _interface(self, data: memoryview, at: int, size: int, order: ByteOrder) -> PcapngInterface:
        link_type, snaplen = struct.unpack_from(order + "H2xI", data, at + 8)
        numerator, denominator, offset_ns, name = 1000, 1, 0, ""
        for code, value in options(data, at + 16, at + size - 4, order):
            if code == IF_TSRESOL and value:
                base, power = (2, value[0] & 0x7F) if value[0] & 0x80 else (10, value[0])
                numerator, denominator = SECOND, min(base**power, FINEST)
            elif code == IF_TSOFFSET and len(value) == 8:
                offset_ns = SECOND * int.from_bytes(value, "big" if order == ">" else "little", signed=True)
            elif code == IF_NAME:
                name = value[:64].decode(errors="replace")
            elif code == COMMENT:
                self.notes.remark(value)
        offset_ns = max(-FARTHEST, min(offset_ns, FARTHEST))
        return PcapngInterface(link_type, snaplen, numerator, denominator, offset_ns, name)

    def _is_cut(self, data: UInt8, *, ended: bool) -> bool:
        """Whether the file apparently ends inside this packet."""
        left = len(data) - self.done
        if not ended or left < LEAST:
            return False
        kind, size = struct.unpack_from(self._section.order + "II", data.data, self.done)
        if kind not in PACKETS or not self._can_be(kind, size) or not LEAST_SIZE[kind] - 4 <= left < size:
            return False
        return self._search(data, ended=True) == NOWHERE

    def _cut(self, data: UInt8) -> PacketBatch:
        """Return the packet in which the file ends, with the bytes that are there."""
        at = self.done
        batch = self._batch(data, np.array([at], np.int64))
        needed = struct.unpack_from(self._section.order + "I", data.data, at + 4)[0]
        self.damage.truncated(self.packets, at, needed, len(data) - at)
        self.done = len(data)
        return batch

    def _skip(self, data: UInt8, *, ended: bool) -> bool:
        """Continue after bytes that can't be a block; False if there is nothing more, or not yet."""
        at, left = self.done, len(data) - self.done
        reason, needed = self._reason(data)
        if not ended and not reason:
            return False
        place = self._search(data, ended=ended)
        if place >= 0 and place == at + needed:
            self._believe_one(at)  # what follows says that its first length is right
        elif place >= 0:
            self.damage.skipped(self.packets + 1, at, place - at, reason or "a length that leads into others")
            self.done = place
        elif place == NOWHERE and (ended or self._searched > at + self._most_skipped):
            if reason:
                self.damage.ended(self.packets + 1, at, reason, len(data) - at)
                self.over = True
            else:
                self.damage.truncated(self.packets + 1, at, needed, left)
            self.done = len(data)
        return place >= 0

    def _reason(self, data: UInt8) -> tuple[str, int]:
        """Return why no block is here, empty if one may be, and the bytes that it needs."""
        at, left, order = self.done, len(data) - self.done, self._section.order
        if left < LEAST:
            return "", LEAST
        kind, size = struct.unpack_from(order + "II", data.data, at)
        if kind == SECTION:
            own = order_at(memoryview(data.data), at)
            if own is None:
                return "a section without its byte-order magic", 0
            size = struct.unpack_from(own + "I", data.data, at + 4)[0]
        if not self._can_be(kind, size):
            return f"a block of type {kind:#x} can't have a length of {size:,} bytes", 0
        if size <= left:
            return f"a block of type {kind:#x} whose length of {size:,} bytes is another at its end", size
        return "", size

    def _search(self, data: UInt8, *, ended: bool) -> int:
        start, until = max(self.done + 1, self._searched), self.done + self._most_skipped
        place, self._searched = next_block(data, start, until, self._section.order, ended=ended)
        return place

    def _batch(self, data: UInt8, at: Int64) -> PacketBatch:
        section, order = self._section, self._section.order
        kind, size, wide, high, low, captured, length = read_words(data, at, 7, order)
        simple = kind == SIMPLE_PACKET
        narrow = wide & 0xFFFF if order == "<" else wide >> 16
        interface = np.where(kind == ENHANCED_PACKET, wide, np.where(simple, 0, narrow))
        length = np.where(simple, wide, length)
        start = np.where(simple, 12, 28)
        captured = np.where(simple, np.minimum(length, self._snaplen(section)), captured)
        end = np.minimum(at + size - 4, len(data))
        captured = np.minimum(captured, end - at - start)
        ticks = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        time_ns, link_type = _clock(section.interfaces, interface, ticks, simple)
        behind = np.where(simple, end, at + start + (captured + 3 & ~3))
        comments = self.notes.of_packets(data, behind, end, order)
        first, self.packets = self.packets, self.packets + len(at)
        number = np.arange(first, self.packets)
        return PacketBatch(
            data, self.base, number, time_ns, at + start, captured, np.maximum(captured, length), link_type, comments
        )

    def _snaplen(self, section: _Section) -> int:
        return (section.interfaces[0].snaplen if section.interfaces else 0) or 1 << 31


def _clock(interfaces: list[PcapngInterface], which: Int64, ticks: UInt64, simple: Bool) -> tuple[Int64, UInt16]:
    """Times and link types of packets; those of an interface that was never described are in microseconds."""
    known = [*interfaces, PcapngInterface(UNDESCRIBED, 0)]
    which = np.minimum(which, len(interfaces))
    if which.min() == which.max():  # one interface is the rule: its numbers then need no columns
        known, which = [known[int(which[0])]], np.zeros(1, np.int64)
    numerator = np.array([interface.numerator for interface in known], np.uint64)[which]
    denominator = np.array([interface.denominator for interface in known], np.uint64)[which]
    offset_ns = np.array([interface.offset_ns for interface in known], np.int64)[which]
    link_type = np.array([interface.link_type for interface in known], np.uint16)[which]
    whole, rest = np.divmod(ticks, denominator)
    scaled = rest * numerator // denominator
    fine = denominator > SECOND
    if fine.any():  # here the product may not fit 64 bits, and there is more precision than nanoseconds anyway
        scaled = np.where(fine, (rest.astype(np.float64) * numerator / denominator).astype(np.uint64), scaled)
    time_ns = (whole * numerator + scaled).astype(np.int64) + offset_ns
    time_ns[simple] = 0
    return time_ns, np.broadcast_to(link_type, len(ticks)).astype(np.uint16)
