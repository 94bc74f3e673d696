"""Compresses and decompresses record sections. A new codec is a number in `CompressionType` and an entry in `CODECS`;
redaction drops records that it can't compress to their size, until `protocol/records/compress_to_size.py` can.

A codec's number is in the lowest three bits of the attributes (CompressionType in kafka-clients). Snappy is raw
(librdkafka) or in the blocks of the xerial framing (Java), which has a magic. lz4 is the frame format; clients before
Kafka 0.10 wrote a wrong header checksum (KIP-57). Decompression is bounded: a section that exceeds its limit raises
`DecompressionError`, which becomes a finding, not an allocation.
"""

import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import cramjam
import numpy as np

from dissector.core import limits
from dissector.core.arrays import UInt8
from dissector.core.expansion import RUN, USED_UP
from dissector.protocol.records.lz4 import single_block, with_right_checksum, with_wrong_checksum
from dissector.protocol.schema.field_enums import CompressionType
from dissector.protocol.wire import LimitError

CODEC_MASK: Final = 0x07
"""The bits of a batch's or message's attributes that hold its codec."""
XERIAL_HEADER: Final = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
"""Magic, version, least compatible version (org.xerial.snappy.SnappyCodec)."""
XERIAL_MAGIC: Final = XERIAL_HEADER[:8]
XERIAL_BLOCK: Final = 32 << 10
USUAL_RATIO: Final = 1000
"""More than deflate can reach. A damaged section is charged this multiple of its size."""
LIKELY_RATIO: Final = 64
"""More than most records reach: the size of the first buffer, as a multiple of the section's."""

Part = TypeVar("Part")


class DecompressionError(ValueError):
    """A compressed section that can't be read, or that exceeds a limit."""


class UsedUpError(DecompressionError):
    """A section for which a run has no room: another one may have it."""


class TooLargeError(DecompressionError):
    """A section that is larger than allowed once decompressed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"larger than {limit:,} bytes once decompressed")


class DecompressionBudget:
    """What one frame may cost: decompressed bytes, records with their headers, nodes of its tree.

    Each section may become at most `section` bytes, all together `total`. Bytes and records are also limited by the
    size of the sections on the wire (`Limits.packed_size` and those after it). Unreadable sections are charged, too.
    All frames of a run share another room (`core/expansion.py`).
    """

    def __init__(self, section: int, total: int, bounds: limits.Limits = limits.DEFAULT) -> None:
        self._section = section
        self._remaining = total
        self._bounds = bounds
        self._packed_size = bounds.packed_size
        self._packed_records = bounds.packed_records
        self._records = bounds.frame_records
        self._nodes = bounds.tree_nodes
        self.has_masked = False
        """Whether a section was charged that is masked, and so is not charged to who reads the frame then."""
        self.masked_unopened: list[str] = []
        """Why sections could not be opened that are masked whole for that: their readers can't tell any more."""

    def decompressed(self, codec: int, data: bytes, *, magic: int = 2) -> bytes:
        """Return `data` decompressed. Raises `DecompressionError`."""
        found = CODECS.get(codec)
        if found is None:
            raise DecompressionError(f"codec {codec} is not known")
        if magic < 2:
            data = found.repair(data)
        if codec == CompressionType.NONE:
            return data
        if not RUN.admits_section():
            raise UsedUpError(USED_UP)
        self._packed_size += self._bounds.packed_ratio * len(data)
        limit = min(self._section, self._remaining, self._packed_size)
        try:
            plain = found.decompress(data, limit)
        except TooLargeError:
            self._charge(limit, len(data))
            raise
        except DecompressionError:
            self._charge(min(limit, USUAL_RATIO * len(data)), len(data))
            raise
        self._charge(len(plain), len(data))
        return plain

    def decompressed_into(self, codec: int, data: memoryview, out: UInt8) -> int | None:
        """Decompress `data` of magic 2 into a buffer, and return its size; None where `decompressed` has to decide: it
        may be too large, or damaged."""
        into = CODECS[codec].into if codec in CODECS else None
        packed_size = self._packed_size + self._bounds.packed_ratio * len(data)
        if into is None or not RUN.has_room:
            return None
        try:
            size = into(data, out[: min(self._section, self._remaining, packed_size)])
        except cramjam.DecompressionError:
            return None
        self._packed_size = packed_size
        self._charge(size, len(data))
        return size

    def _charge(self, size: int, wire: int) -> None:
        RUN.take(wire, size)
        self._remaining -= size
        self._packed_size -= size

    def admit(self, records: int, size: int) -> None:
        """Charge the records of a section of `size` bytes on the wire. Raises `DecompressionError`."""
        if records > min(self._records, self._packed_records + size):
            raise DecompressionError(f"{size:,} bytes hold more records than are allowed")
        self._packed_records += size - records
        self._records -= records

    def admitted(self, parts: Iterator[Part], size: int) -> list[Part]:
        """Return the parts of such a section, if their number is not known before. Raises `DecompressionError`."""
        found = list(islice(parts, min(self._records, self._packed_records + size) + 1))
        self.admit(len(found), size)
        return found

    @property
    def parts(self) -> int:
        """How many headers of records, or fields of metrics, are left."""
        return min(self._records, self._packed_records)

    def admit_parts(self, count: int, at: int, what: str = "headers") -> None:
        """Charge headers of a record, or fields of metrics, of an admitted section. Raises `LimitError`."""
        if count > self.parts:
            raise over_parts(what, at)
        self._packed_records -= count
        self._records -= count

    def admit_nodes(self, count: int, at: int) -> None:
        """Charge nodes of the tree. Raises `LimitError`."""
        self._nodes -= count
        if self._nodes < 0:
            raise LimitError(f"more than {self._bounds.tree_nodes:,} fields", at)


