"""Events from the capture process to the analyzing one: lines of JSON, over the socket that is its standard input.

The event of a file comes with the file itself, open: the other process may have no right to open it by its name.
"""

import json
import select
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Final

CHANNEL: Final = 0
"""The descriptor of the socket: standard input."""
STARTED: Final = "started"
"""Capturing has started; `engine` is the program that captures; `raised` says whether it runs with higher priority."""
FILE: Final = "file"
"""A file was begun; its descriptor comes with this."""
LISTENING: Final = "listening"
"""A proxy listens; on `address`, as it is advertised to clients, for `broker`; `words` are for the user."""
STATISTICS: Final = "statistics"
"""Packets `captured` to the file, and `dropped` by the kernel; both since the start."""
FAULTS: Final = "faults"
"""What became of a proxy's rules for faults; `counts`, a list for each rule with the fields of `FaultCount`; `fired`,
the last times that they fired, each with the fields of `FiredFault`."""
HELD: Final = "held"
"""What a proxy holds until a person decides, the fields of `Interception`."""
ANSWER: Final = "answer"
"""What became of a command (`commands.py`), of the number `to`."""
NOTE: Final = "note"
"""A message for the user; `words`."""
FAILED: Final = "failed"
"""Capturing failed or ended; `words` say why and what to do."""
ENDED: Final = "ended"
"""All is written; nothing follows."""

Event = Mapping[str, object]


@cache
def channel() -> socket.socket:
    """Return the socket."""
    return socket.socket(fileno=CHANNEL)


def send_event(event: str, *, file: int | None = None, **values: object) -> None:
    """Send an event immediately, with an open file to read. Statistics, of which more will come, are left out while
    the reader is busy. If it has gone, the end of its side of the socket ends the process, not this."""
    line = json.dumps({"event": event} | values).encode() + b"\n"
    if event == STATISTICS and not select.select([], [CHANNEL], [], 0)[1]:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        if file is None:
            channel().sendall(line)
        else:
            socket.send_fds(channel(), [line], [file])
