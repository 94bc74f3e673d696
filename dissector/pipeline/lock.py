"""Locks a folder of tables: one run writes to it at a time. A second one would take the
unfinished rows of the first for those of a killed run, and remove them.

The lock is the file `_lock` in the folder, which names the process that holds it. On local file systems and NFS the
kernel releases the lock when the process ends, however it ends. Object stores and HDFS have no such locks: there the
file's existence is the lock. A killed run leaves it behind, and whether a process of another host runs is unknown.
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
_MAX_DESCRIPTION: Final = 200
"""Bytes of the lock file that are read."""


@contextmanager
def exclusive(out: str, report: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock of a folder. Raises `FolderError` if another process has it; `report` gets a line if a
    run that ended left its lock file behind."""
    files, path = opened(out)
    held = _lock_file(out, f"{path}/{NAME}") if isinstance(files, pa.fs.LocalFileSystem) else None
    if held is None:
        _create_lock_file(out, files, f"{path}/{NAME}", report)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):  # removed by hand
            files.delete_file(f"{path}/{NAME}")
        if held is not None:
            os.close(held)


def _lock_file(out: str, path: str) -> int | None:
    """Return the lock file, locked by this process; None if its file system has no locks. The former holder removes the
    file when it ends, so check that it still exists."""
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        except OSError as error:
            raise FolderError(f"{path}: {(error.strerror or str(error)).lower()}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(file, _MAX_DESCRIPTION, 0).decode(errors="replace")
            os.close(file)
            raise FolderError(f"{out}: {who or 'another run'} is writing to it; only one run at a time can") from None
        except OSError:
            os.close(file)
            return None
        if Path(path).exists() and os.path.samestat(os.fstat(file), Path(path).stat()):
            os.truncate(file, 0)
            os.pwrite(file, _description().encode(), 0)
            return file
        os.close(file)


def _create_lock_file(out: str, files: pa.fs.FileSystem, path: str, report: Callable[[str], object]) -> None:
    """Create the lock file, or replace that of a process of this host that has ended."""
    if files.get_file_info(path).type != pa.fs.FileType.NotFound:
        with files.open_input_stream(path) as lock:
            who = lock.read(_MAX_DESCRIPTION).decode(errors="replace")
        if not _is_gone(who):
            how = f"if it has ended, remove {out.rstrip('/')}/{NAME}"
            raise FolderError(f"{out}: {who or 'another run'} is writing to it; only one run at a time can; {how}")
        report(f"{out}: {who} was writing to it and has ended: its unfinished rows are removed")
    with files.open_output_stream(path) as file:
        file.write(_description().encode())


def _description() -> str:
    return f"process {os.getpid()} of {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC,"


def _is_gone(who: str) -> bool:
    """Whether `who` was a process of this host that has ended."""
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
