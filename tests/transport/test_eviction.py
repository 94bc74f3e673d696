"""Connections come, end and are forgotten; the columns say what a plain loop over packets says."""

import random
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.batches import NEVER
from dissector.core.limits import DEFAULT, Limits
from dissector.transport.connection_lifecycle import LATE_SYN
from tests.cases import cases
from tests.traffic import ACK, CLIENT, FIN, RST, SYN, Packet, Turn, conversation
from tests.transport.reading import Reading, read

FIRST = conversation([Turn(True, b"one"), Turn(False, b"two")])
FINS = [Packet(True, 1004, b"", FIN | ACK, 5004), Packet(False, 5004, b"", FIN | ACK, 1005)]
FEW = replace(DEFAULT, remembered_packets=8)


def other(number: int) -> tuple[str, int]:
    """Another client."""
    return f"10.1.{number >> 8}.{number & 255}", 1000


def opened(count: int, first: int = 0) -> list[Packet]:
    """SYNs of so many clients."""
    return [Packet(True, 7, b"", SYN, client=other(first + n)) for n in range(count)]


def data_at(seq: int, *, client: bool = True) -> Packet:
    return Packet(client, seq, b"data")


def test_a_4_tuple_used_again_without_its_syn_is_another_connection_that_begins_in_the_middle() -> None:
    reading = read([*FIRST, *FINS, data_at(1 << 30), data_at(1 << 31, client=False)])
    assert reading.streams == {0: b"one", 1: b"two", 2: b"data", 3: b"data"}
    assert reading.transport.connections.syn_side(1) == -1
    assert reading.transport.connections.ended(1) == (0, 0)


def test_a_4_tuple_used_again_after_a_reset_is_another_connection() -> None:
    reading = read([*FIRST, Packet(True, 1004, b"", RST), data_at(1 << 30), data_at((1 << 30) + 4)])
    assert reading.streams == {0: b"one", 1: b"two", 2: b"datadata"}


def test_what_comes_late_or_again_after_the_end_is_of_the_same_connection() -> None:
    late = [FIRST[2], FIRST[3], *FINS, Packet(True, 1003, b"e"), Packet(False, 5004, b"", ACK, 1005)]
    reading = read([*FIRST, *FINS, *late])
    assert len(reading.transport.connections) == 1
    assert reading.streams == {0: b"one", 1: b"two"}


def test_one_side_closed_does_not_end_a_connection() -> None:
    reading = read([*FIRST, FINS[0], Packet(False, 5004, b" more"), Packet(False, 5009, b" and more"), FINS[0]])
    assert reading.streams == {0: b"one", 1: b"two more and more"}
    assert len(reading.transport.connections) == 1
    for far in (data_at(1 << 30, client=False), data_at(1 << 30)):
        assert len(read([*FIRST, FINS[0], far]).transport.connections) == 1


def test_an_ended_connection_is_evicted_some_packets_later_and_not_before() -> None:
    for count, connections in ((FEW.remembered_packets - 1, 1), (2 * FEW.remembered_packets, 2)):
        idle = opened(count)
        reading = read([*FIRST, *FINS, *idle, *FIRST[2:]], limits=FEW)
        assert len(reading.transport.connections) == connections + count


def test_the_lookup_table_is_bounded_by_open_connections() -> None:
    scan = [packet for syn in opened(400) for packet in (syn, Packet(False, 0, b"", RST | ACK, 8, client=syn.client))]
    connections = read([*FIRST, *scan, *FIRST[2:]], limits=FEW).transport.connections
    assert len(connections) == 401
    assert connections.known <= 1 + 2 * FEW.remembered_packets
    assert connections.endpoints(400)[0] == other(399)


def test_surplus_open_connections_are_evicted_longest_idle_first_and_counted() -> None:
    limits = replace(FEW, connections=10)
    for busy in (True, False):
        talk = [packet for syn in opened(40) for packet in (syn, *([FIRST[2]] if busy else []))]
        connections = read([*FIRST, *talk, *FIRST[2:]], limits=limits).transport.connections
        assert connections.known <= limits.connections + limits.remembered_packets
        assert len(connections) == 41 + (not busy)
        assert connections.resumed == (not busy)


