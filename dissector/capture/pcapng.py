"""The pcapng format: sections of blocks, several interfaces, each with its own link type and clock.

draft-ietf-opsawg-pcapng. Read: section header, interface description, enhanced, simple and (obsolete) packet blocks;
every other block is skipped by its length. Blocks are hopped over in Python; packet fields are then read at once.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from dissector.capture.errors import CaptureError, DamagedError, damaged, truncated
from dissector.capture.gather import Ints, Order, unsigned
from dissector.events import PacketBatch, UInt8, UInt16
from dissector.limits import BATCH_PACKETS

SECTION: Final = 0x0A0D0D0A
INTERFACE: Final = 1
OBSOLETE_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
ENHANCED_PACKET: Final = 6
BYTE_ORDER_MAGIC: Final = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
IF_TSRESOL: Final = 9
IF_TSOFFSET: Final = 14
LEAST_SIZE: Final = {SECTION: 28, INTERFACE: 20, OBSOLETE_PACKET: 32, SIMPLE_PACKET: 16, ENHANCED_PACKET: 32}
SECOND: Final = 1_000_000_000
FINEST: Final = 1 << 63
"""Ticks a second at the most: finer clocks don't fit 64 bits and don't exist."""
FARTHEST: Final = 1 << 62
"""Nanoseconds that a clock may be off: 146 years."""
UNDESCRIBED: Final = 1
"""Link type of an interface that the section never described: Ethernet, as most are."""


@dataclass(frozen=True, slots=True)
class Interface:
    """A clock and a link type. A time is `ticks * numerator // denominator + offset_ns` nanoseconds."""

    link_type: int
    snaplen: int
    numerator: int = 1000
    denominator: int = 1
    offset_ns: int = 0


@dataclass(slots=True)
class _Section:
    order: Order
    interfaces: list[Interface] = field(default_factory=list)


class Pcapng:
    """A pcapng file, read in batches. `done` is the offset that reading has reached."""

    def __init__(self, name: str, data: UInt8, base: int) -> None:
        self._name = name
        self._data = data
        self._bytes = memoryview(data.data)
        self._base = base
        self.done = 0
        if len(data) < LEAST_SIZE[SECTION]:
            raise CaptureError(f"{name}: the file ends after {len(data)} bytes, inside its header")
        if self._bytes[8:12].tobytes() not in BYTE_ORDER_MAGIC:
            raise CaptureError(f"{name}: a pcapng section without its byte-order magic")
        self._section = _Section("<")

    def batches(self, first: int) -> Iterator[PacketBatch]:
        """All packets; `first` is the number of the first one. Ends with `DamagedError` where the file is."""
        while self.done < len(self._data):
            places, section, problem = self._hop(first)
            if places:
                yield self._batch(np.array(places, np.int64).reshape(-1, 2), section, first)
                first += len(places)
            if problem:
                raise problem

    def _hop(self, number: int) -> tuple[list[tuple[int, int]], _Section, DamagedError | None]:
        """Offset and type of the next packet blocks, all of one section; and what stops the hopping early."""
        section = self._section
        read = struct.Struct(section.order + "II").unpack_from
        at, end = self.done, len(self._data)
        places: list[tuple[int, int]] = []
        try:
            while len(places) < BATCH_PACKETS and at < end:
                if at + 12 > end:
                    raise truncated(self._name, number + len(places) + 1, at, 12, end - at)
                kind, size = read(self._bytes, at)
                if kind == SECTION:
                    if places:
                        break
                    size = self._open_section(number + 1, at)
                    section = self._section
                    read = struct.Struct(section.order + "II").unpack_from
                if kind == ENHANCED_PACKET and 32 <= size <= end - at and not size & 3:
                    places.append((at, kind))
                else:
                    self._check(number + len(places) + 1, at, kind, size)
                    if kind == INTERFACE:
                        section.interfaces.append(self._interface(at, size, section.order))
                    elif kind in (SIMPLE_PACKET, OBSOLETE_PACKET):
                        places.append((at, kind))
                at += size
        except DamagedError as problem:
            self.done = end
            return places, section, problem
        self.done = at
        return places, section, None

    def _open_section(self, packet: int, at: int) -> int:
        order = BYTE_ORDER_MAGIC.get(self._bytes[at + 8 : at + 12].tobytes())
        if order is None:
            raise damaged(self._name, packet, at, "a section without its byte-order magic")
        self._section = _Section(">" if order == ">" else "<")
        return int.from_bytes(self._bytes[at + 4 : at + 8], "big" if order == ">" else "little")

    def _check(self, packet: int, at: int, kind: int, size: int) -> None:
        left = len(self._data) - at
        if size < LEAST_SIZE.get(kind, 12) or size & 3:
            raise damaged(self._name, packet, at, f"a block of type {kind:#x} can't have a length of {size:,} bytes")
        if size > left:
            raise truncated(self._name, packet, at, size, left)

    def _interface(self, at: int, size: int, order: Order) -> Interface:
        link_type, snaplen = struct.unpack_from(order + "H2xI", self._bytes, at + 8)
        interface = Interface(link_type, snaplen)
        numerator, denominator, offset_ns = interface.numerator, interface.denominator, 0
        for code, value in self._options(at + 16, at + size - 4, order):
            if code == IF_TSRESOL and value:
                base, power = (2, value[0] & 0x7F) if value[0] & 0x80 else (10, value[0])
                numerator, denominator = SECOND, min(base**power, FINEST)
            elif code == IF_TSOFFSET and len(value) == 8:
                offset_ns = SECOND * int.from_bytes(value, "big" if order == ">" else "little", signed=True)
        return Interface(link_type, snaplen, numerator, denominator, max(-FARTHEST, min(offset_ns, FARTHEST)))

    def _options(self, at: int, end: int, order: Order) -> Iterator[tuple[int, bytes]]:
        while at + 4 <= end:
            code, size = struct.unpack_from(order + "HH", self._bytes, at)
            if code == 0 or at + 4 + size > end:
                return
            yield code, self._bytes[at + 4 : at + 4 + size].tobytes()
            at += 4 + (size + 3 & ~3)

    def _batch(self, places: Ints, section: _Section, first: int) -> PacketBatch:
        at, kind = places[:, 0], places[:, 1]
        order = section.order

        def u32(offset: int | Ints) -> Ints:
            return unsigned(self._data, at + offset, 4, order)

        size = u32(4)
        simple = kind == SIMPLE_PACKET
        wide = u32(8)
        narrow = wide & 0xFFFF if order == "<" else wide >> 16
        interface = np.where(kind == ENHANCED_PACKET, wide, np.where(simple, 0, narrow))
        captured, length = u32(np.where(simple, 0, 20)), u32(np.where(simple, 8, 24))
        start = np.where(simple, 12, 28)
        captured = np.where(simple, np.minimum(length, self._snaplen(section)), captured)
        captured = np.minimum(captured, size - start - 4)
        high, low = u32(np.where(simple, 0, 12)), u32(np.where(simple, 0, 16))  # a simple one may end before them
        ticks = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        time_ns, link_type = _clock(section.interfaces, interface, ticks, simple)
        return PacketBatch(
            self._data, self._base, first, time_ns, at + start, captured, np.maximum(captured, length), link_type
        )

    def _snaplen(self, section: _Section) -> int:
        return (section.interfaces[0].snaplen if section.interfaces else 0) or 1 << 31


def _clock(
    interfaces: list[Interface], which: Ints, ticks: npt.NDArray[np.uint64], simple: npt.NDArray[np.bool_]
) -> tuple[Ints, UInt16]:
    """Times and link types of packets; those of an interface that was never described are in microseconds."""
    known = [*interfaces, Interface(UNDESCRIBED, 0)]
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
