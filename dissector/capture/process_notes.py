"""Which process has an end of a connection: as comments of a pcapng file, so that they stay with the packets.

A live capture on this machine writes one for each end that is local. A comment is the word `process`, then JSON on one
line: ``process {"end": "127.0.0.1:51234", "peer": "127.0.0.1:9092", "time_ns": 1, "name": "java", "pid": 7, …}``.
"""

import json
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
