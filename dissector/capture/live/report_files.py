"""The files that a live capture's reports go to, where the user who goes on may not write them.

They are opened while this process still has root's rights: those of root who called kdissect itself, in whatever
folder; for who called sudo, new ones in any folder, and what that user has already (`output_files.py`). Everything else
is opened when it is written, so that a capture that fails leaves no empty file.

Invariant: nothing is truncated before there is a report.
"""

import errno
import os
from pathlib import Path

from dissector.capture.live.output_files import opened_by_root
from dissector.capture.live.privileges import acting_as, sudo_caller, user_to_become
from dissector.core.files import is_directory
from dissector.core.written_files import opened_to_write


class ReportFiles:
    """Where reports are written, by path."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def keep_writable(self, path: str) -> None:
        """Open a file that can't be written once this process has given up its rights. Raises `OSError`."""
        user, caller = user_to_become(), sudo_caller()
        if user is None:
            return
        with acting_as(user):
            if _may_write(Path(path)):
                return
        if not is_directory(folder := str(Path(path).parent)):
            with acting_as(caller):
                Path(folder).mkdir(parents=True)
        self._open[path] = opened_to_write(path, 0) if caller is None else opened_by_root(Path(path), caller)

    def write(self, path: str, content: bytes, *, appends: bool) -> None:
        """Write a file, in a folder that is made if it is not there. Raises `OSError`."""
        descriptor = self._open.get(path)
        if descriptor is None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(opened_to_write(path, os.O_APPEND if appends else os.O_TRUNC), "wb") as file:
                file.write(content)
            return
        if not os.fstat(descriptor).st_nlink:
            raise FileNotFoundError(errno.ENOENT, "it was removed during the capture")
        with os.fdopen(os.dup(descriptor), "wb") as file:
            if appends:
                file.seek(0, os.SEEK_END)
            else:
                file.truncate(0)
            file.write(content)


def _may_write(path: Path) -> bool:
    """Return whether this process may write a file, or make it with the folders that it needs."""
    place = next(each for each in (path, *path.absolute().parents) if os.path.lexists(each))
    return os.access(place, os.W_OK if place == path else os.W_OK | os.X_OK, effective_ids=True)
