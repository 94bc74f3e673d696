"""The files of a capture: a temporary one, one with a name, or a ring's, one after the other.

They belong to the user who goes on when root's rights are given up, and that user makes them. Where only root may make
files, root makes a new one and hands it over; it never opens what is there, unless that user has it already. A process
that has given up its rights asks another for the next file of a ring: `RingMaker`.

Invariants:
  * a file that is made has the mode 0600, what exists keeps its own;
  * root follows no link, and neither truncates nor hands over what another user has.
"""

import errno
import os
import socket
import stat
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from dissector.capture.live.privileges import User, acting_as
from dissector.capture.live.settings import RecordingSettings
from dissector.core.files import private
from dissector.core.written_files import PRIVATE, opened_to_write

TEMPORARY: Final = "the temporary file"
"""What messages call a file without a name."""
_NEXT: Final = b"n"
_MESSAGE_BYTES: Final = 1_024


class NewFile(NamedTuple):
    """A file that was made: a descriptor to write it with, and another to read it with."""

    writing: int
    reading: int


class Files(Protocol):
    """Where a capture's files come from."""

    def next(self) -> NewFile:
        """Make the next file. Raises `OSError`."""


class OutputFiles:
    """Makes the files, as `user` if this process is root and will be that user."""

    def __init__(self, settings: RecordingSettings, user: User | None = None) -> None:
        self._path = Path(settings.path)
        self._is_temporary = not settings.path
        self._ring = settings.ring
        self._flags = 0 if settings.ring is None else os.O_NOFOLLOW  # nobody has made a link for a name with a time
        self._user = user
        self._count = 0
        self._kept: deque[Path] = deque()

    def next(self) -> NewFile:
        """Make the next file; the oldest of a ring that is full is removed. Raises `OSError`."""
        if self._is_temporary:
            return self._temporary()
        self._count += 1
        if self._ring is None:
            return self._made(self._path)
        name = f"{self._path.stem}_{self._count:05}_{time.strftime('%Y%m%d%H%M%S')}{self._path.suffix}"
        path = self._path.with_name(name)
        made = self._made(path)
        self._kept.append(path)
        if 0 < self._ring.files < len(self._kept):
            self._remove(self._kept.popleft())
        return made

    def _temporary(self) -> NewFile:
        """Make a file that has no name once it is open."""
        descriptor, path = tempfile.mkstemp(prefix="kdissect-", suffix=".pcapng")
        try:
            if self._user is not None:
                os.fchown(descriptor, self._user.uid, self._user.gid)
            return NewFile(descriptor, os.open(path, os.O_RDONLY))
        finally:
            Path(path).unlink()

    def _made(self, path: Path) -> NewFile:
        try:
            with acting_as(self._user):
                writing = opened_to_write(str(path), os.O_TRUNC | self._flags, PRIVATE)
                if not stat.S_ISREG(os.fstat(writing).st_mode):
                    os.close(writing)
                    raise OSError(errno.ESPIPE, "is no file, from which packets could be read again")
                return NewFile(writing, os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        except PermissionError:
            if self._user is None:
                raise
            writing = opened_by_root(path, self._user)
            os.ftruncate(writing, 0)
            return NewFile(writing, os.open(f"/dev/fd/{writing}", os.O_RDONLY))

    def _remove(self, path: Path) -> None:
        try:
            with acting_as(self._user):
                path.unlink(missing_ok=True)
        except PermissionError:
            if self._user is None:
                raise
            path.unlink(missing_ok=True)


class RingMaker:
    """Makes the files of a ring in a process that keeps the rights of this one, and does nothing else. It is begun
    before any packet socket is open, and ends with this process."""

    def __init__(self, files: OutputFiles) -> None:
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if not os.fork():
            try:
                self._socket.close()
                _make_on_request(files, its)
            finally:
                os._exit(0)
        its.close()

    def next(self) -> NewFile:
        """As `OutputFiles.next`."""
        self._socket.send(_NEXT)
        answer, descriptors, _, _ = socket.recv_fds(self._socket, _MESSAGE_BYTES, 2)
        if not descriptors:
            number = int(answer or b"0") or errno.EPERM
            raise OSError(number, os.strerror(number))
        return NewFile(*descriptors)


def output_files(settings: RecordingSettings, user: User | None) -> Files:
    """Return where a capture's files come from, now and once this process is `user`."""
    files = OutputFiles(settings, user)
    return RingMaker(files) if settings.ring is not None and not may_write_beside(settings.path, user) else files


def may_write_beside(path: str, user: User | None) -> bool:
    """Return whether a user may make files in the folder of this one; True for this process itself."""
    if user is None:
        return True
    with acting_as(user):
        return os.access(Path(path).parent, os.W_OK | os.X_OK, effective_ids=True)


def _make_on_request(files: OutputFiles, asked: socket.socket) -> None:
    os.setsid()
    os.closerange(0, asked.fileno())  # nobody waits for an end of the other's files
    while asked.recv(1) == _NEXT:
        try:
            made = files.next()
        except OSError as error:
            asked.send(str(error.errno or errno.EPERM).encode())
            continue
        socket.send_fds(asked, [_NEXT], made)
        for descriptor in made:
            os.close(descriptor)


def opened_by_root(path: Path, user: User) -> int:
    """Open a new file to write, as root and for a user, or one that the user has. Raises `OSError`."""
    try:
        descriptor = private(str(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
        os.fchown(descriptor, user.uid, user.gid)
    except FileExistsError:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != user.uid:
            os.close(descriptor)
            raise PermissionError(errno.EACCES, f"it exists, and {user.name} may not write to it") from None
    return descriptor
