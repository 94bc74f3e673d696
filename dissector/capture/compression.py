"""Compressed files, decompressed piece by piece: gzip, zstd, lz4, xz and bzip2, recognized by magic numbers.

Every decoder has the interface of `bz2.BZ2Decompressor`: a call returns at most `max_length` bytes, so that a
decompression bomb takes long to read but never much memory. Consecutive members are concatenated (RFC 1952, 2.2;
RFC 8878, 3.1).
"""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Final, NamedTuple, Protocol

MAGIC_SIZE: Final = 6
"""Bytes needed to recognize a codec."""
LARGEST_DICTIONARY: Final = 1 << 27
"""Maximum bytes of output that a decoder may refer back to: zstd's default; xz needs half of it for its largest
preset."""
_OUTPUT_BYTES: Final = 1 << 20
"""Maximum decompressed bytes of a step."""
_INPUT_BYTES: Final = 1 << 13
"""Compressed bytes of a step. Damage loses up to this many good bytes before it."""
_SKIPPABLE: Final = 0x184D2A50
"""The first of 16 magic numbers of zstd and lz4 frames that hold something else."""


class Decoder(Protocol):
    """One member of a compressed file."""

    @property
    def eof(self) -> bool:
        """Whether the member's end was reached."""

    @property
    def needs_input(self) -> bool:
        """Whether more input is needed for more output."""

    @property
    def unused_data(self) -> bytes:
        """Input after the member's end."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return the next bytes, at most `max_length`."""


class _Gzip:
    """`zlib` with the interface of the other decoders."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._has_no_more = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.eof and self._has_no_more and not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        output = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._has_no_more = len(output) < max_length
        return output


class FileCodec(NamedTuple):
    """A compression format of files."""

    name: str
    matches: Callable[[bytes], bool]
    decoder: Callable[[], Decoder]


@cache
def _zstd() -> ModuleType:
    if sys.version_info >= (3, 14):  # imported on use, as lz4 is: few captures are compressed
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _zstd_decoder() -> Decoder:
    zstd = _zstd()
    decoder: Decoder = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 27})
    return decoder


def _decoder_errors() -> tuple[type[Exception], ...]:
    """What decoders raise for damaged bytes."""
    return (
        zlib.error, OSError, EOFError, lzma.LZMAError, _zstd().ZstdError, RuntimeError, ValueError, MemoryError
    )  # fmt: skip


def _lz4() -> Decoder:
    from lz4.frame import LZ4FrameDecompressor

    decoder: Decoder = LZ4FrameDecompressor()
    return decoder


def _is_skippable(head: bytes) -> bool:
    return len(head) >= 4 and int.from_bytes(head[:4], "little") & ~0xF == _SKIPPABLE


CODECS: Final = (
    FileCodec("gzip", lambda head: head.startswith(b"\x1f\x8b\x08"), _Gzip),
    FileCodec("zstd", lambda head: head.startswith(b"\x28\xb5\x2f\xfd") or _is_skippable(head), _zstd_decoder),
    FileCodec("lz4", lambda head: head.startswith(b"\x04\x22\x4d\x18"), _lz4),
    FileCodec(
        "xz", lambda head: head.startswith(b"\xfd7zXZ\0"), lambda: lzma.LZMADecompressor(memlimit=LARGEST_DICTIONARY)
    ),
    FileCodec("bzip2", lambda head: head[:3] == b"BZh" and head[3:4].isdigit(), bz2.BZ2Decompressor),
)


def recognize_codec(head: bytes) -> FileCodec | None:
    """Return the codec of a file that begins with `head`; None if it is not compressed."""
    return next((codec for codec in CODECS if codec.matches(head)), None)


class FileDecompressionError(Exception):
    """Compressed bytes are damaged. Its text is the reason; `at` the approximate offset, in compressed bytes."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.at = at


class Decompression:
    """Decompresses one file."""

    def __init__(self, codec: FileCodec) -> None:
        self.codec = codec
        self._decoder: Decoder | None = None
        self._members = 0
        self._head = b""
        """The beginning of the next member, while it is too short to recognize."""
        self.at = 0
        """Compressed bytes consumed."""

    @property
    def is_whole(self) -> bool:
        """Whether no member is incomplete."""
        return self._decoder is None and not self._head

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the contents of the next compressed bytes, in pieces. Raises `FileDecompressionError` after the bytes
        before the damage."""
        for start in range(0, len(data), _INPUT_BYTES):
            step = data[start : start + _INPUT_BYTES]
            try:
                yield from self._decompress(step)
            except _decoder_errors() as error:
                raise FileDecompressionError(_message(error), self.at) from None
            self.at += len(step)

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        while data or self._decoder is not None:
            if self._decoder is None:
                data = self._begin_member(data)
                if self._decoder is None:
                    return
            yield self._decoder.decompress(data, _OUTPUT_BYTES)
            data = b""
            if self._decoder.eof:
                data, self._decoder = self._decoder.unused_data, None
            elif self._decoder.needs_input:
                return

    def _begin_member(self, data: bytes) -> bytes:
        """Create the decoder of the next member, if one begins here; return the bytes for it."""
        data = self._head + data
        if self._members:
            data = data.lstrip(b"\0")  # padding, as on tapes and block devices
        self._head = b""
        if len(data) < MAGIC_SIZE:
            self._head = data
            return b""
        if not self.codec.matches(data) and not (self.codec.name == "lz4" and _is_skippable(data)):
            raise ValueError(f"bytes that are not {self.codec.name} follow")
        self._decoder = self.codec.decoder()
        self._members += 1
        return data


def _message(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