def test_held_bytes_of_a_connection_are_delivered_when_it_is_evicted() -> None:
    holes = [*FIRST[:2], Packet(True, 1011, b"behind a hole"), Packet(True, 1024, b"", RST)]
    reading = read([*holes, *opened(40)], limits=FEW)
    assert reading.streams == {0: b"?" * 10 + b"behind a hole"}
    assert not reading.at_end


@dataclass
class Life:
    """One connection, as the loop knows it."""

    first: int
    side_0: tuple[str, int]
    syn_side: int = -1
    isn: dict[int, int] = field(default_factory=dict)
    first_bytes: dict[int, int] = field(default_factory=dict)
    """By side: where the bytes begin that the capture can have."""
    end: dict[int, int] = field(default_factory=dict)
    flags: list[int] = field(default_factory=lambda: [0, 0])
    over: int | None = None
    last: int = 0
    closed: int | None = None
    """The packet with its first FIN or RST, and the side that sent it."""
    closed_by: int | None = None
    is_open: bool = False
    has_late_syn: bool = False
    """A SYN came behind other segments, or answers another one: both are looked for in the batch of the first only."""


def lives_of(packets: list[Packet], limits: Limits) -> list[Life]:
    """The rule, packet by packet."""
    lifetimes: list[Life] = []
    current: dict[frozenset[tuple[str, int]], Life] = {}
    period = 0
    for number, packet in enumerate(packets):
        if number // limits.remembered_packets > period:
            period = number // limits.remembered_packets
            since = (period - 1) * limits.remembered_packets
            current = {pair: life for pair, life in current.items() if life.over is None or life.over >= since}
            idle = sorted(current, key=lambda pair: current[pair].last)
            for pair in idle[: max(0, len(current) - limits.connections)]:
                del current[pair]
        sender = packet.client if packet.from_client else packet.server
        pair = frozenset([packet.client, packet.server])
        life = current.get(pair)
        if life is None or begins(life, int(sender != life.side_0), packet):
            life = current[pair] = Life(number, sender)
            lifetimes.append(life)
        take(life, int(sender != life.side_0), packet, number)
    return lifetimes


def begins(life: Life, side: int, packet: Packet) -> bool:
    if packet.flags & (SYN | RST) == SYN:
        if side in life.isn:
            return life.isn[side] != packet.seq
        if side in life.first_bytes and 0 < life.first_bytes[side] - packet.seq <= LATE_SYN:
            return False
        return not packet.flags & ACK and not (1 - side in life.isn and life.over is None)
    near = side not in life.end or abs(packet.seq - life.end[side]) < 1 << 23
    return life.over is not None and bool(packet.payload) and not near


def take(life: Life, side: int, packet: Packet, number: int) -> None:
    life.last = number
    if not life.first_bytes:
        life.first_bytes[side] = packet.seq
        if packet.flags & ACK:
            life.first_bytes[1 - side] = packet.ack
    is_syn = packet.flags & (SYN | RST) == SYN
    is_answer_to_another = bool(packet.flags & ACK) and life.isn.get(1 - side, packet.ack - 1) != packet.ack - 1
    life.has_late_syn |= is_syn and (life.is_open or is_answer_to_another)
    life.is_open |= not is_syn
    if is_syn:
        acknowledged = packet.ack - 1 if packet.flags & ACK else None
        if acknowledged is None or life.isn.get(1 - side, acknowledged) == acknowledged:
            life.isn[side] = packet.seq
            if acknowledged is not None:
                life.isn[1 - side] = acknowledged
            if life.syn_side < 0:
                life.syn_side = side if acknowledged is None else 1 - side
    late = life.over is not None and packet.payload
    if life.closed is None and packet.flags & (FIN | RST):
        life.closed, life.closed_by = number, side
    life.flags[side] |= packet.flags & (FIN | RST)
    if life.over is None and (packet.flags & RST or life.flags[0] & life.flags[1] & FIN):
        life.over = number
    if late or packet.flags & (FIN | RST):
        life.end[side] = packet.seq + len(packet.payload) + (packet.flags & FIN)


def described(reading: Reading) -> list[tuple[int, tuple[str, int], int, tuple[int, int]]]:
    connections = reading.transport.connections
    return [
        (connections.first_packet(n), connections.endpoints(n)[0], connections.syn_side(n), connections.ended(n))
        for n in range(len(connections))
    ]


