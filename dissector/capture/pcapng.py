"""The pcapng format: sections of blocks, several interfaces, each with its own link type and clock.

draft-ietf-opsawg-pcapng. Packets are read from enhanced, simple and (obsolete) packet blocks; comments, names and
statistics go to `pcapng_options.py`; unknown blocks are skipped by their length. Blocks are located first;
packet fields are then read all at once.

Invariants:
  * the file may still grow: the same packets and findings come, however it was cut when it was read;
  * `done` is the offset of the next block; bytes that can't be one are skipped up to the next plausible blocks, with a
    finding.
"""

import struct
from typing import Final

import numpy as np

from dissector.capture.errors import CaptureError, Damage, length_mismatch
from dissector.capture.integers import NOT_YET, NOWHERE, read_unsigned, read_words, room_for
from dissector.capture.pcapng_blocks import (
    DECRYPTION_SECRETS,
    ENHANCED_PACKET,
    INTERFACE,
    INTERFACE_STATISTICS,
    LEAST_PACKET_BYTES,
    MAX_BLOCK_BYTES,
    MIN_BLOCK_BYTES,
    MIN_SIZES,
    NAME_RESOLUTION,
    PACKETS,
    SECTION,
    SIMPLE_PACKET,
    is_plausible_block,
    next_block,
    order_at,
    packet_blocks,
)
from dissector.capture.pcapng_interfaces import PcapngSection, read_interface, times_and_link_types
from dissector.capture.pcapng_options import COMMENT, PcapngOptions, options
from dissector.core.arrays import Int64, UInt8
from dissector.core.batches import PacketBatch, join
from dissector.core.finding import Finding
from dissector.core.limits import BATCH_BYTES, BATCH_PACKETS, FIRST_PACKETS, Limits

DESCRIPTIVE_BLOCKS: Final = frozenset((SECTION, INTERFACE, NAME_RESOLUTION, INTERFACE_STATISTICS, DECRYPTION_SECRETS))
"""Blocks that are read besides packets."""
USUAL_BLOCK_BYTES: Final = 1 << 17
"""Packet blocks up to this size have their two lengths compared all at once, larger ones one by one."""
SHORT_RUN: Final = 64
"""Packets between two descriptive blocks below which runs are joined, as each batch costs."""


