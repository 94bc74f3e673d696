"""Sources of a capture's bytes: a complete file, a stream through a pipe or a decoder, a growing file.

Invariants:
  * `data` only grows at its end; the store has its bytes from address `base` on;
  * `more` returns within about `streams.WAIT` seconds, whether or not bytes arrived;
  * `ended` is true once `data` is complete; the reason for an early end is in `problems`.
"""

import mmap
import os
import time
from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple, Protocol

import numpy as np

from dissector.capture.compression import MAGIC_SIZE, Decompression, FileDecompressionError, recognize_codec
from dissector.capture.streams import FIRST_STEP, GATHER, STEP, WAIT, InputStream
from dissector.core.arrays import UInt8
from dissector.core.finding import Finding, Severity
from dissector.core.limits import Limits
from dissector.core.mapped_files import intact_size, survive_truncation
from dissector.core.spool import Spool, SpoolFullError
from dissector.core.store import Store

_POLL_SECONDS: Final = 0.02
"""Seconds between two checks of a growing file."""
TRUNCATED: Final = "file-truncated"
"""The finding of a file that has less than it should."""
NO_BYTES: Final = np.zeros(0, np.uint8)


class UndecodedBytes(NamedTuple):
    """The rest of a file that could not be decompressed."""

    at: int
    """Offset in the compressed file."""
    reason: str


class CaptureSource(Protocol):
    """Bytes of a capture. Progress is `done` of `total`; a `total` of 0 is unknown."""

    base: int
    ended: bool
    grows: bool
    """Whether bytes arrive at any time. Other sources have them whenever `more` is called."""
    undecoded: UndecodedBytes | None
    """Where decoding stopped early, and why."""

    @property
    def problems(self) -> list[Finding]:
        """What is wrong with the file."""

    @property
    def data(self) -> UInt8:
        """All bytes so far."""

    @property
    def total(self) -> int:
        """Bytes of the file, as compressed."""

    def done(self, at: int) -> int:
        """Return how much of `total` is read when `at` of `data` is reached."""

    def more(self) -> None:
        """Wait a short time for more bytes."""

    def map_all(self) -> mmap.mmap | None:
        """Return all bytes as a map, once ended; None if there are none."""

    def close(self) -> None:
        """Close the file. Mappings are released with the last batch that points into them."""


def _truncation(name: str, region: mmap.mmap) -> list[Finding]:
    """Return a finding if a mapped file has become shorter."""
    size = intact_size(region)
    if size is None or size == len(region):
        return []
    words = (
        f"{name}: the file became shorter while it was read: {size:,} of {len(region):,} bytes are left. Rows that "
        "were read are kept, without what they had in the rest. Copy a file before you read it if it is written again"
    )
    return [Finding(TRUNCATED, Severity.WARNING, words)]


class MappedSource:
    """A complete file, mapped. Raises `ValueError` for an empty one, `OSError` if it can't be mapped."""

    ended = True
    grows = False
    undecoded: UndecodedBytes | None = None

    def __init__(self, name: str, file: IO[bytes], store: Store) -> None:
        self._name = name
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        survive_truncation(self._map)
        file.close()  # the map has its own descriptor, and a ring may have thousands of files
        self.base = store.add(memoryview(self._map))
        self._all = np.frombuffer(self._map, np.uint8)

    @property
    def data(self) -> UInt8:
        """All bytes, without those that the file has lost."""
        return self._all[: intact_size(self._map)]

    @property
    def problems(self) -> list[Finding]:
        return _truncation(self._name, self._map)

    @property
    def total(self) -> int:
        return len(self._map)

    def done(self, at: int) -> int:
        return at

    def more(self) -> None:
        """Do nothing: all bytes are there."""

    def map_all(self) -> mmap.mmap | None:
        return self._map

    def close(self) -> None:
        """Nothing is open but the map."""


class ConvertedSource:
    """A file that was converted in memory, such as hex text to pcapng."""

    ended = True
    grows = False

    def __init__(self, data: bytes, store: Store, original: CaptureSource) -> None:
        self._original = original
        self.problems = original.problems
        self.undecoded = original.undecoded
        self.base = store.add(data)
        self.data = np.frombuffer(data, np.uint8)

    @property
    def total(self) -> int:
        return self._original.total

    def done(self, at: int) -> int:
        return self.total

    def more(self) -> None:
        """Do nothing: all bytes are there."""

    def map_all(self) -> mmap.mmap | None:
        return None

    def close(self) -> None:
        self._original.close()


