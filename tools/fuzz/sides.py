"""Connections whose ends are not a client and a broker: both send requests or responses, or one of them nothing."""

import random
import struct
from typing import Final

from tests.traffic import (
    Packet,
    Turn,
    conversation,
    ethernet,
    lossy,
    pcap,
    reordered,
    repeated,
    request,
    resegmented,
    response,
)  # fmt: skip
from tools.fuzz.captures import NETWORKS
from tools.fuzz.mutation import mutated
from tools.fuzz.seeds import Seeds

PORTS: Final = (9092, 9092, 9092, 8080, 19_092, 443)
MANY: Final = (200, 1_000, 4_000)
MANY_SHARE: Final = 0.06
ZOOKEEPER_SHARE: Final = 0.1
"""Of captures of orphan responses."""
LONGEST: Final = 1 << 19
"""Bytes of a file."""


def both_sides_file(seeds: Seeds, chance: random.Random) -> bytes:
    """Each end sends what a client sends, or what a broker does, or both in turn."""
    speakers = {side: chance.choice(("client", "client", "broker", "both")) for side in (True, False)}
    real, damaged = chance.choice((0.0, 0.5, 1.0)), chance.choice((0.0, 0.0, 0.1, 1.0))

    def turn(number: int) -> Turn:
        side = chance.random() < 0.5
        speaks = speakers[side]
        of_client = speaks == "client" or (speaks == "both" and chance.random() < 0.5)
        data = _request(number, real, seeds, chance) if of_client else _response(number, real, seeds, chance)
        return Turn(side, mutated(data, chance) if chance.random() < damaged else data)

    return _file([[turn(n) for n in range(_count(chance))] for _ in range(chance.choice((1, 1, 2, 5)))], chance)


def orphans_file(seeds: Seeds, chance: random.Random) -> bytes:
    """Responses without requests, real or random, of one connection or of very many."""
    real, damaged = chance.choice((0.0, 0.0, 0.5, 1.0)), chance.choice((0.0, 0.0, 0.1))
    count = _count(chance)
    talks = chance.choice((1, 1, 2, count))
    zookeepers = chance.random() < ZOOKEEPER_SHARE

    def turn(number: int) -> Turn:
        data = _zookeeper_reply(number, chance) if zookeepers else _response(number, real, seeds, chance)
        return Turn(False, mutated(data, chance) if chance.random() < damaged else data)

    return _file([[turn(n) for n in range(max(1, count // talks))] for _ in range(talks)], chance)


def _count(chance: random.Random) -> int:
    return chance.choice(MANY) if chance.random() < MANY_SHARE else chance.randint(1, 40)


def _request(number: int, real: float, seeds: Seeds, chance: random.Random) -> bytes:
    if chance.random() < real:
        return chance.choice(seeds.requests)
    key, version = chance.choice((3, 3, 18, chance.randrange(95), chance.randrange(1 << 15))), chance.randrange(20)
    body = bytes(4) if chance.random() < 0.5 else chance.randbytes(chance.randint(0, 60))
    return request(number, api_key=key, version=chance.choice((0, version)), body=body)


def _response(number: int, real: float, seeds: Seeds, chance: random.Random) -> bytes:
    if chance.random() < real:
        return chance.choice(seeds.responses)
    size = chance.choice((0, 2, 8, 30, 40, 400))
    few = bytes(chance.choices((0, 0, 0, 1, 2), k=size))
    return response(number, few if chance.random() < 0.5 else chance.randbytes(size))


def _zookeeper_reply(number: int, chance: random.Random) -> bytes:
    """It has the size and the rising id of a response of Kafka."""
    return response(number + 1, struct.pack(">qi", number + 1, 0) + chance.randbytes(chance.randint(0, 60)))


def _file(talks: list[list[Turn]], chance: random.Random) -> bytes:
    """A capture of connections, on a network that is mostly sound."""
    server = ("10.0.0.2", chance.choice(PORTS))
    opened, same_ports = chance.random() < 0.6, chance.random() < 0.1
    packets: list[Packet] = []
    for number, turns in enumerate(talks):
        port = server[1] if same_ports else 1_024 + number % 60_000
        client = (f"10.0.{1 + number // 250 % 250}.{1 + number % 250}", port)
        isn = (chance.randrange(1 << 32), chance.randrange(1 << 32))
        packets += conversation(turns, handshake=opened, client=client, server=server, isn=isn)
    for change, share in ((resegmented, 0.2), (lossy, 0.2), (reordered, 0.1), (repeated, 0.1)):
        packets = change(packets, chance) if chance.random() < share else packets
    wire = [ethernet(packet) for packet in packets]
    if wire and chance.random() < 0.1:
        wire = chance.choice(NETWORKS)(wire, chance) or wire
    room, kept = LONGEST, []
    for each in wire:
        room -= len(each)
        if room < 0:
            break
        kept.append(each)
    return pcap(kept, snaplen=chance.choice((262_144, 262_144, 262_144, 96)))
