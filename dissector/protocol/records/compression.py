"""Compressed record sections. A new codec is one entry in `CODECS`.

Kafka's numbers for codecs: the lowest three bits of a batch's attributes (CompressionType in kafka-clients). Snappy
comes raw (librdkafka) or in the blocks of the xerial framing (Java), told by its magic. Decompression is bounded: what
would grow past the limit raises `DecompressionError`, which becomes a finding, not an allocation.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import cramjam
import numpy as np

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = 16


class DecompressionError(ValueError):
    """A compressed section that can't be read, or that is larger than allowed once it is."""


class Codec(NamedTuple):
    """`decompress(data, limit)` gives the bytes or raises `DecompressionError`."""

    name: str
    decompress: Callable[[bytes, int], bytes]


def _bounded(into: Callable[..., int]) -> Callable[[bytes, int], bytes]:
    """A cramjam decoder that writes to a buffer of the limit's size: pages that it does not touch cost nothing."""

    def decompress(data: bytes, limit: int) -> bytes:
        out = np.empty(limit, np.uint8)
        try:
            size = into(data, out)
        except cramjam.DecompressionError as error:
            raise DecompressionError(_reason(error, limit)) from None
        return out[:size].tobytes()

    return decompress


def _reason(error: cramjam.DecompressionError, limit: int) -> str:
    words = str(error)
    return f"larger than {limit:,} bytes once decompressed" if "whole buffer" in words else words


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(XERIAL_MAGIC):
        return _snappy_block(data, limit)
    blocks: list[bytes] = []
    at = XERIAL_HEADER
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
            raise DecompressionError(f"larger than {limit:,} bytes once decompressed")
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise DecompressionError(str(error)) from None


CODECS: Final[dict[int, Codec]] = {
    0: Codec("none", lambda data, _limit: data),
    1: Codec("gzip", _bounded(cramjam.gzip.decompress_into)),
    2: Codec("snappy", _snappy),
    3: Codec("lz4", _bounded(cramjam.lz4.decompress_into)),
    4: Codec("zstd", _bounded(cramjam.zstd.decompress_into)),
}
