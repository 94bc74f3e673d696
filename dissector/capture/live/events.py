"""What the capture process tells the analysing one: a JSON object a line, on its standard output."""

import json
import sys
from collections.abc import Mapping
from typing import Final

STARTED: Final = "started"
"""Packets are taken from now on; `engine` says by what; `raised` whether its priority is better now."""
FILE: Final = "file"
"""A file was begun; `path`."""
STATISTICS: Final = "statistics"
"""`captured` packets are in the file, `dropped` ones were not taken; both from the beginning."""
NOTE: Final = "note"
"""Something worth saying; `words`."""
FAILED: Final = "failed"
"""There is no capture, or no more; `words` say why and what to do."""
ENDED: Final = "ended"
"""All is written; nothing follows."""

Event = Mapping[str, object]


def send_event(event: str, **values: object) -> None:
    """Say it at once. Where nobody listens any more, standard input ends too: that ends the process, and not this."""
    try:
        print(json.dumps({"event": event} | values), flush=True)
    except BrokenPipeError:
        sys.stdout = None  # print then says nothing
