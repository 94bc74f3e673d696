"""Captures where they are: files of this machine as they are, objects of a store as copies of what is needed of them.

A copy is a temporary file without a name (TMPDIR says where), so that it is gone with its process. Parts that are not
copied take no room on the disk.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Final, NamedTuple

import pyarrow as pa
import pyarrow.fs

from dissector.capture.errors import CaptureError, NoRoomError
from dissector.capture.files import OpenFile
from dissector.tables.file_systems import ERRORS, is_url, opened, reason

OnProgress = Callable[[], None]
"""Called every few megabytes. What it raises ends the reading."""
_PIECE: Final = 1 << 22
"""Bytes that are read at a time."""


class BytePart(NamedTuple):
    """Consecutive bytes of a file."""

    begin: int
    end: int


def listed(name: str) -> list[str]:
    """Return the URL of a file, or those of the files in a folder, sorted. Raises `CaptureError`."""
    try:
        files, path = opened(name)
        info = files.get_file_info(path)
        if info.type == pa.fs.FileType.File:
            return [name]
        found = files.get_file_info(pa.fs.FileSelector(path))
    except ERRORS as error:
        raise CaptureError(f"{name}: {reason(error)}") from None
    return sorted(f"{name.rstrip('/')}/{each.base_name}" for each in found if each.type == pa.fs.FileType.File)


def size_of(name: str) -> int:
    """Return the bytes of a file; -1 if it can't be read."""
    try:
        if not is_url(name):
            return os.stat(name).st_size  # noqa: PTH116  # as it is given: to `Path` no name is a folder
        files, path = opened(name)
        info = files.get_file_info(path)
    except (*ERRORS, ValueError):
        return -1
    return int(info.size) if info.type == pa.fs.FileType.File else -1


def digest_and_file(name: str, on_progress: OnProgress = lambda: None) -> tuple[str, int, str | OpenFile]:
    """Return a file's SHA-256 and size, and what `open_capture` needs to read all of it. Raises `OSError`, and
    `CaptureError` if it can't be copied, or is a pipe, which can't be read a second time."""
    hashed, size = hashlib.sha256(), 0
    copy = _temporary_file() if is_url(name) else None
    for piece in _pieces_here(name) if copy is None else _pieces(name):
        on_progress()
        hashed.update(piece)
        if copy is not None:
            _write(name, copy, size, piece)
        size += len(piece)
    return hashed.hexdigest(), size, name if copy is None else OpenFile(name, copy)


def input_file(name: str, parts: Sequence[BytePart] = ()) -> str | OpenFile:
    """Return what `open_capture` needs to read parts of a file; all of it if none are given. Raises `CaptureError`."""
    if not is_url(name):
        return name
    if not parts:
        return digest_and_file(name)[2]
    copy = _temporary_file()
    for part in parts:
        at = part.begin
        for piece in _pieces(name, part):
            _write(name, copy, at, piece)
            at += len(piece)
    return OpenFile(name, copy)


def bytes_of(name: str, at: int, size: int) -> bytes:
    """Return bytes of a file as they are in it, fewer at its end. Raises `OSError`, and `CaptureError` if a store does
    not give them."""
    if is_url(name):
        return b"".join(_pieces(name, BytePart(at, at + size)))
    with open(name, "rb") as file:  # noqa: PTH123  # as in `size_of`
        file.seek(at)
        return file.read(size)


def _pieces_here(name: str) -> Iterator[bytes]:
    """Yield a file of this machine. Raises `OSError`, and `CaptureError` if it is a pipe."""
    mode = os.stat(name).st_mode  # noqa: PTH116  # as in `size_of`
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        raise CaptureError(f"{name}: not a regular file")
    with open(name, "rb") as file:  # noqa: PTH123  # as in `size_of`
        while piece := file.read(_PIECE):
            yield piece


def _pieces(name: str, part: BytePart | None = None) -> Iterator[bytes]:
    """Yield a part of an object, or all of it. Raises `CaptureError`."""
    try:
        files, path = opened(name)
        if part is None:
            with files.open_input_stream(path, compression=None) as stream:
                while piece := stream.read(_PIECE):
                    yield piece
            return
        with files.open_input_file(path) as file:
            end = min(part.end, file.size())
            for at in range(part.begin, end, _PIECE):
                yield file.read_at(min(_PIECE, end - at), at)
    except ERRORS as error:
        raise CaptureError(f"{name}: {reason(error)}") from None


def _temporary_file() -> IO[bytes]:
    return tempfile.TemporaryFile(buffering=0)


def _write(name: str, copy: IO[bytes], at: int, data: bytes) -> None:
    rest = memoryview(data)
    try:
        while len(rest):
            rest = rest[os.pwrite(copy.fileno(), rest, at + len(data) - len(rest)) :]
    except OSError as error:
        raise NoRoomError(f"{name}: temporary files: {(error.strerror or str(error)).lower()}") from None
