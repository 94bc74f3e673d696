"""Skew: one giant connection among many small ones. One task has to take it, whatever there is beside it."""

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dissector.conversation import End, Packet, Turn, pcapng
from dissector.conversation.packets import PacketWriter
from tools.benchmarks.captures import moving_turns

ROUND: Final = 300
"""Exchanges until a client says the same again, but for correlation ids."""
SMALL: Final = 3
"""Exchanges of a small connection."""
_SERVER: Final = End("10.0.0.1", 9092)
_START_NS: Final = 1_790_000_000_000_000_000
_STEP_NS: Final = 100_000
"""From one exchange of the giant's to the next."""
_CORRELATION_ID: Final = {True: 8, False: 4}
"""Where it stands in a frame from the client, and in one from the server."""


def skewed(target: Path, exchanges: int, connections: int) -> None:
    """A capture of one connection with so many exchanges, in about 440 bytes each, and of so many small ones that begin
    all along it."""
    with target.open("wb") as file:
        file.writelines(pcapng(_packets(exchanges, connections), "made for a test: one giant connection"))


def _packets(exchanges: int, connections: int) -> Iterator[Packet]:
    talk, turns = PacketWriter(), moving_turns(ROUND, max_wait_ms=500)
    talk.begin(0, End("10.1.0.1", 40_000), _SERVER)
    begins = sorted(random.Random(7).randrange(exchanges) for _ in range(connections))
    small = 0
    for number in range(exchanges):
        _say(talk, 0, turns, number, number)
        while small < connections and begins[small] == number:
            small += 1
            talk.begin(small, End(f"10.2.{small >> 8}.{small & 255}", 40_000), _SERVER)
            for nth in range(SMALL):
                _say(talk, small, turns, nth, number + nth)
        yield from talk.packets(_START_NS + number * _STEP_NS)
    yield from talk.packets()


def _say(talk: PacketWriter, conversation: int, turns: list[Turn], number: int, step: int) -> None:
    """An exchange, the request at a step of the time."""
    for side in (0, 1):
        turn = turns[2 * number % len(turns) + side]
        at, data = _CORRELATION_ID[turn.from_client], bytearray(turn.data)
        struct.pack_into(">i", data, at, number)
        talk.say(conversation, Turn(_START_NS + step * _STEP_NS + side * _STEP_NS // 2, turn.from_client, bytes(data)))