class SpooledSource:
    """Bytes of a stream, decompressed if necessary, in a spool."""

    def __init__(self, name: str, stream: InputStream, store: Store, limits: Limits) -> None:
        self._name = name
        self._stream = stream
        self._head: bytes | None = b""
        """First bytes, while they are too few to recognize compression; None afterwards."""
        self._decompression: Decompression | None = None
        self._pieces: Iterator[bytes] = iter(())
        """Remaining output of the decoder."""
        self._limits = limits
        self._spool = Spool(store, limits.spooled_bytes)
        self.base = self._spool.base
        self.ended = False
        self.grows = stream.total == 0
        self.problems: list[Finding] = []
        self.undecoded: UndecodedBytes | None = None

    @property
    def data(self) -> UInt8:
        return self._spool.data

    @property
    def total(self) -> int:
        return self._stream.total

    def done(self, at: int) -> int:
        return self._stream.done

    def more(self) -> None:
        """Read up to `STEP` bytes, or those that arrive in time. `ended` is set in the call after the last bytes."""
        start, until = self._spool.size, time.monotonic() + WAIT
        stop = start + (STEP if start else FIRST_STEP)
        try:
            while not self.ended and self._spool.size < stop and time.monotonic() < until:
                piece = self._next(0.0 if self._spool.size > start else WAIT)
                if piece is None:
                    break
                self._check_expansion(len(piece))
                self._spool.append(piece)
        except SpoolFullError as error:
            self._end("not-read-on", f"{error}; the rest is not read")
        except FileDecompressionError as error:
            words = f"{self._codec} data damaged at byte {error.at:,}: {error}; the rest is not read"
            self.undecoded = UndecodedBytes(error.at, f"{self._codec} data damaged: {error}")
            self._end("file-damaged", words)

    def _check_expansion(self, size: int) -> None:
        """Raise `SpoolFullError` if so many more bytes are more than a capture is compressed to."""
        if self._decompression is None or self._spool.size + size <= self._limits.expansion_bytes:
            return
        if self._spool.size + size > self._limits.expansion * self._stream.done:
            raise SpoolFullError(
                f"{self._codec} data that expands to more than {self._limits.expansion:,} times its size"
            )

    def _next(self, seconds: float) -> bytes | None:
        """Return the next piece; None if nothing arrived within so many seconds, or at the end."""
        for piece in self._pieces:
            return piece
        undone = self._decompression
        if self._stream.ended:
            self.ended = True
            if undone and not undone.is_whole:
                self._end(TRUNCATED, f"{self._codec} data that end too early, after {undone.at:,} bytes")
            return None
        data = self._to_process(self._stream.read(seconds))
        if self._decompression is None:
            return data if data or self._stream.ended else None
        if not data and not self._stream.ended:
            return None
        self._pieces = self._decompression.feed(data)
        return b""

    @property
    def _codec(self) -> str:
        return self._decompression.codec.name if self._decompression else ""

    def _to_process(self, data: bytes) -> bytes:
        """Return the bytes to process, once the first ones have shown whether they are compressed."""
        if self._head is None:
            return data
        data = self._head + data
        if len(data) < MAGIC_SIZE and not self._stream.ended:
            self._head = data
            return b""
        codec = recognize_codec(data)
        self._decompression, self._head = Decompression(codec) if codec else None, None
        return data

    def _end(self, code: str, words: str) -> None:
        self.ended = True
        self.problems.append(Finding(code, Severity.WARNING, f"{self._name}: {words}"))

    def map_all(self) -> mmap.mmap | None:
        return self._spool.map_all()

    def close(self) -> None:
        self._stream.close()
        self._spool.close()


class GrowingFileSource:
    """A file that another process appends to, mapped as far as it has grown, until `ended` returns true."""

    grows = True
    total = 0
    undecoded: UndecodedBytes | None = None

    def __init__(self, name: str, file: IO[bytes], store: Store, ended: Callable[[], bool]) -> None:
        self._name = name
        self._file = file
        self._store = store
        self._is_complete = ended
        self._map: mmap.mmap | None = None
        self.base = store.reserve()
        self.data: UInt8 = NO_BYTES
        self.ended = False

    @property
    def problems(self) -> list[Finding]:
        return _truncation(self._name, self._map) if self._map is not None else []

    def done(self, at: int) -> int:
        return at

    def more(self) -> None:
        """Look at the file until it has grown, has ended, or time is up."""
        until = time.monotonic() + WAIT
        while not self.ended:
            is_last = self._is_complete()  # checked before the size, so that all bytes before the end are seen
            size = os.fstat(self._file.fileno()).st_size
            if size > len(self.data):
                time.sleep(GATHER)
                size = os.fstat(self._file.fileno()).st_size
                self._map = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ)
                survive_truncation(self._map)
                self._store.fill(self.base, memoryview(self._map))
                self.data = np.frombuffer(self._map, np.uint8)
                return
            if size < len(self.data):
                is_last = True
            self.ended = is_last
            if time.monotonic() > until:
                return
            if not is_last:
                time.sleep(_POLL_SECONDS)

    def map_all(self) -> mmap.mmap | None:
        return self._map

    def close(self) -> None:
        self._file.close()
