"""Copies what an external program captures to a file as it comes, or to the files of a ring, cut between blocks.

draft-ietf-opsawg-pcapng: a block begins with its type and its length. The blocks before the first packet, a section
header and its interfaces, begin each file of a ring, so that each is complete.

Invariant: what was written is in the file when `write` returns, so that a process that follows it can read it.
"""

import os
import struct
import time
from collections.abc import Callable
from typing import IO, Final

from dissector.capture.live.output_files import Files
from dissector.capture.live.settings import CaptureSettings

_BLOCK_HEAD: Final = struct.Struct("=II")
_SECTION, _INTERFACE = 0x0A0D0D0A, 1


class ToolOutput:
    """The files that packets are copied to. `on_file` is called with a descriptor to read each."""

    def __init__(self, settings: CaptureSettings, files: Files, on_file: Callable[[int], None]) -> None:
        self._ring = settings.ring
        self._files = files
        self._on_file = on_file
        self._file: IO[bytes] | None = None
        self._head = b""
        """The blocks that each file begins with."""
        self._begun = b""
        """Of a block that is not complete."""

    def begin(self) -> None:
        """Make a file. Raises `OSError`."""
        if self._file is not None:
            self._file.close()
        made = self._files.next()
        self._file = os.fdopen(made.writing, "wb", buffering=0)
        self._since = time.monotonic()
        self._put(self._head)
        self._on_file(made.reading)
        os.close(made.reading)

    def write(self, data: bytes) -> None:
        """Append what the program has written. Raises `OSError`."""
        if self._ring is None:
            self._put(data)
            return
        self._begun += data
        at = 0
        while len(self._begun) - at >= _BLOCK_HEAD.size:
            kind, size = _BLOCK_HEAD.unpack_from(self._begun, at)
            if len(self._begun) - at < size or size < _BLOCK_HEAD.size:
                break
            self._block(kind, self._begun[at : at + size])
            at += size
        self._begun = self._begun[at:]

    def _block(self, kind: int, block: bytes) -> None:
        assert self._file is not None
        assert self._ring is not None
        if kind in (_SECTION, _INTERFACE):
            self._head += block
        elif self._ring.is_full(self._file.tell(), time.monotonic() - self._since):
            self.begin()
        self._put(block)

    def _put(self, data: bytes) -> None:
        assert self._file is not None
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
