"""What a `Capture` reads of a recording while it is made.

Files of a ring are copied into a pipe as they grow: each is a section of pcapng, and sections in a row are a capture.
They go into one pipe, or into a pipe for every few files, each for a capture that continues the one before it: then
what was read can be forgotten.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from dissector.capture.files import GrowingFile
from dissector.capture.live.recording import Recording

_READ_BYTES: Final = 1 << 20
_POLL_SECONDS: Final = 0.02
"""Seconds between two reads of a growing file."""


def recording_source(recording: Recording) -> str | GrowingFile:
    """Return an input of `Capture` with all packets of a recording, which ends when the recording has ended."""
    if recording.is_ring:
        return RingPipes(recording, sys.maxsize).begin()
    return GrowingFile(recording.next_path() or os.devnull, lambda: recording.ended)


class RingPipes:
    """The files of a ring, through one pipe after the other: each gets whole files, until it had `least` bytes."""

    def __init__(self, recording: Recording, least: int) -> None:
        self._recording = recording
        self._least = least
        self._path = recording.next_path()
        """The file that is copied next; None if there is no other."""
        self._reading: int | None = None
        self._thread: threading.Thread | None = None

    def begin(self) -> str:
        """Return the path of the next pipe. The one before must have been read to its end."""
        self.close()
        self._reading, writing = os.pipe()
        self._thread = threading.Thread(target=self._copy, args=(writing,), name="ring", daemon=True)
        self._thread.start()
        return f"/dev/fd/{self._reading}"

    @property
    def goes_on(self) -> bool:
        """Whether files are left for another pipe, once this one has been read to its end."""
        if self._thread is not None:
            self._thread.join()
        return self._path is not None

    def close(self) -> None:
        """Close the end from which was read."""
        if self._reading is not None:
            os.close(self._reading)
            self._reading = None

    def _copy(self, writing: int) -> None:
        copied = 0
        with suppress(BrokenPipeError), os.fdopen(writing, "wb", buffering=0) as pipe:  # nobody reads any more
            while self._path is not None and copied < self._least:
                with Path(self._path).open("rb", buffering=0) as file:
                    complete = False
                    while not complete:
                        complete = self._recording.has_next  # checked before reading: the last bytes are read, too
                        while data := file.read(_READ_BYTES):
                            copied += len(data)
                            pipe.write(data)
                        time.sleep(0 if complete else _POLL_SECONDS)
                self._path = self._recording.next_path()
