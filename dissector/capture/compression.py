"""Compressed files, decompressed piece by piece: gzip, zstd, lz4, xz and bzip2, recognized by magic numbers.

Every decoder has the shape of `bz2.BZ2Decompressor`: it gives at most so many bytes a call, so that a bomb is a long
read and never much memory. Members that follow each other are one content (RFC 1952, 2.2; RFC 8878, 3.1).
"""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from lz4.frame import LZ4FrameDecompressor

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC_SIZE: Final = 6
"""Bytes that tell."""
LARGEST_DICTIONARY: Final = 1 << 27
"""Bytes that a decoder may keep of what it gave: zstd's own default, and xz needs half of it for its largest preset."""
_PIECE: Final = 1 << 20
_FED: Final = 1 << 13
"""Compressed bytes given at once: what comes before damage is lost in pieces of this size."""
_SKIPPABLE: Final = 0x184D2A50
"""And the 15 numbers behind it: frames of zstd and lz4 that hold something else."""

Errors: Final = (zlib.error, OSError, EOFError, lzma.LZMAError, zstd.ZstdError, RuntimeError, ValueError, MemoryError)


class Decoder(Protocol):
    """One member of a compressed file."""

    @property
    def eof(self) -> bool:
        """Whether its end was reached."""

    @property
    def needs_input(self) -> bool:
        """Whether there is nothing more to give without more bytes."""

    @property
    def unused_data(self) -> bytes:
        """What stands behind its end."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """The next bytes."""


class _Gzip:
    """`zlib` in the others' shape."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._gave_all = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.eof and self._gave_all and not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._gave_all = len(found) < max_length
        return found


class FileCodec(NamedTuple):
    """A way to compress files."""

    name: str
    begins: Callable[[bytes], bool]
    decoder: Callable[[], Decoder]


def _zstd() -> Decoder:
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 27})


def _is_skippable(head: bytes) -> bool:
    return len(head) >= 4 and int.from_bytes(head[:4], "little") & ~0xF == _SKIPPABLE


CODECS: Final = (
    FileCodec("gzip", lambda head: head.startswith(b"\x1f\x8b\x08"), _Gzip),
    FileCodec("zstd", lambda head: head.startswith(b"\x28\xb5\x2f\xfd") or _is_skippable(head), _zstd),
    FileCodec("lz4", lambda head: head.startswith(b"\x04\x22\x4d\x18"), LZ4FrameDecompressor),
    FileCodec(
        "xz", lambda head: head.startswith(b"\xfd7zXZ\0"), lambda: lzma.LZMADecompressor(memlimit=LARGEST_DICTIONARY)
    ),
    FileCodec("bzip2", lambda head: head[:3] == b"BZh" and head[3:4].isdigit(), bz2.BZ2Decompressor),
)


def codec_of(head: bytes) -> FileCodec | None:
    """How a file of which `head` is the beginning is compressed; None where it is not."""
    return next((codec for codec in CODECS if codec.begins(head)), None)


class FileDecompressionError(Exception):
    """Compressed bytes that can't be. Its text is the reason; `at` is about where, in compressed bytes."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.at = at


class Decompression:
    """One compressed file."""

    def __init__(self, codec: FileCodec) -> None:
        self.codec = codec
        self._decoder: Decoder | None = None
        self._members = 0
        self._head = b""
        """The beginning of another member, too short to tell."""
        self.at = 0
        """Compressed bytes taken."""

    @property
    def is_whole(self) -> bool:
        """Whether all that was begun has ended."""
        return self._decoder is None and not self._head

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the next compressed bytes hold, in pieces. Raises `FileDecompressionError` after what came before it."""
        for start in range(0, len(data), _FED):
            fed = data[start : start + _FED]
            try:
                yield from self._piece(fed)
            except Errors as error:
                raise FileDecompressionError(_words(error), self.at) from None
            self.at += len(fed)

    def _piece(self, data: bytes) -> Iterator[bytes]:
        while data or self._decoder is not None:
            if self._decoder is None:
                data = self._begin(data)
                if self._decoder is None:
                    return
            yield self._decoder.decompress(data, _PIECE)
            data = b""
            if self._decoder.eof:
                data, self._decoder = self._decoder.unused_data, None
            elif self._decoder.needs_input:
                return

    def _begin(self, data: bytes) -> bytes:
        """Open the next member where one is; the bytes for it."""
        data = self._head + data
        if self._members:
            data = data.lstrip(b"\0")  # padding, as tapes and blocks have it
        self._head = b""
        if len(data) < MAGIC_SIZE:
            self._head = data
            return b""
        if not self.codec.begins(data) and not (self.codec.name == "lz4" and _is_skippable(data)):
            raise ValueError(f"bytes that are no {self.codec.name} follow")
        self._decoder = self.codec.decoder()
        self._members += 1
        return data


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
