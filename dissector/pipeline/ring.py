"""Finds the closed capture files of a folder that a program like tcpdump or dumpcap writes as a ring.

Invariants:
  * a file is reported once, and again only if its bytes have changed: a ring overwrites its oldest file;
  * the newest file of each ring is open until a newer one appears, or until it has not grown for a while;
  * reported files are in a log on the disk before they are used: after a crash the log gives the same files.

Files whose names differ only in digits belong to one ring. Their contents are not read here.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

QUIET_SECONDS: Final = 60.0
"""Seconds without growth after which the newest file counts as closed."""
MAX_BYTES: Final = 1 << 30
"""Total bytes of files that are reported at a time; at least one file is."""
_DIGITS: Final = re.compile(r"\d+")


class RingFile(NamedTuple):
    """A file as it was when it was reported."""

    path: str
    size: int
    changed_ns: int
    inode: int


class Ring:
    """A folder of capture files. Hidden files are ignored."""

    def __init__(
        self, folder: str, log: Path, quiet: float = QUIET_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._folder = Path(folder)
        self._log = log
        self._quiet = quiet
        self._clock = clock
        _truncate_incomplete_line(log)
        self._reported = list(logged_files(log))
        self._known = set(self._reported)
        self._since: dict[str, tuple[RingFile, float]] = {}
        """Each file as it is, and the time since when."""

    def take(self) -> int:
        """Append newly closed files to the log; return how many files it has now. Raises `OSError`."""
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
            self._write(new)
            self._reported += new
            self._known.update(new)
        return len(self._reported)

    def _closed(self) -> list[RingFile]:
        """Return closed files, the oldest first."""
        rings: dict[str, list[RingFile]] = {}
        now, seen = self._clock(), {}
        for entry in _files(self._folder):
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
        return sorted(closed, key=lambda entry: (entry.changed_ns, entry.path))

    def _write(self, entries: list[RingFile]) -> None:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("a") as file:
            file.write("".join(json.dumps(entry) + "\n" for entry in entries))
            file.flush()
            os.fsync(file.fileno())


def logged_files(log: Path) -> Iterator[RingFile]:
    """Yield the files of the log, in order. An incomplete last line, after a crash, does not count."""
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    for line in lines:
        yield RingFile(*json.loads(line))


def ring_file(path: Path) -> RingFile | None:
    """Return a file as it is now; None if the ring has just removed it."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return RingFile(str(path.absolute()), status.st_size, status.st_mtime_ns, status.st_ino)


def _truncate_incomplete_line(log: Path) -> None:
    """Remove an incomplete last line, after a crash: its file is reported again."""
    data = log.read_bytes() if log.exists() else b""
    if not data.endswith(b"\n") and data:
        os.truncate(log, data.rfind(b"\n") + 1)


def _files(folder: Path) -> Iterator[RingFile]:
    for each in os.scandir(folder):
        if each.name.startswith(".") or not each.is_file():
            continue
        entry = ring_file(Path(each.path))
        if entry is not None:
            yield entry
