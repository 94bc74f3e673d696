"""Which exchanges a proxy interfered with, from its comments on packets (`capture/injection_notes.py`).

Invariant: bounded; what is beyond is counted by whoever reads comments.
"""

from bisect import bisect_left
from typing import Final

from dissector.capture.injection_notes import InjectionNote, injection_notes
from dissector.core.batches import NEVER

MOST_NOTES: Final = 1 << 17
BEFORE: Final = 1
"""A request that is discarded may have its note in the packet before it."""


class Injections:
    """Notes by clients' ends, in the order of packets."""

    def __init__(self) -> None:
        self._packets: dict[str, list[int]] = {}
        self._notes: dict[str, list[InjectionNote]] = {}
        self._closings: dict[str, list[int]] = {}
        """The packets of those that closed connections."""
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def add(self, packet: int, comment: str) -> None:
        """Take the comment of a packet; packets come in ascending order."""
        for note in injection_notes(comment):
            if self._count < MOST_NOTES:
                self._count += 1
                self._packets.setdefault(note.client, []).append(packet)
                self._notes.setdefault(note.client, []).append(note)
                if note.closes:
                    self._closings.setdefault(note.client, []).append(packet)

    def has(self, client: str) -> bool:
        """Return whether anything was injected into connections of a client's end."""
        return client in self._notes

    def of(self, client: str, correlation_id: int, first: int, last: int = NEVER) -> InjectionNote | None:
        """Return what was injected into an exchange that begins with a packet, and whose response begins with another,
        `NEVER` without one."""
        packets, notes = self._packets.get(client, []), self._notes.get(client, [])
        for at in range(bisect_left(packets, first - BEFORE), len(packets)):
            if packets[at] > last:
                return None
            if notes[at].correlation_id == correlation_id:
                return notes[at]
        return None

    def touches(self, client: str, first: int, last: int = NEVER) -> bool:
        """Return whether anything was injected into the connection while an exchange was under way: what it waited for,
        or why it has no response, may be that."""
        packets = self._packets.get(client, [])
        at = bisect_left(packets, first)
        return at < len(packets) and packets[at] <= last

    def closed(self, client: str, begin: int, first: int) -> bool:
        """Return whether the proxy had closed a connection, which began in the packet `begin`, before the packet
        `first` of an exchange: its request crossed the end on its way."""
        closings = self._closings.get(client, [])
        at = bisect_left(closings, begin)
        return at < len(closings) and closings[at] <= first
