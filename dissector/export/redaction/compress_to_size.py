"""Plain bytes compressed to a size that is given, so that what a section stands in keeps its own.

What is to be packed has lost its contents to asterisks, and comes out smaller than what it replaces; the room that is
left is filled with what decoders pass over, by the rules of each format:

  * gzip (RFC 1952): empty stored blocks of five bytes, and a comment for the rest;
  * zstd (RFC 8878): empty raw blocks of three bytes, and a dictionary id of 0, which is none, for the rest;
  * snappy: literals of one byte, whose header may take up to five;
  * lz4: a skippable frame behind, of eight bytes and more; for less, contents that compress a little worse.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from string import ascii_letters
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
_SHORT: Final = 60
"""The longest snappy literal whose length stands in its tag."""
_COPY: Final = 3
"""Bytes of a snappy copy of up to 64 bytes, from up to 64 KiB back."""
_MOST_HEADER: Final = 4
"""Bytes that a snappy literal's length may take beside its tag."""
_HARDEST: Final = 12
"""The level at which lz4 packs most."""
_TRIES: Final = 64


def compress_to_size(codec: int, plain: bytes, like: bytes, free: Sequence[Span]) -> bytes | None:
    """`plain` in as many bytes as `like` has, which was packed with that codec; None where it does not go into them.

    `free` are the stretches of `plain` that may say whatever they like."""
    found = COMPRESSORS.get(codec)
    return None if found is None else found(plain, like, free)


def _gzip(plain: bytes, like: bytes, _free: Sequence[Span]) -> bytes | None:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = compressor.compress(plain) + compressor.flush()
    end = zlib.crc32(plain).to_bytes(4, "little") + (len(plain) & 0xFFFFFFFF).to_bytes(4, "little")
    blocks, rest = divmod(len(like) - 10 - len(body) - len(end), len(_STORED))
    if blocks < 0:
        return None
    head = b"\x1f\x8b\x08" + bytes([_COMMENT if rest else 0]) + bytes(5) + b"\xff"
    comment = b" " * (rest - 1) + b"\x00" if rest else b""
    return head + comment + blocks * _STORED + body + end


def _zstd(plain: bytes, like: bytes, _free: Sequence[Span]) -> bytes | None:
    frame = bytes(cramjam.zstd.compress(plain, 19))
    blocks, rest = divmod(len(like) - len(frame), len(_RAW_BLOCK))
    if blocks < 0:
        return None
    descriptor = frame[_DESCRIPTOR]
    single = bool(descriptor & _SINGLE_SEGMENT)
    window = _DESCRIPTOR + 1 + (not single)
    content = window + (single, 2, 4, 8)[descriptor >> 6]
    head = frame[:_DESCRIPTOR] + bytes([descriptor | rest]) + frame[_DESCRIPTOR + 1 : window]
    return head + bytes(rest) + frame[window:content] + blocks * _RAW_BLOCK + frame[content:]


def _lz4(plain: bytes, like: bytes, free: Sequence[Span]) -> bytes | None:
    for content in _harder(plain, free):
        compressor = cramjam.lz4.Compressor(level=_HARDEST, block_linked=False)
        compressor.compress(content)
        frame = bytes(compressor.finish())
        room = len(like) - len(frame)
        if room == 0:
            return frame
        if room >= _SKIPPABLE_HEAD:
            size = room - _SKIPPABLE_HEAD
            return frame + _SKIPPABLE + size.to_bytes(4, "little") + bytes(size)
        if room < 0:
            return None
    return None


def _harder(plain: bytes, free: Sequence[Span]) -> Iterator[bytes]:
    """The bytes as they are, then with more and more of what is free in letters, that make no run."""
    yield plain
    changed = bytearray(plain)
    places = (at for start, end in free for at in range(end - 1, start - 1, -1))
    for number, at in zip(range(_TRIES), places, strict=False):
        changed[at] = ord(ascii_letters[number * 7 % len(ascii_letters)])
        yield bytes(changed)


def _snappy(plain: bytes, like: bytes, _free: Sequence[Span]) -> bytes | None:
    if not like.startswith(XERIAL_MAGIC):
        return _exactly(_wide(plain, len(like)), len(like))
    parts = [XERIAL_HEADER]
    pieces = [plain[at : at + XERIAL_BLOCK] for at in range(0, len(plain), XERIAL_BLOCK)]
    room = len(like) - len(XERIAL_HEADER) - sum(4 + len(cramjam.snappy.compress_raw(piece)) for piece in pieces)
    for piece in pieces:
        least = len(cramjam.snappy.compress_raw(piece))
        block = _wide(piece, least + room)
        room -= len(block) - least
        parts += (len(block).to_bytes(4, "big"), block)
    return _exactly(b"".join(parts), len(like))


