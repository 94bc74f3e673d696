"""Bytes as they come: from a file, or from a pipe, which may be silent for long and is never waited for much.

A stream says how far it is by three answers: bytes, nothing yet, and nothing more.
"""

import os
import select
import time
from typing import IO, Final, Protocol

WAIT: Final = 0.2
"""Seconds after which whoever reads is told that nothing came: to stop, to draw, to print."""
GATHER: Final = 0.05
"""Seconds in which what comes in drops is gathered: a step has a price, and rows are to be seen soon."""
STEP: Final = 8 << 20
"""Bytes that are enough for one step."""
_PIECE: Final = 1 << 20


class InputStream(Protocol):
    """Where bytes come from. `done` are read of `total`, which is 0 where nobody knows."""

    done: int
    total: int
    ended: bool

    def read(self, seconds: float) -> bytes:
        """What is there, or comes within so many seconds; empty where nothing came, or where `ended`."""

    def close(self) -> None:
        """Let go of it."""


class FileStream:
    """A file that is all there."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.done = 0
        self.total = os.fstat(file.fileno()).st_size
        self.ended = False

    def read(self, seconds: float) -> bytes:
        """The next piece."""
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
        """What comes: at once, and for a moment more, so that many drops are one piece."""
        pieces: list[bytes] = []
        size, until = 0, time.monotonic() + seconds
        while size < STEP and not self.ended and self._is_ready(until - time.monotonic()):
            piece = os.read(self._file.fileno(), _PIECE)
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
        """Close this end of it."""
        self._file.close()
