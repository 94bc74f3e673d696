"""Builds packets of conversations: handshake, data in segments, acknowledgements, FIN.

Invariants:
  * times never decrease, and a turn's first byte has exactly the turn's time;
  * every turn begins a new segment, so that framing finds it after a gap;
  * initial sequence numbers depend on the contents: two conversations between the same ends are never taken for one.
"""

import zlib
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from dissector.conversation.headers import ACK, FIN, LARGEST_PAYLOAD, PSH, SYN, frame
from dissector.conversation.pcapng import Packet
from dissector.conversation.turns import Conversation, Turn

SEGMENTS_PER_ACK: Final = 64
"""Segments between two ACKs: together they fit into the receiver's window."""


def packets(conversations: Iterable[Conversation]) -> list[Packet]:
    """Return the packets of all conversations, in the order of time. A conversation without turns has none."""
    made = [packet for each in conversations if each.turns for packet in _ConversationPackets(each).packets()]
    made.sort(key=attrgetter("time_ns"))
    return made


class _ConversationPackets:
    """Builds the packets of one conversation. Dicts have a value for each side, by "from the client"."""

    def __init__(self, conversation: Conversation) -> None:
        self._ends = {True: conversation.client, False: conversation.server}
        self._turns = sorted(conversation.turns, key=attrgetter("time_ns"))
        self._closed = conversation.closed
        first = _initial_sequence_number(self._turns)
        self._next = {True: first, False: first ^ 0x8000_0000}

    def packets(self) -> Iterator[Packet]:
        """Yield all packets."""
        begin, end = self._turns[0].time_ns, self._turns[-1].time_ns
        yield self._packet(begin, SYN, from_client=True)
        yield self._packet(begin, SYN | ACK, from_client=False)
        yield self._packet(begin, ACK, from_client=True)
        for turn in self._turns:
            yield from self._turn(turn)
        if self._closed:
            yield self._packet(end, FIN | ACK, from_client=True)
            yield self._packet(end, FIN | ACK, from_client=False)
            yield self._packet(end, ACK, from_client=True)

    def _turn(self, turn: Turn) -> Iterator[Packet]:
        side, size = turn.from_client, len(turn.data)
        for count, at in enumerate(range(0, size, LARGEST_PAYLOAD), 1):
            part = turn.data[at : at + LARGEST_PAYLOAD]
            last = at + len(part) == size
            yield self._packet(turn.time_ns, ACK | PSH if last else ACK, part, from_client=side)
            if last or count % SEGMENTS_PER_ACK == 0:
                yield self._packet(turn.time_ns, ACK, from_client=not side)
        self._next[side] += turn.missing

    def _packet(self, time_ns: int, flags: int, payload: bytes = b"", *, from_client: bool) -> Packet:
        source, destination = self._ends[from_client], self._ends[not from_client]
        seq, ack = self._next[from_client], self._next[not from_client] if flags & ACK else 0
        self._next[from_client] += len(payload) + bool(flags & (SYN | FIN))
        data = frame(source, destination, flags, seq, ack, payload, outward=from_client)
        return Packet(time_ns, data)


def _initial_sequence_number(turns: list[Turn]) -> int:
    """Return a number that is unlikely for another conversation."""
    found = zlib.crc32(repr([(turn.time_ns, turn.from_client, turn.missing) for turn in turns]).encode())
    for turn in turns:
        found = zlib.crc32(turn.data, found)
    return found
