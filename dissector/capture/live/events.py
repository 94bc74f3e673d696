"""Events from the capture process to the analyzing one: one JSON object per line, on standard output."""

import json
import sys
from collections.abc import Mapping
from typing import Final

STARTED: Final = "started"
"""Capturing has started; `engine` is the program that captures; `raised` says whether it runs with higher priority."""
FILE: Final = "file"
"""A file was begun; `path`."""
STATISTICS: Final = "statistics"
"""Packets `captured` to the file, and `dropped` by the kernel; both since the start."""
NOTE: Final = "note"
"""A message for the user; `words`."""
FAILED: Final = "failed"
"""Capturing failed or ended; `words` say why and what to do."""
ENDED: Final = "ended"
"""All is written; nothing follows."""

Event = Mapping[str, object]


def send_event(event: str, **values: object) -> None:
    """Send an event immediately. If the reader has gone, the end of standard input ends the process, not this."""
    try:
        print(json.dumps({"event": event} | values), flush=True)
    except BrokenPipeError:
        sys.stdout = None  # `print` then does nothing
