"""Builds packets of conversations: of all their turns at once, or as the turns of many arrive.

Invariants:
  * times never decrease, of turns that arrive if `until` does not; a turn's first byte has exactly the turn's time;
  * every turn begins a new segment, so that framing finds it after a gap;
  * of conversations at once, initial sequence numbers depend on the contents: two between the same ends are never taken
    for one;
  * of turns that arrive, only those that are later than `until` are held. Nothing is acknowledged; a conversation
    without a `Lifetime` opens at its first turn and does not end.
"""

import heapq
import zlib
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final, NamedTuple

from dissector.conversation.headers import ACK, FIN, LARGEST_PAYLOAD, PSH, SYN, frame
from dissector.conversation.pcapng import Packet
from dissector.conversation.turns import Conversation, End, Turn

SEGMENTS_PER_ACK: Final = 64
"""Segments between two ACKs: together they fit into the receiver's window."""
LAST: Final = 1 << 63


def packets(conversations: Iterable[Conversation]) -> list[Packet]:
    """Return the packets of all conversations, in the order of time. A conversation without turns has none."""
    made = [packet for each in conversations if each.turns for packet in _packets(each)]
    made.sort(key=attrgetter("time_ns"))
    return made


class Lifetime(NamedTuple):
    """When a conversation opens and ends; None where its packets do not show it."""

    opened_ns: int | None
    closed_ns: int | None
    closed_by_client: bool


class PacketWriter:
    """Takes turns of conversations, which the caller numbers, and yields packets."""

    def __init__(self) -> None:
        self._later: list[tuple[int, bool, int, int, Turn]] = []
        """A heap: time, whether it is the conversation's end, place, conversation, turn."""
        self._places = 0
        self._streams: dict[int, _Streams] = {}

    def begin(self, number: int, client: End, server: End, lifetime: Lifetime | None = None) -> None:
        """Add a conversation, before packets from after its opening are yielded."""
        if number in self._streams:
            return
        self._streams[number] = _Streams(client, server, (2 * number + 1) * 0x1234567, 2 * number * 0x1234567)
        if lifetime is None:
            return
        if lifetime.opened_ns is None:
            self._streams[number].are_open = True
        else:
            self.say(number, Turn(lifetime.opened_ns, from_client=True, data=b""))
        if lifetime.closed_ns is not None:
            self.say(number, Turn(lifetime.closed_ns, lifetime.closed_by_client, b""), is_end=True)

    def say(self, number: int, turn: Turn, *, is_end: bool = False) -> None:
        """Add a turn to a conversation. Its end comes after all turns of the same time."""
        heapq.heappush(self._later, (turn.time_ns, is_end, self._places, number, turn))
        self._places += 1

    def packets(self, until: int = LAST) -> Iterator[Packet]:
        """Yield the packets of all turns before a time, or of all."""
        while self._later and self._later[0][0] < until:
            _, is_end, _, number, turn = heapq.heappop(self._later)
            streams = self._streams[number]
            if not streams.are_open:
                yield from streams.opening(turn.time_ns)
            for at in range(0, len(turn.data), LARGEST_PAYLOAD):
                part = turn.data[at : at + LARGEST_PAYLOAD]
                yield streams.packet(turn.time_ns, ACK | PSH, part, from_client=turn.from_client)
            if is_end:
                yield streams.packet(turn.time_ns, FIN | ACK, from_client=turn.from_client)
            streams.skip(turn)


class _Streams:
    """Both directions of a connection. Lists have the server's value, then the client's: by "from the client"."""

    def __init__(self, client: End, server: End, of_client: int, of_server: int) -> None:
        """The numbers are the initial sequence numbers of both sides."""
        self._ends = [server, client]
        self._next = [of_server, of_client]
        self.are_open = False

    def opening(self, time_ns: int) -> Iterator[Packet]:
        """Yield the first two packets of the handshake."""
        self.are_open = True
        yield self.packet(time_ns, SYN, from_client=True)
        yield self.packet(time_ns, SYN | ACK, from_client=False)

    def packet(self, time_ns: int, flags: int, payload: bytes = b"", *, from_client: bool) -> Packet:
        """Return the next packet of a side."""
        source, destination = self._ends[from_client], self._ends[not from_client]
        seq, ack = self._next[from_client], self._next[not from_client] if flags & ACK else 0
        self._next[from_client] += len(payload) + bool(flags & (SYN | FIN))
        return Packet(time_ns, frame(source, destination, flags, seq, ack, payload, outward=from_client))

    def skip(self, turn: Turn) -> None:
        """Leave out what is missing behind a turn."""
        self._next[turn.from_client] += turn.missing


def _packets(conversation: Conversation) -> Iterator[Packet]:
    """Yield the packets of one conversation: handshake, data in segments, acknowledgements, FIN."""
    turns = sorted(conversation.turns, key=attrgetter("time_ns"))
    begin, end = turns[0].time_ns, turns[-1].time_ns
    first = _initial_sequence_number(turns)
    streams = _Streams(conversation.client, conversation.server, first, first ^ 0x8000_0000)
    yield from streams.opening(begin)
    yield streams.packet(begin, ACK, from_client=True)
    for turn in turns:
        side, size = turn.from_client, len(turn.data)
        for count, at in enumerate(range(0, size, LARGEST_PAYLOAD), 1):
            part = turn.data[at : at + LARGEST_PAYLOAD]
            last = at + len(part) == size
            yield streams.packet(turn.time_ns, ACK | PSH if last else ACK, part, from_client=side)
            if last or count % SEGMENTS_PER_ACK == 0:
                yield streams.packet(turn.time_ns, ACK, from_client=not side)
        streams.skip(turn)
    if conversation.closed:
        yield streams.packet(end, FIN | ACK, from_client=True)
        yield streams.packet(end, FIN | ACK, from_client=False)
        yield streams.packet(end, ACK, from_client=True)


def _initial_sequence_number(turns: list[Turn]) -> int:
    """Return a number that is unlikely for another conversation."""
    found = zlib.crc32(repr([(turn.time_ns, turn.from_client, turn.missing) for turn in turns]).encode())
    for turn in turns:
        found = zlib.crc32(turn.data, found)
    return found
