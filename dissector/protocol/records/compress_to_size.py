"""Compresses bytes to a given size, so that a compressed section can be replaced without changing its frame's size.

Redacted contents are asterisks and compress better than the originals. The remaining bytes are filled with elements
that decoders ignore, by the rules of each format:

  * gzip (RFC 1952): empty stored blocks of five bytes, and a comment for the rest;
  * zstd (RFC 8878): empty raw blocks of three bytes, and a dictionary id of 0, which means none, for the rest;
  * snappy: literals of one byte, whose headers may take up to five;
  * lz4: a skippable frame at the end, of eight bytes or more; for less, contents that compress slightly worse.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import cramjam

from dissector.protocol.records.compression import XERIAL_BLOCK, XERIAL_HEADER, XERIAL_MAGIC
from dissector.protocol.schema.field_enums import CompressionType

Span = tuple[int, int]
_STORED: Final = b"\x00\x00\x00\xff\xff"
_COMMENT: Final = 0x10
_RAW_BLOCK: Final = bytes(3)
_SINGLE_SEGMENT: Final = 0x20
_DESCRIPTOR: Final = 4
_SKIPPABLE: Final = b"\x50\x2a\x4d\x18"
_SKIPPABLE_HEAD: Final = 8
_MAX_SHORT_LITERAL: Final = 60
"""Bytes of the longest snappy literal whose length is in its tag."""
_COPY_SIZE: Final = 3
"""Bytes of a snappy copy element of up to 64 bytes, from up to 64 KiB back."""
_MAX_LENGTH_BYTES: Final = 4
"""Maximum bytes of a snappy literal's length after its tag."""
_LZ4_LEVEL: Final = 1
_MAX_LZ4_LEVEL: Final = 12
_ZSTD_LEVEL: Final = 3
_MAX_ZSTD_LEVEL: Final = 19
"""Only where the other, which is many times as fast, does not fit."""
_MAX_ATTEMPTS: Final = 64
"""Variants of the contents that lz4 compresses until one fits."""
_NO_TEXT: Final = bytes(0x80 | number * 7 % 64 for number in range(64))
"""Bytes that are no text, in any order: by chance letters may be those of a name."""


def compress_to_size(codec: int, plain: bytes, original: bytes, free: Sequence[Span]) -> bytes | None:
    """Return `plain`, compressed to the size of `original`, which was compressed with that codec; None if it does not
    fit. `free` are the spans of `plain` whose contents may be changed."""
    compress = COMPRESSORS.get(codec)
    return None if compress is None else compress(plain, original, free)


def _gzip(plain: bytes, original: bytes, _free: Sequence[Span]) -> bytes | None:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = compressor.compress(plain) + compressor.flush()
    end = zlib.crc32(plain).to_bytes(4, "little") + (len(plain) & 0xFFFFFFFF).to_bytes(4, "little")
    blocks, rest = divmod(len(original) - 10 - len(body) - len(end), len(_STORED))
    if blocks < 0:
        return None
    head = b"\x1f\x8b\x08" + bytes([_COMMENT if rest else 0]) + bytes(5) + b"\xff"
    comment = b" " * (rest - 1) + b"\x00" if rest else b""
    return head + comment + blocks * _STORED + body + end


def _zstd(plain: bytes, original: bytes, _free: Sequence[Span]) -> bytes | None:
    frame = bytes(cramjam.zstd.compress(plain, _ZSTD_LEVEL))
    if len(frame) > len(original):
        frame = bytes(cramjam.zstd.compress(plain, _MAX_ZSTD_LEVEL))
    blocks, rest = divmod(len(original) - len(frame), len(_RAW_BLOCK))
    if blocks < 0:
        return None
    descriptor = frame[_DESCRIPTOR]
    single = bool(descriptor & _SINGLE_SEGMENT)
    window = _DESCRIPTOR + 1 + (not single)
    content = window + (single, 2, 4, 8)[descriptor >> 6]
    head = frame[:_DESCRIPTOR] + bytes([descriptor | rest]) + frame[_DESCRIPTOR + 1 : window]
    return head + bytes(rest) + frame[window:content] + blocks * _RAW_BLOCK + frame[content:]


def _lz4(plain: bytes, original: bytes, free: Sequence[Span]) -> bytes | None:
    room = len(original) - len(fast := _lz4_frame(plain, _LZ4_LEVEL))
    if room == 0 or room >= _SKIPPABLE_HEAD:
        return _lz4_filled(fast, room)
    for content in _variants(plain, free):
        frame = _lz4_frame(content, _MAX_LZ4_LEVEL)
        room = len(original) - len(frame)
        if room == 0 or room >= _SKIPPABLE_HEAD:
            return _lz4_filled(frame, room)
        if room < 0:
            return None
    return None


def _lz4_frame(plain: bytes, level: int) -> bytes:
    compressor = cramjam.lz4.Compressor(level=level, block_linked=False)
    compressor.compress(plain)
    return bytes(compressor.finish())


def _lz4_filled(frame: bytes, room: int) -> bytes:
    """Return a frame with so many bytes behind it: none, or those of a skippable frame."""
    size = room - _SKIPPABLE_HEAD
    return frame if not room else frame + _SKIPPABLE + size.to_bytes(4, "little") + bytes(size)