def _exactly(data: bytes, size: int) -> bytes | None:
    return data if len(data) == size else None


def _wide(plain: bytes, size: int) -> bytes:
    """A block that takes `size` bytes, or as near to it as can be: copies become literals, literals single bytes with
    long headers, from the front on as far as it takes."""
    block = bytes(cramjam.snappy.compress_raw(plain))
    room = size - len(block)
    at = next((at for at, byte in enumerate(block) if byte < 0x80), len(block) - 1) + 1  # behind the length in plain
    out, done = [block[:at]], 0
    while at < len(block):
        end, length = _element(block, at)
        literal, copy = _split(block[at:end], length, room)
        if literal:
            least = len(_literal_header(literal)) + literal + len(copy)
            room -= least - (end - at)
            out.append(_spread(plain[done : done + literal], room, len(copy) + len(block) - end))
            room -= len(out[-1]) + len(copy) - least
        out.append(copy)
        at, done = end, done + length
    return b"".join(out)


def _split(element: bytes, length: int, room: int) -> tuple[int, bytes]:
    """How many of an element's bytes are to be a literal, as far as there is room; the copy that the others stay."""
    if not element[0] & 3:
        return length, b""
    if len(_literal_header(length)) + length - len(element) <= room:
        return length, b""
    literal = min(length - 1, room + len(element) - 1 - _COPY, _SHORT)
    if literal < 1 or len(element) > _COPY:
        return 0, element
    offset = (element[0] >> 5 << 8 | element[1]) if element[0] & 3 == 1 else int.from_bytes(element[1:], "little")
    return literal, bytes([length - literal - 1 << 2 | 2]) + offset.to_bytes(2, "little")


def _element(block: bytes, at: int) -> tuple[int, int]:
    """Where an element ends, and how many bytes it stands for."""
    tag = block[at]
    if tag & 3 == 1:
        return at + 2, (tag >> 2 & 7) + 4
    if tag & 3:
        return at + (3 if tag & 3 == 2 else 5), (tag >> 2) + 1
    extra = max(0, (tag >> 2) - 59)
    start = at + 1 + extra
    length = (int.from_bytes(block[at + 1 : start], "little") if extra else tag >> 2) + 1
    return start + length, length


def _spread(content: bytes, room: int, behind: int) -> bytes:
    """A literal in up to `room` bytes more than it needs; `behind` are the bytes after it in its block."""
    out: list[bytes] = []
    at = 0
    while len(content) - at > 1:
        shorter = len(_literal_header(len(content) - at)) - len(_literal_header(len(content) - at - 1))
        header = _literal_header(1, min(room - 1 + shorter, _MOST_HEADER))
        if room <= 0 or len(header) - shorter > room:
            break
        out += (header, content[at : at + 1])
        room -= len(header) - shorter
        at += 1
    rest = content[at:]
    least = _literal_header(len(rest))
    wide = _literal_header(len(rest), min(room + len(least) - 1, _MOST_HEADER))
    # Decoders look at four bytes behind the tag where it says that a length follows.
    fits = len(wide) - 1 + len(rest) + behind >= _MOST_HEADER
    return b"".join((*out, wide if fits else least, rest))


def _literal_header(size: int, extra: int | None = None) -> bytes:
    """The tag of a literal, and its length in so many bytes more; by default in as few as there can be."""
    least = 0 if size <= _SHORT else (size - 1).bit_length() + 7 >> 3
    extra = least if extra is None else max(extra, least)
    return bytes([size - 1 << 2]) if not extra else bytes([59 + extra << 2]) + (size - 1).to_bytes(extra, "little")


COMPRESSORS: Final[dict[int, Callable[[bytes, bytes, Sequence[Span]], bytes | None]]] = {
    CompressionType.NONE: lambda plain, _like, _free: plain,
    CompressionType.GZIP: _gzip,
    CompressionType.SNAPPY: _snappy,
    CompressionType.LZ4: _lz4,
    CompressionType.ZSTD: _zstd,
}
"""One for each of `CODECS`: a test holds the two together."""
