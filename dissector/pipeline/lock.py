"""One run of ingest at a time writes to a folder: a second one would take what the first has not finished for what a
killed one left.

Whoever writes holds the file `_lock` in it, which says who that is. On this machine's file systems, NFS among them, the
system holds it for a process and lets go of it when that ends, however it ends. Where there are no such locks (object
stores, HDFS) the file itself is the lock: who was killed leaves it, and of another host nobody here can tell whether it
still runs.
"""

import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.fs

from dissector.pipeline.folder import FolderError, opened

NAME: Final = "_lock"
_LONGEST: Final = 200
"""Bytes of it that are read."""


@contextmanager
def exclusive(out: str, tell: Callable[[str], object]) -> Iterator[None]:
    """Be the only one that writes to a folder. Raises `FolderError` where somebody else does; `tell` gets a line where
    it was left by a run that is gone."""
    files, path = opened(out)
    held = _lock_file(out, f"{path}/{NAME}") if isinstance(files, pa.fs.LocalFileSystem) else None
    if held is None:
        _create_lock_file(out, files, f"{path}/{NAME}", tell)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):  # somebody was of the opinion that we are gone
            files.delete_file(f"{path}/{NAME}")
        if held is not None:
            os.close(held)


def _lock_file(out: str, path: str) -> int | None:
    """The file, locked by this process; None where its file system has no locks. Who had it removes it when it is
    done, so it is looked whether it is still there."""
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        except OSError as error:
            raise FolderError(f"{path}: {(error.strerror or str(error)).lower()}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(file, _LONGEST, 0).decode(errors="replace")
            os.close(file)
            raise FolderError(f"{out}: {who or 'another run'} writes to it, and one run at a time does") from None
        except OSError:
            os.close(file)
            return None
        if Path(path).exists() and os.path.samestat(os.fstat(file), Path(path).stat()):
            os.truncate(file, 0)
            os.pwrite(file, _description().encode(), 0)
            return file
        os.close(file)


def _create_lock_file(out: str, files: pa.fs.FileSystem, path: str, tell: Callable[[str], object]) -> None:
    """Write the file where there is none, or one of a process of this host that is gone."""
    if files.get_file_info(path).type != pa.fs.FileType.NotFound:
        with files.open_input_stream(path) as there:
            who = there.read(_LONGEST).decode(errors="replace")
        if not _is_gone(who):
            how = f"if that one is gone, remove {out.rstrip('/')}/{NAME}"
            raise FolderError(f"{out}: {who or 'another run'} writes to it, and one run at a time does; {how}")
        tell(f"{out}: {who} wrote to it, and is gone: what it left is swept away")
    with files.open_output_stream(path) as file:
        file.write(_description().encode())


def _description() -> str:
    return f"process {os.getpid()} of {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC,"


def _is_gone(who: str) -> bool:
    """Whether that was a process of this host, and is none any more."""
    words = who.split()
    if len(words) < 4 or words[3] != f"{socket.gethostname()}," or not words[1].isdecimal():
        return False
    try:
        os.kill(int(words[1]), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