def _variants(plain: bytes, free: Sequence[Span]) -> Iterator[bytes]:
    """Yield the bytes unchanged, then with more and more of the free spans as other bytes, which compress worse."""
    yield plain
    changed = bytearray(plain)
    positions = (at for start, end in free for at in range(end - 1, start - 1, -1))
    for number, at in zip(range(_MAX_ATTEMPTS), positions, strict=False):
        changed[at] = _NO_TEXT[number]
        yield bytes(changed)


def _snappy(plain: bytes, original: bytes, _free: Sequence[Span]) -> bytes | None:
    if not original.startswith(XERIAL_MAGIC):
        return _exactly(_snappy_block(plain, len(original)), len(original))
    parts = [XERIAL_HEADER]
    pieces = [plain[at : at + XERIAL_BLOCK] for at in range(0, len(plain), XERIAL_BLOCK)]
    room = len(original) - len(XERIAL_HEADER) - sum(4 + len(cramjam.snappy.compress_raw(piece)) for piece in pieces)
    for piece in pieces:
        least = len(cramjam.snappy.compress_raw(piece))
        block = _snappy_block(piece, least + room)
        room -= len(block) - least
        parts += (len(block).to_bytes(4, "big"), block)
    return _exactly(b"".join(parts), len(original))


def _exactly(data: bytes, size: int) -> bytes | None:
    return data if len(data) == size else None


def _snappy_block(plain: bytes, size: int) -> bytes:
    """Return a snappy block of `size` bytes, or as near to it as possible: from the front on, copies become literals,
    and literals become single bytes with long headers."""
    block = bytes(cramjam.snappy.compress_raw(plain))
    room = size - len(block)
    at = next(at for at, byte in enumerate(block) if byte < 0x80) + 1  # after the uncompressed length
    out, plain_at = [block[:at]], 0
    while at < len(block):
        end, length = _element(block, at)
        literal, copy = _split(block[at:end], length, room)
        if literal:
            least = len(_literal_header(literal)) + literal + len(copy)
            room -= least - (end - at)
            out.append(_spread(plain[plain_at : plain_at + literal], room, len(copy) + len(block) - end))
            room -= len(out[-1]) + len(copy) - least
        out.append(copy)
        at, plain_at = end, plain_at + length
    return b"".join(out)


def _split(element: bytes, length: int, room: int) -> tuple[int, bytes]:
    """Return how many of an element's bytes become a literal, as far as there is room; and the copy of the others."""
    if not element[0] & 3:
        return length, b""
    if len(_literal_header(length)) + length - len(element) <= room:
        return length, b""
    literal = min(room + len(element) - 1 - _COPY_SIZE, _MAX_SHORT_LITERAL)
    if literal < 1 or len(element) > _COPY_SIZE:
        return 0, element
    offset = (element[0] >> 5 << 8 | element[1]) if element[0] & 3 == 1 else int.from_bytes(element[1:], "little")
    return literal, bytes([length - literal - 1 << 2 | 2]) + offset.to_bytes(2, "little")


def _element(block: bytes, at: int) -> tuple[int, int]:
    """Return where an element ends, and how many uncompressed bytes it has."""
    tag = block[at]
    if tag & 3 == 1:
        return at + 2, (tag >> 2 & 7) + 4
    if tag & 3:
        return at + (3 if tag & 3 == 2 else 5), (tag >> 2) + 1
    extra = max(0, (tag >> 2) - 59)
    start = at + 1 + extra
    length = (int.from_bytes(block[at + 1 : start], "little") if extra else tag >> 2) + 1
    return start + length, length


def _spread(content: bytes, room: int, after: int) -> bytes:
    """Return a literal in up to `room` more bytes than it needs. `after` bytes follow it in the block."""
    out: list[bytes] = []
    at = 0
    while len(content) - at > 1:
        shorter = len(_literal_header(len(content) - at)) - len(_literal_header(len(content) - at - 1))
        header = _literal_header(1, min(room - 1 + shorter, _MAX_LENGTH_BYTES))
        if room <= 0 or len(header) - shorter > room:
            break
        out += (header, content[at : at + 1])
        room -= len(header) - shorter
        at += 1
    rest = content[at:]
    shortest = _literal_header(len(rest))
    long = _literal_header(len(rest), min(room + len(shortest) - 1, _MAX_LENGTH_BYTES))
    # Decoders read four bytes after the tag if a length follows it.
    fits = len(long) - 1 + len(rest) + after >= _MAX_LENGTH_BYTES
    return b"".join((*out, long if fits else shortest, rest))


def _literal_header(size: int, extra: int | None = None) -> bytes:
    """Return the tag of a literal and its length in `extra` more bytes; by default in as few as possible."""
    least = 0 if size <= _MAX_SHORT_LITERAL else (size - 1).bit_length() + 7 >> 3
    extra = least if extra is None else max(extra, least)
    return bytes([size - 1 << 2]) if not extra else bytes([59 + extra << 2]) + (size - 1).to_bytes(extra, "little")


COMPRESSORS: Final[dict[int, Callable[[bytes, bytes, Sequence[Span]], bytes | None]]] = {
    CompressionType.NONE: lambda plain, _original, _free: plain,
    CompressionType.GZIP: _gzip,
    CompressionType.SNAPPY: _snappy,
    CompressionType.LZ4: _lz4,
    CompressionType.ZSTD: _zstd,
}
"""By the codecs of record batches; a test checks that none is missing."""
