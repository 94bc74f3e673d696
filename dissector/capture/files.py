"""Opening captures: told by content, never by name; files are mapped, standard input is spooled to a file first."""

import mmap
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final, Protocol

import numpy as np

from dissector.capture.errors import CaptureError, DamagedError
from dissector.capture.hex_capture import captured
from dissector.capture.pcap import MAGICS, Pcap
from dissector.capture.pcapng import SECTION, Pcapng
from dissector.conversation.hex_text import form_of
from dissector.events import PacketBatch
from dissector.findings import Finding
from dissector.store import Store

STDIN: Final = "-"
_COPY: Final = 1 << 20
PACKETS: Final = frozenset({*MAGICS, SECTION.to_bytes(4, "big")})
"""What files of packets begin with."""
_HEAD: Final = 1 << 16
"""Bytes in which text must have said that it is hex."""


Keeps = Callable[[str, mmap.mmap], bool]
"""Takes a file, by its name and content, that has no packets; whether it did."""


class Format(Protocol):
    """Something that packets are read from."""

    done: int
    """Bytes that reading has reached."""

    def batches(self, first: int) -> Iterator[PacketBatch]:
        """All packets, numbered from `first` on."""


class NoPackets:
    """A file that somebody else reads."""

    def __init__(self, size: int) -> None:
        self.done = size

    def batches(self, first: int) -> Iterator[PacketBatch]:
        """None."""
        return iter(())


class Reader:
    """One capture file. Iterating gives its packets once; `problems` is complete when that ends."""

    def __init__(
        self, name: str, file: IO[bytes], store: Store, keeps: Keeps, *, unmarked_from_client: bool = True
    ) -> None:
        self._file = file
        try:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise CaptureError(f"{name}: {_reason(error)}") from None
        self.problems: list[Finding] = []
        data: mmap.mmap | bytes = self._map
        form = form_of(self._map[:_HEAD])
        if form is not None:
            data, self.problems = captured(name, self._map[:], form, unmarked_from_client=unmarked_from_client)
        self.total = len(data)
        """Bytes of the capture."""
        self._format: Format = NoPackets(self.total)
        if form is None and data[:4] not in PACKETS and keeps(name, self._map):
            return
        base = store.add(memoryview(data))
        self._format = _format(name, data[:4])(name, np.frombuffer(data, np.uint8), base)

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


def _format(name: str, magic: bytes) -> type[Pcap] | type[Pcapng]:
    if magic in MAGICS:
        return Pcap
    if magic == SECTION.to_bytes(4, "big"):
        return Pcapng
    words = f"{name}: not a capture: it begins with {magic.hex(' ')}"
    raise CaptureError(f"{words}, which is neither pcap nor pcapng, nor hex, nor a file of Kafka's")


def nobody(name: str, data: mmap.mmap) -> bool:
    """Takes no file."""
    return False


def open_capture(path: str, store: Store, keeps: Keeps = nobody, *, unmarked_from_client: bool = True) -> Reader:
    """Open a capture; its bytes become a region of `store`. Raises `CaptureError` with one plain line.

    Hex that does not say who sent it is the client's, or else the server's. What `keeps` takes has no packets here."""
    name = "standard input" if path == STDIN else path
    try:
        file = _spool(_stdin()) if path == STDIN else _opened(path)
    except OSError as error:
        raise CaptureError(f"{name}: {_reason(error)}") from None
    except ValueError:
        raise CaptureError(f"{path!r}: not a file name") from None
    try:
        return Reader(name, file, store, keeps, unmarked_from_client=unmarked_from_client)
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
