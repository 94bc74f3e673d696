"""A recording as a source for `Capture`: its growing file, or the files of a ring one after the other.

A ring's files are copied through a pipe as they grow: each is a section, and sections in a row are a capture.
"""

import os
import threading
import time
from typing import Final

from dissector.capture.files import GrowingFile
from dissector.capture.live.recording import Recording

_PIECE: Final = 1 << 20
_NAP: Final = 0.02
"""Seconds between two looks at a file that grows."""


def recording_source(recording: Recording) -> str | GrowingFile:
    """What to read to see all packets of a recording; ends when that has, and all is read."""
    if not recording.is_ring:
        return GrowingFile(recording.next_path() or os.devnull, lambda: recording.over)
    reading, writing = os.pipe()
    threading.Thread(target=_copy, args=(recording, writing), name="ring", daemon=True).start()
    return f"/dev/fd/{reading}"


def _copy(recording: Recording, writing: int) -> None:
    with os.fdopen(writing, "wb", buffering=0) as pipe:
        while (path := recording.next_path()) is not None:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # a descriptor's path, not a file's
                whole = False
                while not whole:
                    whole = recording.has_next  # asked before the file's end is: what was written before is read
                    while data := file.read(_PIECE):
                        pipe.write(data)
                    time.sleep(0 if whole else _NAP)
