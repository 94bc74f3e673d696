"""Opening captures: told by content, never by name; files are mapped, standard input is spooled to a file first."""

import mmap
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import numpy as np

from dissector.capture.errors import CaptureError, DamagedError
from dissector.capture.pcap import MAGICS, Pcap
from dissector.capture.pcapng import SECTION, Pcapng
from dissector.events import PacketBatch
from dissector.findings import Finding
from dissector.store import Store

STDIN: Final = "-"
_COPY: Final = 1 << 20


class Reader:
    """One capture file. Iterating gives its packets once; `problems` is complete when that ends."""

    def __init__(self, name: str, file: IO[bytes], store: Store) -> None:
        self._file = file
        try:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise CaptureError(f"{name}: {_reason(error)}") from None
        self.total = len(self._map)
        """Bytes of the file."""
        self.problems: list[Finding] = []
        base = store.add(memoryview(self._map))
        self._format = _format(name, self._map)(name, np.frombuffer(self._map, np.uint8), base)

    @property
    def done(self) -> int:
        """Bytes that reading has reached."""
        return self._format.done

    def batches(self, first: int) -> Iterator[PacketBatch]:
        """All packets, numbered from `first` on."""
        try:
            yield from self._format.batches(first)
        except DamagedError as damage:
            self.problems.append(damage.finding)

    def close(self) -> None:
        """Close the file; its mapping goes when the last batch that points into it does."""
        self._file.close()


def _reason(error: OSError | ValueError) -> str:
    return "empty file" if isinstance(error, ValueError) else (error.strerror or str(error)).lower()


def _format(name: str, data: mmap.mmap) -> type[Pcap] | type[Pcapng]:
    magic = data[:4]
    if magic in MAGICS:
        return Pcap
    if magic == SECTION.to_bytes(4, "big"):
        return Pcapng
    words = f"{name}: not a capture: it begins with {magic.hex(' ')}"
    raise CaptureError(f"{words}, which is neither pcap nor pcapng")


def open_capture(path: str, store: Store) -> Reader:
    """Open a capture; its bytes become a region of `store`. Raises `CaptureError` with one plain line."""
    name = "standard input" if path == STDIN else path
    try:
        file = _spool(_stdin()) if path == STDIN else _opened(path)
    except OSError as error:
        raise CaptureError(f"{name}: {_reason(error)}") from None
    except ValueError:
        raise CaptureError(f"{path!r}: not a file name") from None
    try:
        return Reader(name, file, store)
    except CaptureError:
        file.close()
        raise


def _opened(path: str) -> IO[bytes]:
    """A file that can be mapped, with the path's bytes."""
    if Path(path).is_dir():
        raise CaptureError(f"{path}: is a directory")
    file = Path(path).open("rb")  # noqa: SIM115  # the reader closes it
    if file.seekable():
        return file
    with file:
        return _spool(file)


def _stdin() -> IO[bytes]:
    if sys.stdin is None:
        raise CaptureError("standard input: closed")
    return sys.stdin.buffer


def _spool(stream: IO[bytes]) -> IO[bytes]:
    """A pipe's bytes in a file without a name, so that they can be mapped."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the reader closes it
    try:
        while chunk := stream.read(_COPY):
            file.write(chunk)
        file.flush()
    except BaseException:
        file.close()
        raise
    return file
