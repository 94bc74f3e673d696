"""Blocks of a pcapng file: where packets are, their checks, and the search for the next block after damage.

draft-ietf-opsawg-pcapng, 3.1: a type, the length, the body, the length again. A block with two equal lengths is hardly
chance; two in a row are not.
"""

import struct
from functools import partial
from typing import Final

import numpy as np

from dissector.capture.integers import ByteOrder, find_chain
from dissector.core.arrays import Bool, Int64, UInt8, UInt32
from dissector.core.kernel import kernel_function

_packet_blocks = kernel_function("packet_blocks", "PqqqqiPq")
SECTION: Final = 0x0A0D0D0A
INTERFACE: Final = 1
OBSOLETE_PACKET: Final = 2
SIMPLE_PACKET: Final = 3
NAME_RESOLUTION: Final = 4
INTERFACE_STATISTICS: Final = 5
ENHANCED_PACKET: Final = 6
DECRYPTION_SECRETS: Final = 10
PACKETS: Final = (OBSOLETE_PACKET, SIMPLE_PACKET, ENHANCED_PACKET)
KNOWN: Final = (INTERFACE, *PACKETS, NAME_RESOLUTION, INTERFACE_STATISTICS, DECRYPTION_SECRETS, SECTION)
BYTE_ORDER_MAGIC: Final[dict[bytes, ByteOrder]] = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
MIN_SIZES: Final = {SECTION: 28, INTERFACE: 20, OBSOLETE_PACKET: 32, SIMPLE_PACKET: 16, ENHANCED_PACKET: 32,
                     INTERFACE_STATISTICS: 24, DECRYPTION_SECRETS: 20}  # fmt: skip
MIN_BLOCK_BYTES: Final = 12
MAX_BLOCK_BYTES: Final = 1 << 24
"""Maximum bytes of a block, as in Wireshark."""
LEAST_PACKET_BYTES: Final = 16
CHAIN: Final = 2
"""Plausible blocks in a row that are not chance."""


def order_at(data: memoryview, at: int) -> ByteOrder | None:
    """Return the byte order of the section that begins here; None if none does."""
    return BYTE_ORDER_MAGIC.get(data[at + 8 : at + 12].tobytes())


def is_plausible_block(data: memoryview, at: int, kind: int, size: int, order: ByteOrder) -> bool:
    """Whether a block is complete, and its two lengths are equal and possible for its type."""
    if not MIN_SIZES.get(kind, MIN_BLOCK_BYTES) <= size <= MAX_BLOCK_BYTES or size & 3 or at + size > len(data):
        return False
    return bool(struct.unpack_from(order + "I", data, at + size - 4)[0] == size)


def next_block(data: UInt8, start: int, until: int, order: ByteOrder, *, ended: bool) -> tuple[int, int]:
    """Return where the first chain of known blocks between `start` and `until` begins, or `NOWHERE`, or `NOT_YET`; and
    the position up to which there is none."""

    def wanted(words: list[UInt32]) -> Bool:
        kind, size = words
        fits = (size >= MIN_BLOCK_BYTES) & (size <= MAX_BLOCK_BYTES) & (size & 3 == 0)
        return np.asarray((fits & np.isin(kind, KNOWN)) | (kind == SECTION))

    return find_chain(data, start, until, 2, order, wanted, partial(_chain, order=order, ended=ended))


def _chain(data: memoryview, at: int, order: ByteOrder, *, ended: bool) -> bool | None:
    for count in range(CHAIN):
        if at + MIN_BLOCK_BYTES > len(data):
            return (count > 0 and at == len(data)) if ended else None
        kind = struct.unpack_from(order + "I", data, at)[0]
        if kind == SECTION:
            section_order = order_at(data, at)
            if section_order is None:
                return False
            order = section_order
        size = struct.unpack_from(order + "I", data, at + 4)[0]
        if at + size > len(data) and size <= MAX_BLOCK_BYTES and not ended:
            return None
        if not is_plausible_block(data, at, kind, size, order):
            return False
        at += size
    return True


def packet_blocks(
    data: UInt8, at: int, stop: int, positions: Int64, *, largest: int, order: ByteOrder
) -> tuple[int, int]:
    """Write the positions of packet blocks of at most `largest` bytes from `at` to before `stop` into `positions`, but
    the last, natively (`capture.c`). Return how many there are; and the next position: before `stop`, if the block
    there is another, impossible or incomplete, or the places are full. Second lengths are not compared."""
    found = _packet_blocks()(
        data.ctypes.data, len(data), at, stop, largest, order == ">", positions.ctypes.data, len(positions) - 1
    )
    return found, int(positions[found])
