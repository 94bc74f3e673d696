"""Builds packets of many conversations as their turns arrive, without holding all of them.

Invariants:
  * times never decrease if `until` does not; only turns that are later than it are held;
  * each turn begins a new segment, as in `packets`. Nothing is acknowledged, and no conversation ends.
"""

import heapq
from collections.abc import Iterator
from typing import Final

from dissector.conversation.headers import ACK, LARGEST_PAYLOAD, PSH, SYN, frame
from dissector.conversation.pcapng import Packet
from dissector.conversation.turns import End, Turn

LAST: Final = 1 << 63


class PacketWriter:
    """Takes turns of conversations, which the caller numbers, and yields packets."""

    def __init__(self) -> None:
        self._later: list[tuple[int, int, int, Turn]] = []
        """A heap: time, place, conversation, turn."""
        self._places = 0
        self._ends: dict[int, tuple[End, End]] = {}
        self._next: dict[int, list[int]] = {}
        """Next sequence numbers of the server and the client."""

    def begin(self, number: int, client: End, server: End) -> None:
        """Add a conversation."""
        self._ends.setdefault(number, (server, client))

    def say(self, number: int, turn: Turn) -> None:
        """Add a turn to a conversation."""
        heapq.heappush(self._later, (turn.time_ns, self._places, number, turn))
        self._places += 1

    def packets(self, until: int = LAST) -> Iterator[Packet]:
        """Yield the packets of all turns before a time, or of all."""
        while self._later and self._later[0][0] < until:
            _, _, number, turn = heapq.heappop(self._later)
            if number not in self._next:
                self._next[number] = [(2 * number + side) * 0x1234567 % (1 << 32) for side in (0, 1)]
                yield self._packet(number, turn.time_ns, SYN, from_client=True)
                yield self._packet(number, turn.time_ns, SYN | ACK, from_client=False)
            for at in range(0, len(turn.data), LARGEST_PAYLOAD):
                part = turn.data[at : at + LARGEST_PAYLOAD]
                yield self._packet(number, turn.time_ns, ACK | PSH, part, from_client=turn.from_client)
            self._next[number][turn.from_client] += turn.missing

    def _packet(self, number: int, time_ns: int, flags: int, payload: bytes = b"", *, from_client: bool) -> Packet:
        ends, after = self._ends[number], self._next[number]
        seq, ack = after[from_client] % (1 << 32), after[not from_client] % (1 << 32) if flags & ACK else 0
        after[from_client] += len(payload) + bool(flags & SYN)
        made = frame(ends[from_client], ends[not from_client], flags, seq, ack, payload, outward=from_client)
        return Packet(time_ns, made)