some_packets = st.lists(
    st.builds(
        Packet,
        from_client=st.booleans(),
        seq=st.sampled_from([1000, 1001, 1003, 1 << 30, (1 << 30) + 2]),
        payload=st.sampled_from([b"", b"", b"xy"]),
        flags=st.sampled_from([ACK, ACK, ACK, SYN, SYN | ACK, FIN | ACK, RST, RST | ACK]),
        ack=st.sampled_from([1001, (1 << 30) + 1]),
        client=st.sampled_from([CLIENT, other(1), other(2), ("10.0.0.2", 77)]),
    ),
    max_size=60,
)


@given(
    packets=some_packets, cuts=st.lists(st.integers(0, 60), max_size=6), remembered=st.integers(1, 30),
    connections=st.integers(1, 4),
)  # fmt: skip
def test_columns_give_what_a_loop_over_packets_gives(
    packets: list[Packet], cuts: list[int], remembered: int, connections: int
) -> None:
    limits = replace(DEFAULT, remembered_packets=remembered, connections=connections)
    whole = read(packets, limits=limits)
    expected = lives_of(packets, limits)
    assert described(whole) == [(life.first, life.side_0, life.syn_side, tuple(life.flags)) for life in expected]
    parts = read(packets, limits=limits, cuts=cuts)
    assert described(parts) == described(whole)
    if not any(life.has_late_syn for life in expected):
        assert sorted(parts.runs) == sorted(whole.runs)
    assert parts.transport.connections.resumed == whole.transport.connections.resumed


FLAGS = [ACK, ACK, ACK, ACK, SYN, SYN, SYN | ACK, SYN | ACK, FIN | ACK, FIN | ACK, RST, RST | ACK]


def any_packet(chance: random.Random, number: int) -> Packet:
    """Of one of many clients, some of which have the higher address."""
    at, far = 1000 + (number << 20), 1 << 30
    seqs = [at, at, at + 1, at + 3, at + 5, at + far, at + far + 2, (at - LATE_SYN), at + 1 - LATE_SYN]
    client = (f"10.{chance.choice((0, 0, 7))}.0.{1 + number % 50}", 40_000 + number)
    answer = chance.choice([at + 1, at + 1, at, at + far + 1])
    payload = chance.choice([b"", b"", b"xy"])
    return Packet(chance.random() < 0.5, chance.choice(seqs), payload, chance.choice(FLAGS), answer, client)


@cases("seed", [3])
def test_many_pairs_at_once_live_and_end_as_a_loop_over_packets_says(seed: int) -> None:
    chance = random.Random(seed)
    packets = [any_packet(chance, chance.randrange(130)) for _ in range(1200)]
    limits = replace(DEFAULT, remembered_packets=400)
    expected = lives_of(packets, limits)
    whole = read(packets, limits=limits)
    connections = whole.transport.connections
    assert described(whole) == [(life.first, life.side_0, life.syn_side, tuple(life.flags)) for life in expected]
    assert described(read(packets, limits=limits, cuts=[300, 301, 700])) == described(whole)
    opened_by = [(n, life, life.syn_side) for n, life in enumerate(expected) if life.syn_side >= 0]
    no_answer = [(n, life, side) for n, life, side in opened_by if 1 - side not in life.isn]
    refused = [n for n, life, side in no_answer if life.flags[1 - side] & RST]
    silent = [n for n, life, side in no_answer if n not in refused and not life.end]
    assert [each.tolist() for each in connections.unreachable()] == [refused, silent]
    assert connections.answered().tolist() == [n for n, life, side in opened_by if 1 - side in life.isn]
    numbers = np.array([n for n, _, _ in opened_by])
    sides = np.array([1 - side for _, _, side in opened_by])
    for ends, which in (connections.servers(numbers), connections.ends(numbers, sides)):
        assert len({*ends}) == len(ends)
        assert [ends[at] for at in which.tolist()] == [
            connections.endpoints(n)[side] for n, side in zip(numbers.tolist(), sides.tolist(), strict=True)
        ]
    assert [connections.closed(n)[1] for n, life in enumerate(expected) if life.closed_by is not None] == [
        life.closed_by for life in expected if life.closed_by is not None
    ]
    assert [connections.closed(n)[0] for n in range(len(connections))] == [
        NEVER if life.closed is None else 1_000_000 * life.closed for life in expected
    ]
