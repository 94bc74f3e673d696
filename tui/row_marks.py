"""Marks and comments on rows; saved by the contents of the capture, whatever its files are called.

They are kept in the state folder, a JSON file per capture, named by a hash of the sizes, beginnings and ends of its
files. What does not stay, such as a pipe or a live capture, has marks as long as it is open.

Invariant: numbers in the file are those of rows in their final order, from 0.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from tui.folders import state_folder, write_file

SAMPLE: Final = 1 << 16
"""Bytes of a file's beginning, and of its end, that identify it."""
LONGEST_COMMENT: Final = 4_096
"""Characters."""
LARGEST: Final = 1 << 26
"""Bytes of the largest file with marks that is read."""


def identity(paths: Sequence[str]) -> str | None:
    """Return a name for the contents of these files in this order; None if they are no regular files."""
    digest = hashlib.sha256()
    try:
        for path in map(Path, paths):
            if not path.is_file():
                return None
            with path.open("rb") as file:
                size = path.stat().st_size
                digest.update(b"%d\n" % size + file.read(SAMPLE))
                file.seek(max(0, size - SAMPLE))
                digest.update(file.read(SAMPLE))
    except (OSError, ValueError):
        return None
    return digest.hexdigest()[:32] if paths else None


class RowMarks:
    """The marks and comments of one capture."""

    def __init__(self) -> None:
        self.marked: set[int] = set()
        self.comments: dict[int, str] = {}
        self._path: Path | None = None

    def toggle(self, number: int) -> bool:
        """Toggle the mark of a row; return whether it is marked now. Raises `OSError` if that can't be saved."""
        self.marked ^= {number}
        self._save()
        return number in self.marked

    def comment(self, number: int, text: str) -> None:
        """Set the comment of a row; an empty one removes it. Raises `OSError` if that can't be saved."""
        text = text.strip()[:LONGEST_COMMENT]
        if text:
            self.comments[number] = text
        else:
            self.comments.pop(number, None)
        self._save()

    def next(self, number: int) -> int | None:
        """Return the next marked row, the first one after the last; None if there is none."""
        return min((n for n in self.marked if n > number), default=min(self.marked, default=None))

    def renumber(self, moved: Callable[[Int64], Int64]) -> None:
        """Take the final numbers of rows: `moved` returns them."""
        self.marked = set(moved(np.array([*self.marked], np.int64)).tolist())
        numbers = moved(np.array([*self.comments], np.int64)).tolist()
        self.comments = dict(zip(numbers, self.comments.values(), strict=True))

    def keep(self, paths: Sequence[str], count: int) -> None:
        """Load the marks of these files, which have `count` rows, and save changes from now on. Raises `OSError`."""
        name = identity(paths)
        if name is None:
            return
        self._path = state_folder() / "marks" / f"{name}.json"
        marked, comments = _read(self._path, count)
        new = bool(self.marked or self.comments)
        self.marked |= marked
        self.comments = comments | self.comments
        if new:
            self._save()

    def _save(self) -> None:
        if self._path is None:
            return
        if not self.marked and not self.comments:
            self._path.unlink(missing_ok=True)
            return
        comments = {str(number): text for number, text in sorted(self.comments.items())}
        value = {"marked": sorted(self.marked), "comments": comments}
        write_file(self._path, json.dumps(value, indent=1).encode())


def _read(path: Path, count: int) -> tuple[set[int], dict[int, str]]:
    """Return the contents of a file; invalid ones are ignored."""
    try:
        value = json.loads(path.read_bytes()) if path.stat().st_size < LARGEST else {}
    except (OSError, ValueError, RecursionError):
        return set(), {}
    value = value if isinstance(value, dict) else {}
    marked, comments = value.get("marked"), value.get("comments")
    numbers = marked if isinstance(marked, list) else []
    written = comments if isinstance(comments, dict) else {}
    rows = {n for n in numbers if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < count}
    by_row = {int(n): text for n, text in written.items() if isinstance(text, str) and n.isdecimal() and len(n) < 18}
    return rows, {n: text[:LONGEST_COMMENT] for n, text in by_row.items() if n < count and text}
