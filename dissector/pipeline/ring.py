"""Finds the closed capture files of a ring: of a folder that a program like tcpdump or dumpcap writes, or of a folder
of an object store.

Invariants:
  * a file is taken once, and again only if its bytes have changed: a ring overwrites its oldest file;
  * on this machine the newest file of each ring is open until a newer one appears, or until it has not grown for a
    while. An object of a store is closed: it appears when it is complete;
  * files are in a log on the disk, with the number of their micro-batch, before they are used: after a crash it has the
    same files.

Files whose names differ only in digits belong to one ring. Their contents are not read here.
"""

import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.fs

from dissector.capture.errors import CaptureError
from dissector.tables.file_systems import ERRORS, is_url, opened, reason

QUIET_SECONDS: Final = 60.0
"""Seconds without growth after which the newest file counts as closed."""
MAX_BYTES: Final = 256 << 20
"""Total bytes of files that are taken at a time; at least one file is."""
_DIGITS: Final = re.compile(r"\d+")


class RingFile(NamedTuple):
    """A file as it was when it was taken. An object of a store has its URL for a path, and no inode."""

    path: str
    size: int
    changed_ns: int
    inode: int


class Ring:
    """A folder of capture files, and the log of those that were taken. Hidden files are ignored."""

    def __init__(
        self, folder: str, log: Path, quiet: float = QUIET_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._closed = _Store(folder).closed if is_url(folder) else _Folder(folder, quiet, clock).closed
        self._log = log
        _truncate_incomplete_line(log)
        self._taken: dict[int, list[RingFile]] = defaultdict(list)
        """By micro-batch."""
        for batch, entry in _logged(log):
            self._taken[batch].append(entry)
        self._known = {entry for entries in self._taken.values() for entry in entries}

    def take(self, batch: int) -> list[RingFile]:
        """Return the files of a micro-batch: those that it has in the log, or those that were closed since the last
        one, the oldest first. Raises `OSError`, and `CaptureError` if a store can't be listed."""
        if batch in self._taken:
            return self._taken[batch]
        new: list[RingFile] = []
        room = MAX_BYTES
        for entry in self._closed():
            if entry in self._known:
                continue
            room -= entry.size
            if new and room < 0:
                break
            new.append(entry)
        if new:
            self._write(batch, new)
            self._taken[batch] = new
            self._known.update(new)
        return new

    def _write(self, batch: int, entries: list[RingFile]) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("a") as file:
            file.write("".join(json.dumps((batch, *entry)) + "\n" for entry in entries))
            file.flush()
            os.fsync(file.fileno())


class _Folder:
    """A folder of this machine."""

    def __init__(self, path: str, quiet: float, clock: Callable[[], float]) -> None:
        self._path = Path(path)
        self._quiet = quiet
        self._clock = clock
        self._since: dict[str, tuple[RingFile, float]] = {}
        """Each file as it is, and the time since when."""

    def closed(self) -> list[RingFile]:
        """Return closed files, the oldest first."""
        rings: dict[str, list[RingFile]] = {}
        now, seen = self._clock(), {}
        for entry in _files(self._path):
            before = self._since.get(entry.path)
            seen[entry.path] = before if before is not None and before[0] == entry else (entry, now)
            rings.setdefault(_DIGITS.sub("0", Path(entry.path).name), []).append(entry)
        self._since = seen
        closed: list[RingFile] = []
        for entries in rings.values():
            newest = max(entry.changed_ns for entry in entries)
            closed += [
                entry
                for entry in entries
                if entry.size and (entry.changed_ns < newest or now - seen[entry.path][1] >= self._quiet)
            ]
        return sorted(closed, key=_age)


class _Store:
    """A folder of an object store."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def closed(self) -> list[RingFile]:
        """Return all objects, the oldest first. Raises `CaptureError`."""
        try:
            files, path = opened(self._url)
            found = files.get_file_info(pyarrow.fs.FileSelector(path))
        except ERRORS as error:
            raise CaptureError(f"{self._url}: {reason(error)}") from None
        entries = [
            _object(f"{self._url}/{info.base_name}", info) for info in found if not info.base_name.startswith(".")
        ]
        return sorted((entry for entry in entries if entry is not None and entry.size), key=_age)


def ring_file(path: str) -> RingFile | None:
    """Return a file as it is now; None if the ring has just removed it. Raises `CaptureError` if a store fails."""
    if is_url(path):
        try:
            files, name = opened(path)
            return _object(path, files.get_file_info(name))
        except ERRORS as error:
            raise CaptureError(f"{path}: {reason(error)}") from None
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return None
    return RingFile(str(Path(path).absolute()), status.st_size, status.st_mtime_ns, status.st_ino)


def _object(url: str, info: pyarrow.fs.FileInfo) -> RingFile | None:
    return RingFile(url, info.size, info.mtime_ns, 0) if info.type == pyarrow.fs.FileType.File else None


def _age(entry: RingFile) -> tuple[int, str]:
    return entry.changed_ns, entry.path


def _logged(log: Path) -> Iterator[tuple[int, RingFile]]:
    """Yield the files of the log with their micro-batches, in order."""
    for line in log.read_text().splitlines() if log.exists() else []:
        batch, *entry = json.loads(line)
        yield batch, RingFile(*entry)


def _truncate_incomplete_line(log: Path) -> None:
    """Remove an incomplete last line, after a crash: its file is taken again."""
    data = log.read_bytes() if log.exists() else b""
    if not data.endswith(b"\n") and data:
        os.truncate(log, data.rfind(b"\n") + 1)


def _files(folder: Path) -> Iterator[RingFile]:
    for each in os.scandir(folder):
        if each.name.startswith(".") or not each.is_file():
            continue
        entry = ring_file(each.path)
        if entry is not None:
            yield entry
