"""The files that options name for output, opened by the same rules for all of them.

Invariants:
  * nothing waits for somebody to read a pipe, and no disk is written over;
  * root follows no link of somebody else in any part of a path, and writes into no file that has a second name: whoever
    may write to a folder chooses where its links lead. What was looked at is what is opened: `openat(2)`.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final, NamedTuple

ANYBODY: Final = 0o666
"""The mode of new files, less the umask; of those that may hold secrets:"""
PRIVATE: Final = 0o600
_MOST_LINKS: Final = 40
"""As Linux follows."""
_PROC: Final = "/proc"
"""Its links are the kernel's, and lead where their text does not say."""


class _OutputPlace(NamedTuple):
    """A name in a folder that is held open, with the flags to open it; no folder for who is not root."""

    folder: int | None
    name: str
    flags: int = 0


def check_output(path: str) -> None:
    """Raise `OSError` for a path that can't be written to, whatever happens until then."""
    if path.endswith("/") or os.path.isdir(path):  # noqa: PTH112  # as in `files.is_directory`
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


def opened_to_write(path: str, flags: int = os.O_TRUNC, mode: int = ANYBODY) -> int:
    """Open a file to write, and make it if it is not there. Raises `OSError`."""
    check_output(path)
    with _found(path) as (folder, name, more):
        wanted = (flags & ~os.O_TRUNC) | os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | more
        number = os.open(name, wanted, mode, dir_fd=folder)
    try:
        status = os.fstat(number)
        if stat.S_ISBLK(status.st_mode):
            raise OSError(errno.EINVAL, "is a disk")
        if stat.S_ISREG(status.st_mode):
            if folder is not None and status.st_nlink > 1:
                raise PermissionError(errno.EACCES, "has a second name, and root writes into no such file")
            if flags & os.O_TRUNC:
                os.ftruncate(number, 0)
        os.set_blocking(number, True)
    except OSError:
        os.close(number)
        raise
    return number


@contextmanager
def replaced(path: str, mode: int = ANYBODY) -> Iterator[BinaryIO]:
    """Write beside a file, which is replaced at the end, so that a full disk leaves no part of a file under its name.
    One that is there keeps its mode; what a link names is replaced, not the link; a pipe or a device is written to.
    Raises `OSError`."""
    check_output(path)
    with _found(path) as (folder, name, flags):
        before = _status(name, folder)
        is_kernels = folder is not None and not flags
        if before is not None and (is_kernels or not stat.S_ISREG(before.st_mode)):
            with os.fdopen(opened_to_write(path), "wb") as file:
                yield file
            return
        if before is not None and not os.access(name, os.W_OK, dir_fd=folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if folder is None:
            name = os.path.realpath(name)
        head, slash, tail = name.rpartition("/")
        beside = f"{head}{slash}.{tail[:200]}.{os.urandom(4).hex()}.part"
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=folder)
        try:
            with os.fdopen(number, "wb") as file:
                yield file
                if before is not None:
                    os.fchmod(number, before.st_mode & 0o777)
            os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=folder)  # in a folder that is open


def _status(name: str, folder: int | None) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder)  # in a folder that is open
    except FileNotFoundError:
        return None


@contextmanager
def _found(path: str) -> Iterator[_OutputPlace]:
    """Where a path leads. Raises `OSError`."""
    if os.geteuid() or not hasattr(os, "O_PATH"):
        yield _OutputPlace(None, path)
        return
    place = _followed(path)
    try:
        yield place
    finally:
        if place.folder is not None:
            os.close(place.folder)


def _followed(path: str) -> _OutputPlace:
    """Follow a path as root, a part at a time."""
    kernels = os.stat(_PROC).st_dev  # noqa: PTH116  # as in `_status`
    parts, links = deque(path.split("/")), 0
    folder = os.open("/" if path.startswith("/") else ".", os.O_PATH | os.O_CLOEXEC)
    try:
        while True:
            part = parts.popleft() or "."
            flags = 0 if os.fstat(folder).st_dev == kernels else os.O_NOFOLLOW
            try:
                here = os.open(part, os.O_PATH | os.O_CLOEXEC | flags, dir_fd=folder)
            except FileNotFoundError:
                if parts:
                    raise
                return _OutputPlace(folder, part, flags)
            status = os.fstat(here)
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink("", dir_fd=here)  # of a descriptor
                os.close(here)
                links += 1
                _check_link(status, part, links)
                parts.extendleft(reversed(target.split("/")))
                here = os.open("/" if target.startswith("/") else ".", os.O_PATH | os.O_CLOEXEC, dir_fd=folder)
            elif not parts:
                os.close(here)
                return _OutputPlace(folder, part, flags)
            os.close(folder)
            folder = here
    except OSError:
        os.close(folder)
        raise


def _check_link(status: os.stat_result, name: str, links: int) -> None:
    if status.st_uid:
        raise PermissionError(errno.EACCES, f"{name} is a link of another user, which root does not follow")
    if links > _MOST_LINKS:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