class Pcapng:
    """A pcapng file, read in batches."""

    def __init__(self, name: str, magic: bytes, base: int, limits: Limits) -> None:
        self._name = name
        self.base = base
        self._most_skipped = limits.skipped_bytes
        self._section = PcapngSection()
        self._searched = 0
        """The offset up to which no block was found after the damage at `done`."""
        self._accepted = -1
        """Offset of a block with two different lengths that is accepted."""
        self.damage = Damage(name)
        self._mismatches = (0, 0)
        """Number of blocks with two different lengths, and the packet of the first."""
        self.notes = PcapngOptions(name, limits)
        self.packets = 0
        self.done = 0
        self.stopped = False

    def __getstate__(self) -> dict[str, object]:
        """Return what reading on needs: not the notes, which may be megabytes."""
        return self.__dict__ | {"notes": PcapngOptions(self._name, self.notes.limits)}

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
        """Return whether enough of the first header is there. Raises `CaptureError` if there never will be."""
        if self._section.number or len(data) >= MIN_SIZES[SECTION]:
            if not self._section.number and order_at(memoryview(data.data), 0) is None:
                raise CaptureError(f"{self._name}: a pcapng section without its byte-order magic")
            return True
        if ended:
            raise CaptureError(f"{self._name}: the file ends after {len(data)} bytes, inside its header")
        return False

    def next(self, data: UInt8, *, ended: bool, most: int | None = None) -> PacketBatch | None:
        """Return the next packets of `data`, at `most` so many; None if there are none (yet). Raises `CaptureError`."""
        room = min(most or BATCH_PACKETS, FIRST_PACKETS + self.packets)
        parts: list[PacketBatch] = []
        while room > 0 and (batch := self._next(data, ended=ended, most=room)) is not None:
            parts.append(batch)
            room -= len(batch)
            if len(batch) >= SHORT_RUN:
                break
        return join(parts) if parts else None

    def _next(self, data: UInt8, *, ended: bool, most: int) -> PacketBatch | None:
        """Return the next packets between two descriptive blocks."""
        if not self.open(data, ended=ended):
            return None
        while self.done < len(data) and not self.stopped:
            positions = self._locate_packets(data, most)
            if len(positions) and (sound := self._count_sound(data, positions)):
                return self._batch(data, positions[:sound])
            if len(positions):
                if self._accept_doubtful(data, int(positions[0]), ended=ended):
                    continue
                break
            if self.done == len(data):
                break
            if self._is_truncated(data, ended=ended):
                return self._truncated_packet(data)
            if not self._skip(data, ended=ended):
                break
        return None

    def _locate_packets(self, data: UInt8, most: int) -> Int64:
        """Return the offsets of the next packet blocks, up to one that is descriptive, impossible or incomplete.

        Descriptive blocks are read before the packets, so that packets can be located again."""
        self._read_descriptive_blocks(data)
        stop = min(len(data) - MIN_BLOCK_BYTES, self.done + BATCH_BYTES) + 1
        positions, count = room_for(most, self.done, stop, LEAST_PACKET_BYTES), 0
        while count < len(positions) - 1 and self.done < stop:
            found, self.done = packet_blocks(
                data, self.done, stop, positions[count:], largest=USUAL_BLOCK_BYTES, order=self._section.order
            )
            count += found
            if found:
                continue
            kind, size = self._head(memoryview(data.data), self.done)
            if kind in DESCRIPTIVE_BLOCKS or not self._is_complete(memoryview(data.data), self.done, kind, size):
                break
            if kind in PACKETS:
                positions[count] = self.done
                count += 1
            self.done += size
        return positions[:count]

    def _read_descriptive_blocks(self, data: UInt8) -> None:
        """Read blocks up to the next packet, or to what is not a block."""
        buffer = memoryview(data.data)
        while self.done + MIN_BLOCK_BYTES <= len(data):
            kind, size = self._head(buffer, self.done)
            if kind in PACKETS or not self._is_complete(buffer, self.done, kind, size):
                return
            if kind in DESCRIPTIVE_BLOCKS:
                self._read_descriptive_block(buffer, self.done, kind, size)
            self.done += size

    def _head(self, data: memoryview, at: int) -> tuple[int, int]:
        """Return type and length of the block that begins here. A section has its own byte order; without one its
        length is 0."""
        kind, size = struct.unpack_from(self._section.order + "II", data, at)
        if kind == SECTION:
            order = order_at(data, at)
            size = struct.unpack_from(order + "I", data, at + 4)[0] if order else 0
        return kind, size

    def _count_sound(self, data: UInt8, positions: Int64) -> int:
        """Return how many blocks precede the first with two different lengths. `done` is set to that block."""
        order = self._section.order
        size = read_unsigned(data, positions + 4, 4, order)
        other = read_unsigned(data, positions + size - 4, 4, order) != size
        other &= positions != self._accepted
        if not other.any():
            return len(positions)
        sound = int(other.argmax())
        self.done = int(positions[sound])
        return sound

    def _accept_doubtful(self, data: UInt8, at: int, *, ended: bool) -> bool:
        """Whether reading can continue after a packet with two different lengths, or inside it if it contains blocks;
        otherwise more bytes are needed."""
        (size,) = struct.unpack_from(self._section.order + "I", data.data, at + 4)
        position, _ = next_block(data, at + 4, at + size - 1, self._section.order, ended=ended)
        if position >= 0:
            self.damage.add_skipped(
                self.packets + 1, at, position - at, f"a length of {size:,} bytes that leads into others"
            )
            self.done = position
        elif position == NOWHERE:
            self._accept(at)
        return position != NOT_YET

    def _accept(self, at: int) -> None:
        count, packet = self._mismatches
        self._mismatches = (count + 1, packet or self.packets + 1)
        self._accepted = at

    def _is_complete(self, data: memoryview, at: int, kind: int, size: int) -> bool:
        if not self._can_be(kind, size) or at + size > len(data):
            return False
        if at == self._accepted or (kind in PACKETS and size <= USUAL_BLOCK_BYTES):
            return True
        order = (order_at(data, at) if kind == SECTION else None) or self._section.order
        return is_plausible_block(data, at, kind, size, order)

    def _can_be(self, kind: int, size: int) -> bool:
        return MIN_SIZES.get(kind, MIN_BLOCK_BYTES) <= size <= MAX_BLOCK_BYTES and not size & 3

    def _read_descriptive_block(self, data: memoryview, at: int, kind: int, size: int) -> None:
        """Read a block that is not a packet."""
        section = self._section
        if kind == SECTION:
            order = order_at(data, at) or section.order
            self._section = PcapngSection(order, section.number + 1)
            for code, value in options(data, at + 24, at + size - 4, order):
                if code == COMMENT:
                    self.notes.add_comment(value)
        elif kind == INTERFACE:
            section.interfaces.append(read_interface(data, at, size, section.order, self.notes))
        elif kind == NAME_RESOLUTION:
            self.notes.add_names(data, at, size, section.order)
        elif kind == INTERFACE_STATISTICS:
            names = [interface.name for interface in section.interfaces]
            self.notes.add_statistics(data, at, size, section.order, section.number, names)
        elif kind == DECRYPTION_SECRETS:
            self.notes.add_secrets(data, at, size, section.order)

    def _is_truncated(self, data: UInt8, *, ended: bool) -> bool:
        """Whether the file apparently ends inside this packet."""
        remaining = len(data) - self.done
        if not ended or remaining < MIN_BLOCK_BYTES:
            return False
        kind, size = struct.unpack_from(self._section.order + "II", data.data, self.done)
        if kind not in PACKETS or not self._can_be(kind, size) or not MIN_SIZES[kind] - 4 <= remaining < size:
            return False
        return self._search(data, ended=True) == NOWHERE

    def _truncated_packet(self, data: UInt8) -> PacketBatch:
        """Return the packet in which the file ends, with the bytes that the file has."""
        at = self.done
        batch = self._batch(data, np.array([at], np.int64))
        needed = struct.unpack_from(self._section.order + "I", data.data, at + 4)[0]
        self.damage.add_truncation(self.packets, at, needed, len(data) - at)
        self.done = len(data)
        return batch

    def _skip(self, data: UInt8, *, ended: bool) -> bool:
        """Continue after bytes that can't be a block; False if there is nothing more, or not yet."""
        at, remaining = self.done, len(data) - self.done
        reason, needed = self._reason(data)
        if not ended and not reason:
            return False
        position = self._search(data, ended=ended)
        if position >= 0 and position == at + needed:
            self._accept(at)  # the block that follows shows that its first length is right
        elif position >= 0:
            self.damage.add_skipped(self.packets + 1, at, position - at, reason or "a length that leads into others")
            self.done = position
        elif position == NOWHERE and (ended or self._searched > at + self._most_skipped):
            if reason:
                self.damage.add_end(self.packets + 1, at, reason, len(data) - at)
                self.stopped = True
            else:
                self.damage.add_truncation(self.packets + 1, at, needed, remaining)
            self.done = len(data)
        return position >= 0

    def _reason(self, data: UInt8) -> tuple[str, int]:
        """Return why no block is here, empty if one may be, and the bytes that it needs."""
        at, remaining, order = self.done, len(data) - self.done, self._section.order
        if remaining < MIN_BLOCK_BYTES:
            return "", MIN_BLOCK_BYTES
        kind, size = struct.unpack_from(order + "II", data.data, at)
        if kind == SECTION:
            order_of_section = order_at(memoryview(data.data), at)
            if order_of_section is None:
                return "a section without its byte-order magic", 0
            size = struct.unpack_from(order_of_section + "I", data.data, at + 4)[0]
        if not self._can_be(kind, size):
            return f"a block of type {kind:#x} can't have a length of {size:,} bytes", 0
        if size <= remaining:
            return f"a block of type {kind:#x} whose length of {size:,} bytes is another at its end", size
        return "", size

    def _search(self, data: UInt8, *, ended: bool) -> int:
        start, until = max(self.done + 1, self._searched), self.done + self._most_skipped
        position, self._searched = next_block(data, start, until, self._section.order, ended=ended)
        return position

    def _batch(self, data: UInt8, at: Int64) -> PacketBatch:
        section, order = self._section, self._section.order
        kind, size, wide, high, low, captured, length = read_words(data, at, 7, order)
        simple = kind == SIMPLE_PACKET
        narrow = wide & 0xFFFF if order == "<" else wide >> 16
        interface = np.where(kind == ENHANCED_PACKET, wide, np.where(simple, 0, narrow))
        length = np.where(simple, wide, length)
        start = np.where(simple, 12, 28)
        captured = np.where(simple, np.minimum(length, section.simple_snaplen), captured)
        end = np.minimum(at + size - 4, len(data))
        captured = np.minimum(captured, end - at - start)
        ticks = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        time_ns, link_type = times_and_link_types(section.interfaces, interface, ticks, simple)
        options_at = np.where(simple, end, at + start + (captured + 3 & ~3))
        comments = self.notes.of_packets(data, options_at, end, order)
        first, self.packets = self.packets, self.packets + len(at)
        number = np.arange(first, self.packets)
        return PacketBatch(
            data, self.base, number, time_ns, at + start, captured, np.maximum(captured, length), link_type, comments
        )
