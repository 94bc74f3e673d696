"""Rows that the user marked, and what they wrote on rows; kept by what is in the capture, whatever it is called.

They stand in the state folder, a JSON file a capture, under a hash of the sizes, beginnings and ends of its files. What
does not stay, such as a pipe or a live capture, has marks as long as it is open.

Invariant: numbers in the file are those of rows in their final order, from 0.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from tui.folders import state_folder, write_whole

SAMPLE: Final = 1 << 16
"""Bytes of a file's beginning, and of its end, that tell it from others."""
LONGEST_COMMENT: Final = 4_096
"""Characters."""
LARGEST: Final = 1 << 26
"""Bytes of a file with marks that is read."""


def identity(paths: Sequence[str]) -> str | None:
    """A name for what these files hold, in this order; None where they don't stay."""
    told = hashlib.sha256()
    try:
        for path in map(Path, paths):
            if not path.is_file():
                return None
            with path.open("rb") as file:
                size = path.stat().st_size
                told.update(b"%d\n" % size + file.read(SAMPLE))
                file.seek(max(0, size - SAMPLE))
                told.update(file.read(SAMPLE))
    except (OSError, ValueError):
        return None
    return told.hexdigest()[:32] if paths else None


class RowMarks:
    """Of one capture."""

    def __init__(self) -> None:
        self.marked: set[int] = set()
        self.comments: dict[int, str] = {}
        self._path: Path | None = None

    def toggle(self, number: int) -> bool:
        """Mark a row, or no longer; whether it is marked now. Raises `OSError` where that can't be kept."""
        self.marked ^= {number}
        self._save()
        return number in self.marked

    def comment(self, number: int, text: str) -> None:
        """Write on a row; nothing takes away what was there. Raises `OSError` where that can't be kept."""
        text = text.strip()[:LONGEST_COMMENT]
        if text:
            self.comments[number] = text
        else:
            self.comments.pop(number, None)
        self._save()

    def next(self, number: int) -> int | None:
        """The next marked row behind one, the first one behind the last; None where there is none."""
        return min((n for n in self.marked if n > number), default=min(self.marked, default=None))

    def renumber(self, moved: Callable[[Int64], Int64]) -> None:
        """Rows got their final numbers: `moved` gives them."""
        self.marked = set(moved(np.array([*self.marked], np.int64)).tolist())
        numbers = moved(np.array([*self.comments], np.int64)).tolist()
        self.comments = dict(zip(numbers, self.comments.values(), strict=True))

    def keep(self, paths: Sequence[str], count: int) -> None:
        """Have what was kept of these files, which have so many rows, and keep it from now on. Raises `OSError`."""
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
        write_whole(self._path, json.dumps(value, indent=1).encode())


def _read(path: Path, count: int) -> tuple[set[int], dict[int, str]]:
    """What a file has; nothing of what makes no sense."""
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
