"""Which process has an end of a connection: as comments of a pcapng file, so that they stay with the packets.

A live capture on this machine writes one for each end that is local. A comment is the word `process`, then JSON on one
line: ``process {"end": "127.0.0.1:51234", "peer": "127.0.0.1:9092", "time_ns": 1, "name": "java", "pid": 7, …}``.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

PREFIX: Final = "process {"
LONGEST: Final = 256
"""Characters of a name or a container that are kept."""


class Process(NamedTuple):
    """A process of the machine that captured."""

    name: str
    pid: int
    container: str = ""
    """The id of its container, its first 12 characters; empty for none."""


class ProcessNote(NamedTuple):
    """A process that had an end of a connection when it was looked up."""

    end: str
    """`host:port`."""
    peer: str
    """The other end."""
    time_ns: int
    process: Process

    def comment(self) -> str:
        """The note as a comment."""
        values = {"end": self.end, "peer": self.peer, "time_ns": self.time_ns} | self.process._asdict()
        return f"process {json.dumps(values)}"


def note_of(comment: str) -> ProcessNote | None:
    """The note that a comment is; None for any other comment."""
    if not comment.startswith(PREFIX):
        return None
    try:
        values = json.loads(comment.removeprefix("process "))
        end, peer, name, container = (str(values[key])[:LONGEST] for key in ("end", "peer", "name", "container"))
        return ProcessNote(end, peer, int(values["time_ns"]), Process(name, int(values["pid"]), container))
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


MOST_NOTES: Final = 1 << 17
"""Notes that are kept, at most."""


class Processes:
    """The processes that have the ends of a capture's connections, from comments of its files or just looked up: called
    as a function.

    The same ends are used by one process after another: a connection has the process that was seen first after it
    began.
    """

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

    @property
    def are_known(self) -> bool:
        """Whether there is any."""
        self._take()
        return bool(self._notes)

    def _take(self) -> None:
        for note in self._of_files(self._taken):
            self._taken += 1
            self.add(note)

    def __call__(self, end: str, peer: str, since_ns: int) -> Process | None:
        self._take()
        notes = self._notes.get((end, peer), [])
        at = bisect_left(notes, since_ns, key=lambda each: each[0])
        return notes[min(at, len(notes) - 1)][1] if notes else None
