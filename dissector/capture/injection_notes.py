"""What a proxy injected on purpose, as comments of packets in its recording, so that it stays with them:
``kdissect: injected by fault 1 (127.0.0.1:51234, correlation id 17): error NOT_LEADER_OR_FOLLOWER``.

The client's end and the correlation id say which exchange it is: the packet may have none of its bytes, as where a
response was dropped.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

CLOSED: Final = "then its connection was closed"
"""What the note of a frame ends with in whose place somebody closed the connection."""
BEHIND_DROP: Final = "not answered, behind what was dropped"
"""The action that a note has of an exchange for which a client waits in vain, as it does for the one before."""
_NOTE: Final = re.compile(
    r"kdissect: injected by ([^()\n]{1,80}) \(([^\s,()]{1,80}), correlation id (-?\d{1,10})\): ([^\n]{1,200})"
)


class InjectionNote(NamedTuple):
    """One thing that was injected."""

    client: str
    """The client's end of the connection, `host:port`."""
    correlation_id: int
    by: str
    """What did it: ``fault 1``."""
    action: str

    @property
    def closes(self) -> bool:
        """Whether the proxy closed the connection with it."""
        return self.action.startswith("close") or self.action.endswith(CLOSED)

    def comment(self) -> str:
        """The note as a comment."""
        return f"kdissect: injected by {self.by} ({self.client}, correlation id {self.correlation_id}): {self.action}"


def injection_notes(comment: str) -> Iterator[InjectionNote]:
    """Yield the notes that a packet's comments have, one a line."""
    for found in _NOTE.finditer(comment):
        by, client, number, action = found.groups()
        yield InjectionNote(client, int(number), by, action)
