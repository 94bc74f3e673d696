"""The processes that have the ends of a capture's connections, from comments of its files or just looked up.

The same ends are used by one process after another: a connection has the process that was seen first after it began.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final

from dissector.capture.process_notes import Process, ProcessNote

MOST_NOTES: Final = 1 << 17
"""Notes that are kept, at most."""


class Processes:
    """The process of an end of a connection: called as a function."""

    def __init__(self, of_files: Callable[[int], Iterable[ProcessNote]]) -> None:
        """`of_files` gives the notes of files from the one with a number on."""
        self._of_files = of_files
        self._notes: dict[tuple[str, str], list[tuple[int, Process]]] = {}
        self._count = 0
        self._taken = 0

    def add(self, note: ProcessNote) -> None:
        """Keep a note."""
        if self._count < MOST_NOTES:
            self._count += 1
            notes = self._notes.setdefault((note.end, note.peer), [])
            entry = (note.time_ns, note.process)
            if entry not in notes:
                notes.append(entry)
                notes.sort()

    def __call__(self, end: str, peer: str, since_ns: int) -> Process | None:
        for note in self._of_files(self._taken):
            self._taken += 1
            self.add(note)
        notes = self._notes.get((end, peer), [])
        at = bisect_left(notes, since_ns, key=lambda each: each[0])
        return notes[min(at, len(notes) - 1)][1] if notes else None
