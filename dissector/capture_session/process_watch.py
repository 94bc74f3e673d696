"""Looks up the processes of a live capture's connections, each once, when it is new.

A thread does it, so nothing waits for it, and it rests nineteen times as long as a lookup took: it takes at most a
twentieth of a core. A connection whose socket is not there yet, or gone already, is looked up `TURNS` times.
"""

import threading
import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from typing import Final

from dissector.capture.live.local_processes import Pair, processes_of
from dissector.capture.process_notes import Process, ProcessNote
from dissector.capture_session.facade import Capture
from dissector.core.text import endpoint_name

SECONDS: Final = 0.25
"""Between two looks at what is new, at least."""
SHARE: Final = 19
TURNS: Final = 2
MOST_NEW: Final = 4096
"""Connections that one lookup is for, at most; the newest."""


class ProcessWatch:
    """Watches the connections of a capture until it is closed."""

    def __init__(
        self,
        capture: Capture,
        note: Callable[[str], object],
        find: Callable[[Set[Pair]], Mapping[Pair, Process]] = processes_of,
    ) -> None:
        """`note` writes a comment into the capture's file."""
        self._capture = capture
        self._note = note
        self._find = find
        self._seen = 0
        self._waiting: dict[Pair, int] = {}
        self._due = 0.0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="processes", daemon=True)

    def __enter__(self) -> "ProcessWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()

    def _watch(self) -> None:
        rest = SECONDS
        while not self._closed.wait(rest):
            begun = time.monotonic()
            with suppress(ImportError, ValueError, IndexError):  # the capture is closed, or changes while it is read
                self.look()
            rest = max(SECONDS, SHARE * (time.monotonic() - begun))

    def look_when_due(self) -> None:
        """Look from this thread, in place of one that is begun, unless the last look was too short ago."""
        begun = time.monotonic()
        if begun >= self._due:
            with suppress(ImportError):
                self.look()
            self._due = time.monotonic() + SHARE * (time.monotonic() - begun)

    def look(self) -> None:
        """Look up the ends of the connections that came since the last time."""
        table = self._capture.pipeline.transport.connections
        count = len(table)
        for number in range(max(self._seen, count - MOST_NEW), count):
            one, other = (endpoint_name(*end) for end in table.endpoints(number))
            self._waiting |= {(one, other): TURNS, (other, one): TURNS}
        self._seen = count
        if not self._waiting:
            return
        found = self._find(self._waiting.keys())
        for (end, peer), process in found.items():
            made = ProcessNote(end, peer, time.time_ns(), process)
            self._capture.processes.add(made)
            self._note(made.comment())
        self._waiting = {pair: turns - 1 for pair, turns in self._waiting.items() if turns > 1 and pair not in found}
