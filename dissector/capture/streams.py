"""Byte streams: from a file, or from a pipe, which may be silent for long and must not block.

A read returns bytes, nothing yet, or nothing more (`ended`).
"""

import os
import select
import time
from typing import IO, Final, Protocol

WAIT: Final = 0.2
"""Seconds after which a read returns without bytes, so that the caller can stop, draw or print."""
GATHER: Final = 0.05
"""Seconds in which small pieces are gathered: each step has a cost, but rows should appear soon."""
STEP: Final = 8 << 20
"""Bytes after which a step ends."""
FIRST_STEP: Final = 1 << 16
"""Bytes after which the first step ends: they show whether it is a capture."""
_PIECE: Final = 1 << 20


class InputStream(Protocol):
    """A source of bytes. `done` of `total` are read; a `total` of 0 is unknown."""

    done: int
    total: int
    ended: bool

    def read(self, seconds: float) -> bytes:
        """Return the bytes that arrive within so many seconds; empty if there are none, or at the end."""

    def close(self) -> None:
        """Close it."""


class FileStream:
    """A complete file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.done = 0
        self.total = os.fstat(file.fileno()).st_size
        self.ended = False

    def read(self, seconds: float) -> bytes:
        """Return the next bytes, without waiting."""
        data = self._file.read(_PIECE)
        self.done += len(data)
        self.ended = not data
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class PipeStream:
    """A pipe, a socket, or a terminal, by its descriptor."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.done = 0
        self.total = 0
        self.ended = False

    def read(self, seconds: float) -> bytes:
        """Return what arrives, and wait `GATHER` seconds more so that many small pieces become one."""
        pieces: list[bytes] = []
        size, until = 0, time.monotonic() + seconds
        most = STEP if self.done else FIRST_STEP
        while size < most and not self.ended and self._is_ready(until - time.monotonic()):
            piece = os.read(self._file.fileno(), min(_PIECE, most - size))
            self.ended = not piece
            if piece and not pieces and seconds:
                until = time.monotonic() + GATHER
            pieces.append(piece)
            size += len(piece)
        self.done += size
        return b"".join(pieces)

    def _is_ready(self, seconds: float) -> bool:
        return bool(select.select([self._file], [], [], max(0.0, seconds))[0])

    def close(self) -> None:
        """Close the reading end."""
        self._file.close()