def over_parts(what: str, at: int) -> LimitError:
    """Return the error of a frame that has more parts than its budget allows."""
    return LimitError(f"more {what} than one frame may have", at)


def _unchanged(section: bytes) -> bytes:
    return section


class Codec(NamedTuple):
    """How one codec is read and written. `decompress(data, limit)` raises `DecompressionError`."""

    name: str
    decompress: Callable[[bytes, int], bytes]
    compress: Callable[[bytes], bytes]
    into: Callable[..., int] | None = None
    """Writes to a buffer what `decompress` returns, and returns how many bytes. Raises `cramjam.DecompressionError`."""
    repair: Callable[[bytes], bytes] = _unchanged
    """Turns a section of magic 0 or 1 into one that today's decoders accept (KIP-57)."""
    as_magic_0: Callable[[bytes], bytes] = _unchanged
    """Turns a compressed section into what clients of magic 0 wrote (KIP-57)."""


def codec_name(codec: int) -> str:
    """Return ``lz4``, or ``unknown(5)``."""
    return CODECS[codec].name if codec in CODECS else f"unknown({codec})"


def _bounded(into: Callable[..., int]) -> Callable[[bytes, int], bytes]:
    """Return a cramjam decoder that writes to a buffer.

    The first buffer is small and costs no new page. If it is too small, the second one has the size of the limit,
    and its untouched pages cost nothing.
    """

    def decompress(data: bytes, limit: int) -> bytes:
        room = min(limit, LIKELY_RATIO * len(data))
        while True:
            out = np.empty(room, np.uint8)
            try:
                return out[: into(data, out)].tobytes()
            except cramjam.DecompressionError as error:
                if "whole buffer" not in str(error):
                    raise DecompressionError(str(error)) from None
                if room == limit:
                    raise TooLargeError(limit) from None
                room = limit

    return decompress


_lz4_frame: Final = _bounded(cramjam.lz4.decompress_into)
_lz4_block: Final[Callable[..., int]] = cramjam.lz4.decompress_block_into
_snappy_raw: Final[Callable[..., int]] = cramjam.snappy.decompress_raw_into


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(XERIAL_MAGIC):
        return _snappy_block(data, limit)
    blocks: list[bytes] = []
    at = len(XERIAL_HEADER)
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        block = data[at + 4 : at + 4 + size]
        if len(block) < size or not size:
            raise DecompressionError(f"xerial block at byte {at} runs past the end")
        blocks.append(_snappy_block(block, limit))
        limit -= len(blocks[-1])
        at += 4 + size
    return b"".join(blocks)


def _snappy_block(data: bytes, limit: int) -> bytes:
    try:
        if cramjam.snappy.decompress_raw_len(data) > limit:
            raise TooLargeError(limit)
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise DecompressionError(str(error)) from None


def _snappy_into(data: memoryview, out: UInt8) -> int:
    """Decompress into a buffer. Raises `cramjam.DecompressionError`."""
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        return _snappy_raw(data, out)
    at, filled = len(XERIAL_HEADER), 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        block = data[at + 4 : at + 4 + size]
        if len(block) < size or not size:
            raise cramjam.DecompressionError
        filled += _snappy_raw(block, out[filled:])
        at += 4 + size
    return filled


def _xerial(data: bytes) -> bytes:
    parts = [XERIAL_HEADER]
    for at in range(0, len(data), XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + XERIAL_BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _lz4_plain(data: bytes, limit: int) -> bytes:
    block = single_block(data)
    if block is not None:
        out = np.empty(min(limit, block[1], LIKELY_RATIO * len(data)), np.uint8)
        with contextlib.suppress(cramjam.DecompressionError):  # the frame's decoder then gives the reason
            return out[: _lz4_block(block[0], out)].tobytes()
    return _lz4_frame(data, limit)


def _lz4(data: bytes) -> bytes:
    """Compress with independent blocks: brokers refuse frames with linked ones (KafkaLZ4BlockInputStream)."""
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


CODECS: Final[dict[int, Codec]] = {
    CompressionType.NONE: Codec("none", lambda data, _limit: data, _unchanged),
    CompressionType.GZIP: Codec(
        "gzip",
        _bounded(cramjam.gzip.decompress_into),
        lambda data: bytes(cramjam.gzip.compress(data)),
        cramjam.gzip.decompress_into,
    ),
    CompressionType.SNAPPY: Codec("snappy", _snappy, _xerial, _snappy_into),
    CompressionType.LZ4: Codec(
        "lz4", _lz4_plain, _lz4, cramjam.lz4.decompress_into, with_right_checksum, with_wrong_checksum
    ),
    CompressionType.ZSTD: Codec(
        "zstd",
        _bounded(cramjam.zstd.decompress_into),
        lambda data: bytes(cramjam.zstd.compress(data)),
        cramjam.zstd.decompress_into,
    ),
}
