"""Opens captures: files by name, open files, standard input, partitions, packets of other programs."""

import mmap
import os
import resource
import stat
import sys
from pathlib import Path
from typing import IO, Final

from dissector.capture.compression import MAGIC_SIZE, recognize_codec
from dissector.capture.errors import CaptureError, MissingFileError, NoRoomError, url_advice
from dissector.capture.files import FileTaker, GrowingFile, OpenFile, Reader
from dissector.capture.packet_objects import PacketObjectReader, PacketObjects
from dissector.capture.partition import CapturePartition, PartitionReader
from dissector.capture.sources import CaptureSource, GrowingFileSource, MappedSource, SpooledSource
from dissector.capture.streams import FileStream, PipeStream
from dissector.core.arrays import UInt8
from dissector.core.limits import DEFAULT, Limits
from dissector.core.spool import SpoolFullError
from dissector.core.store import Store
from dissector.core.text import os_reason

STDIN: Final = "-"
_DESCRIPTORS, _DESCRIPTORS_PER_FILE = 64, 3
"""File descriptors of the process; and of a compressed file: of the file, its spool and the spool's map."""
AnyReader = Reader | PartitionReader | PacketObjectReader


def raise_open_file_limit(files: int) -> None:
    """Raise the limit of open files as far as allowed: shells often set 1,024, and rings have more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS + _DESCRIPTORS_PER_FILE * files
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


class ConstantTaker:
    """Takes every file without packets, unread, or none."""

    def __init__(self, *, takes: bool) -> None:
        self._takes = takes

    def take(self, name: str, data: mmap.mmap) -> bool:
        return self._takes

    def may_take(self, head: UInt8) -> bool:
        return self._takes


NO_FILES: Final = ConstantTaker(takes=False)
ALL_FILES: Final = ConstantTaker(takes=True)


def open_capture(
    file: str | GrowingFile | OpenFile | CapturePartition | PacketObjects,
    store: Store,
    taker: FileTaker = NO_FILES,
    *,
    response_to: tuple[int, int] | None = None,
    limits: Limits = DEFAULT,
) -> AnyReader:
    """Open a capture; its bytes become a region of `store`. Raises `CaptureError` with one plain line.

    A pipe, compressed or not, is recognized by its first bytes: that it is no capture is raised when it is read. With
    `response_to`, an API key and version, bytes in a text are responses to it where nothing says otherwise. A file that
    `taker` takes yields no packets.
    """
    if isinstance(file, CapturePartition):
        return PartitionReader(file, store, limits)
    if isinstance(file, PacketObjects):
        return PacketObjectReader(file, store)
    if isinstance(file, OpenFile):
        again = os.fdopen(os.dup(file.file.fileno()), "rb", buffering=0)  # it may be read more than once
        return _reader(file.name, again, file, store, limits, taker, response_to=response_to)
    path = file.path if isinstance(file, GrowingFile) else file
    name = "standard input" if path == STDIN else path
    try:
        opened = _stdin() if path == STDIN else _open_file(path)
    except OSError as error:
        advice = url_advice(path)
        if isinstance(error, FileNotFoundError) and not advice:
            raise MissingFileError(path) from None
        raise CaptureError(f"{name}: {advice or os_reason(error)}") from None
    except ValueError:
        raise CaptureError(f"{path!r}: not a file name") from None
    return _reader(name, opened, file, store, limits, taker, response_to=response_to)


def _reader(
    name: str,
    opened: IO[bytes],
    file: str | GrowingFile | OpenFile,
    store: Store,
    limits: Limits,
    taker: FileTaker,
    *,
    response_to: tuple[int, int] | None,
) -> Reader:
    """Return the reader of an open file, which is closed if it can't be read."""
    try:
        source = _source(name, opened, store, limits, file)
        return Reader(name, source, store, limits, taker, response_to=response_to)
    except OSError as error:
        opened.close()
        raise CaptureError(f"{name}: {os_reason(error)}") from None
    except SpoolFullError as error:
        opened.close()
        raise NoRoomError(f"{name}: {error}") from None
    except CaptureError:
        opened.close()
        raise


def _source(
    name: str, file: IO[bytes], store: Store, limits: Limits, file_or_growing: str | GrowingFile | OpenFile
) -> CaptureSource:
    if isinstance(file_or_growing, GrowingFile):
        return GrowingFileSource(name, file, store, file_or_growing.ended)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return SpooledSource(name, PipeStream(file), store, limits)
    if recognize_codec(os.pread(file.fileno(), MAGIC_SIZE, 0)):
        return SpooledSource(name, FileStream(file), store, limits)
    try:
        return MappedSource(name, file, store)
    except ValueError:
        raise CaptureError(f"{name}: empty file") from None


def _open_file(path: str) -> IO[bytes]:
    if path and Path(path).is_dir():
        raise CaptureError(f"{path}: is a directory")
    # Without O_NONBLOCK, opening a pipe would block until it has a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "rb", buffering=0)


def _stdin() -> IO[bytes]:
    if sys.stdin is None:
        raise CaptureError("standard input: closed")
    if sys.stdin.buffer.closed:
        raise CaptureError("standard input: can be read only once")
    return sys.stdin.buffer
