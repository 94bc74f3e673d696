"""Compressed record sections, both ways. A new codec is one entry in `CODECS`.

Kafka's numbers for codecs: the lowest three bits of the attributes (CompressionType in kafka-clients). Snappy comes
raw (librdkafka) or in the blocks of the xerial framing (Java), told by its magic. lz4 is the frame format; clients
before Kafka 0.10 put a wrong header checksum in it (KIP-57). Decompression is bounded: what would grow past the limit
raises `DecompressionError`, which becomes a finding, not an allocation.
"""

import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import cramjam
import numpy as np

from dissector.core import limits
from dissector.protocol.records.lz4 import single_block, with_right_checksum, with_wrong_checksum
from dissector.protocol.schema.field_enums import CompressionType

CODEC_MASK: Final = 0x07
"""The bits of a batch's or message's attributes that hold its codec."""
XERIAL_HEADER: Final = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
"""Magic, version, least compatible version (org.xerial.snappy.SnappyCodec)."""
XERIAL_MAGIC: Final = XERIAL_HEADER[:8]
XERIAL_BLOCK: Final = 32 << 10
USUAL_RATIO: Final = 1000
"""More than deflate can do: what a damaged section is taken to have cost, as a multiple of its size."""
LIKELY_RATIO: Final = 64
"""More than records compress to, mostly."""

Part = TypeVar("Part")


class DecompressionError(ValueError):
    """A compressed section that can't be read, or that holds more than allowed once it is."""


class TooLargeError(DecompressionError):
    """One that is larger than allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"larger than {limit:,} bytes once decompressed")


class DecompressionBudget:
    """What the compressed sections of one frame may become: each at most `section` bytes, all at most `total`; and how
    many `records` they may hold beyond one a byte. Sections that turn out unreadable have cost something too."""

    def __init__(self, section: int, total: int, records: int = limits.DEFAULT.packed_records) -> None:
        self._section = section
        self._left = total
        self._records = records

    def decompressed(self, codec: int, data: bytes, *, magic: int = 2) -> bytes:
        """`data` in plain. Raises `DecompressionError`."""
        found = CODECS.get(codec)
        if found is None:
            raise DecompressionError(f"codec {codec} is not known")
        if magic < 2:
            data = found.repair(data)
        limit = min(self._section, self._left)
        try:
            plain = found.decompress(data, limit)
        except TooLargeError:
            self._left -= limit
            raise
        except DecompressionError:
            self._left -= min(limit, USUAL_RATIO * len(data))
            raise
        self._left -= len(plain)
        return plain

    def admit(self, records: int, size: int) -> None:
        """Let in what a section of `size` bytes on the wire holds. Raises `DecompressionError`."""
        beyond = max(0, records - size)
        if beyond > self._records:
            raise DecompressionError(f"{size:,} bytes hold more records than are let in")
        self._records -= beyond

    def admitted(self, parts: Iterator[Part], size: int) -> list[Part]:
        """The parts of such a section, where their number is not known before. Raises `DecompressionError`."""
        found = list(islice(parts, size + self._records + 1))
        self.admit(len(found), size)
        return found


def _unchanged(section: bytes) -> bytes:
    return section


class Codec(NamedTuple):
    """How one codec is read and written. `decompress(data, limit)` raises `DecompressionError`."""

    name: str
    decompress: Callable[[bytes, int], bytes]
    compress: Callable[[bytes], bytes]
    repair: Callable[[bytes], bytes] = _unchanged
    """Turns a section of magic 0 or 1 into one that today's decoders accept (KIP-57)."""
    as_magic_0: Callable[[bytes], bytes] = _unchanged
    """Turns a compressed section into what clients of magic 0 wrote (KIP-57)."""


def codec_name(codec: int) -> str:
    """``lz4``, or ``unknown(5)``."""
    return CODECS[codec].name if codec in CODECS else f"unknown({codec})"


def _bounded(into: Callable[..., int]) -> Callable[[bytes, int], bytes]:
    """A cramjam decoder that writes to a buffer: of the limit's size, of which untouched pages cost nothing, once a
    small one was too small, which costs no page at all."""

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
        with contextlib.suppress(cramjam.DecompressionError):  # what the frame's decoder then puts in words
            return out[: _lz4_block(block[0], out)].tobytes()
    return _lz4_frame(data, limit)


def _lz4(data: bytes) -> bytes:
    """Each block by itself: brokers refuse frames whose blocks lean on earlier ones (KafkaLZ4BlockInputStream)."""
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


CODECS: Final[dict[int, Codec]] = {
    CompressionType.NONE: Codec("none", lambda data, _limit: data, _unchanged),
    CompressionType.GZIP: Codec(
        "gzip", _bounded(cramjam.gzip.decompress_into), lambda data: bytes(cramjam.gzip.compress(data))
    ),
    CompressionType.SNAPPY: Codec("snappy", _snappy, _xerial),
    CompressionType.LZ4: Codec("lz4", _lz4_plain, _lz4, repair=with_right_checksum, as_magic_0=with_wrong_checksum),
    CompressionType.ZSTD: Codec(
        "zstd", _bounded(cramjam.zstd.decompress_into), lambda data: bytes(cramjam.zstd.compress(data))
    ),
}
