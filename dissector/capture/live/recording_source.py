"""A recording as a source for `Capture`: its growing file, or the files of a ring one after the other.

A ring's files are copied through a pipe as they grow: each is a section, and sections in a row are a capture.
"""

import os
import threading
import time
from pathlib import Path
from typing import Final

from dissector.capture.files import GrowingFile
from dissector.capture.live.recording import Recording

_READ_BYTES: Final = 1 << 20
_POLL_SECONDS: Final = 0.02
"""Seconds between two reads of a growing file."""


def recording_source(recording: Recording) -> str | GrowingFile:
    """Return an input of `Capture` with all packets of a recording. It ends when the recording has ended."""
    if not recording.is_ring:
        return GrowingFile(recording.next_path() or os.devnull, lambda: recording.ended)
    reading, writing = os.pipe()
    threading.Thread(target=_copy, args=(recording, writing), name="ring", daemon=True).start()
    return f"/dev/fd/{reading}"


def _copy(recording: Recording, writing: int) -> None:
    with os.fdopen(writing, "wb", buffering=0) as pipe:
        while (path := recording.next_path()) is not None:
            with Path(path).open("rb", buffering=0) as file:
                complete = False
                while not complete:
                    complete = recording.has_next  # checked before reading, so that the file's last bytes are read
                    while data := file.read(_READ_BYTES):
                        pipe.write(data)
                    time.sleep(0 if complete else _POLL_SECONDS)
