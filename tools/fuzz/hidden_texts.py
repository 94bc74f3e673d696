"""Produce requests with a text in a place of a compressed section that no decoder shows. What redaction writes has none
of it.

The formats are those of RFC 1952 (gzip), of RFC 8878 (zstd), of lz4's frames and of org.xerial.snappy.
"""

import struct
import zlib
from collections.abc import Callable
from typing import Final

import cramjam
import google_crc32c

import dissector
from dissector.protocol.records.batch import CRC_FROM, HEADER
from dissector.protocol.records.compression import CODECS, XERIAL_HEADER, XERIAL_MAGIC
from dissector.protocol.records.from_json import batch_bytes, records_bytes
from dissector.protocol.schema.field_enums import CompressionType

Hide = Callable[[bytes, bytes], bytes]
"""Of a section's plain bytes and a text."""
_NAME, _COMMENT, _EXTRA = 0x08, 0x10, 0x04


def _gzip(flags: int, field: Callable[[bytes], bytes]) -> Hide:
    def made(plain: bytes, text: bytes) -> bytes:
        packed = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        body = packed.compress(plain) + packed.flush()
        head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(5) + b"\xff"
        return head + field(text) + body + struct.pack("<II", zlib.crc32(plain), len(plain))

    return made


def _member(plain: bytes, text: bytes) -> bytes:
    """An empty member with a name behind the one that has everything."""
    return _gzip(0, lambda _: b"")(plain, text) + _gzip(_NAME, lambda name: name + b"\0")(b"", text)


def _frame(magic: int) -> Callable[[bytes], bytes]:
    return lambda text: struct.pack("<II", magic, len(text)) + text


def _around(codec: int, magic: int, *, before: bool) -> Hide:
    def made(plain: bytes, text: bytes) -> bytes:
        packed, hidden = CODECS[codec].compress(plain), _frame(magic)(text)
        return hidden + packed if before else packed + hidden

    return made


def _behind(codec: int) -> Hide:
    return lambda plain, text: CODECS[codec].compress(plain) + text


def _xerial(plain: bytes, text: bytes) -> bytes:
    """Four letters in place of the least compatible version."""
    block = bytes(cramjam.snappy.compress_raw(plain))
    head = XERIAL_MAGIC + XERIAL_HEADER[len(XERIAL_MAGIC) : -4] + text[:4]
    return head + len(block).to_bytes(4, "big") + block


HIDDEN_IN: Final[dict[str, tuple[int, Hide]]] = {
    "gzip name": (CompressionType.GZIP, _gzip(_NAME, lambda text: text + b"\0")),
    "gzip comment": (CompressionType.GZIP, _gzip(_COMMENT, lambda text: text + b"\0")),
    "gzip extra": (
        CompressionType.GZIP,
        _gzip(_EXTRA, lambda text: struct.pack("<H2sH", 4 + len(text), b"Ap", len(text)) + text),
    ),
    "gzip empty member": (CompressionType.GZIP, _member),
    "zstd skippable before": (CompressionType.ZSTD, _around(CompressionType.ZSTD, 0x184D2A50, before=True)),
    "zstd skippable behind": (CompressionType.ZSTD, _around(CompressionType.ZSTD, 0x184D2A5F, before=False)),
    "lz4 skippable before": (CompressionType.LZ4, _around(CompressionType.LZ4, 0x184D2A50, before=True)),
    "lz4 skippable behind": (CompressionType.LZ4, _around(CompressionType.LZ4, 0x184D2A5F, before=False)),
    **{
        f"{codec.name.lower()} bytes behind": (codec, _behind(codec))
        for codec in (CompressionType.GZIP, CompressionType.ZSTD, CompressionType.LZ4)
    },
    "snappy version": (CompressionType.SNAPPY, _xerial),
}
"""By place: a codec, and what makes a section. Bytes behind the last frame are no part of any format: who reads may
refuse them."""
_RECORDS: Final = [{"key": "6b6579", "value": b"a value that is longer than most texts".hex(), "headers": []}] * 20
_MESSAGES: Final = [{"magic": 1, "value": b"a value that is longer than most texts".hex()}] * 20


def batch_with(place: str, text: bytes) -> bytes:
    """A record batch whose section has a text there."""
    codec, hide = HIDDEN_IN[place]
    raw = batch_bytes({"records": _RECORDS})
    section = hide(raw[HEADER.size :], text)
    head = list(HEADER.unpack(raw[: HEADER.size]))
    head[1], head[5] = HEADER.size - 12 + len(section), codec
    body = HEADER.pack(*head)[CRC_FROM:] + section
    head[4] = google_crc32c.value(body)
    return HEADER.pack(*head)[:CRC_FROM] + body


def message_with(place: str, text: bytes) -> bytes:
    """A message of magic 1 around a message set, whose value has a text there; not of zstd, which came later."""
    codec, hide = HIDDEN_IN[place]
    section = hide(records_bytes({"messages": _MESSAGES}), text)
    body = struct.pack(">bbqii", 1, codec, 5, -1, len(section)) + section
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def produce_with(records: bytes, version: int = 7) -> bytes:
    """A request that has these records."""
    field = {"batches": [], "unknown": {"data": records.hex()}}
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": field}]}]
    body = {"acks": 1, "timeout_ms": 1, "topic_data": topics}
    return dissector.encode_request("Produce", version, body, correlation_id=1, client_id="c")
