"""Whatever a network does, streams come out whole; what it loses is a gap; batches make no difference."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.core.batches import RunKind
from dissector.core.columns import Column
from dissector.core.limits import DEFAULT
from dissector.core.store import Store
from dissector.transport import Transport
from dissector.transport.in_order import NOT_STARTED, ExpectedSequence, in_order
from tests.cases import cases
from tests.traffic import (
    ACK,
    FIN,
    Mangling,
    Packet,
    Turn,
    bytes_without_mark,
    conversation,
    ethernet,
    lossy,
    manglings,
    reordered,
    repeated,
    streams,
)
from tests.transport.reading import Reading, Run, batch, read

Streams = tuple[bytes, bytes]


def packets_of(sent_streams: Streams, *, isn: tuple[int, int] = (1000, 5000), segment: int = 60) -> list[Packet]:
    """Both streams at once, a piece of each in turn."""
    client, server = sent_streams
    turns = []
    for at in range(0, max(len(client), len(server)), 150):
        turns += [Turn(True, client[at : at + 150]), Turn(False, server[at : at + 150])]
    return conversation(turns, segment=segment, isn=isn)


def tiles(runs: list[Run]) -> bool:
    """Whether each begins where the one before it ends."""
    ends = [0, *(run.start + run.size for run in runs)]
    return all(run.start == end for run, end in zip(runs, ends, strict=False))


def by_direction(sent_streams: Streams) -> dict[int, bytes]:
    return {direction: data for direction, data in enumerate(sent_streams) if data}


@given(sent_streams=streams(), mangle=manglings(), at_end=st.integers(0, 2000))
def test_a_network_that_loses_nothing_changes_nothing(sent_streams: Streams, mangle: Mangling, at_end: int) -> None:
    packets = packets_of(sent_streams, isn=(2**32 - 1 - at_end, at_end))
    assert read(mangle(packets)).streams == by_direction(sent_streams)


@pytest.mark.long
@pytest.mark.slow
@given(
    sent_streams=streams(700),
    mangle=manglings(loss=True),
    cuts=st.lists(st.integers(0, 200), max_size=12),
    grace=st.integers(0, 20),
    patience=st.integers(1, 40),
    held=st.integers(40, 2000),
    snaplen=st.sampled_from([262_144, 90]),
    wild=st.lists(st.tuples(st.integers(0, 200), st.integers(2**29, 2**32)), max_size=4),
    begin=st.integers(0, 4),
    late=st.lists(st.tuples(st.integers(2, 100), st.integers(1, 60)), max_size=6),
    is_patient=st.booleans(),
    wait_ms=st.integers(0, 120),
    losses=st.integers(0, 3),
)
def test_the_size_of_batches_makes_no_difference(
    sent_streams: Streams, mangle: Mangling, cuts: list[int], grace: int, patience: int, held: int, snaplen: int,
    wild: list[tuple[int, int]], begin: int,
    late: list[tuple[int, int]], is_patient: bool, wait_ms: int, losses: int,
) -> None:  # fmt: skip
    limits = replace(
        DEFAULT, acknowledged_packets=grace, out_of_order_packets=patience, out_of_order_bytes=held, late_packets=60,
        late_ns=wait_ms * 1_000_000, losses=losses,
    )  # fmt: skip
    packets = mangle(packets_of(sent_streams))[begin:]
    for at, later in late:
        if at < len(packets):
            packets.insert(at + later, packets.pop(at))
    for at, distance in wild:
        packets.insert(at % (len(packets) + 1), Packet(True, 1001 + distance, b"wild", ACK))
    whole, parts, singly = (
        read(packets, limits=limits, snaplen=snaplen, is_patient=is_patient, cuts=each)
        for each in ([], cuts, list(range(len(packets))))
    )
    assert sorted(parts.runs) == sorted(whole.runs)
    assert sorted(singly.runs) == sorted(whole.runs)
    for direction in (0, 1):
        assert tiles([run for run in singly.runs if run.direction == direction])
    assert whole.transport.ignored == parts.transport.ignored == singly.transport.ignored


@given(sent_streams=streams(), mangle=manglings(loss=True))
def test_delivered_bytes_are_those_sent_or_a_gap(sent_streams: Streams, mangle: Mangling) -> None:
    for direction, data in read(mangle(packets_of(sent_streams))).streams.items():
        sent = sent_streams[direction]
        assert len(data) <= len(sent)
        assert all(byte in (ord("?"), sent[at]) for at, byte in enumerate(data))


@given(sent_streams=streams(), chance=st.randoms(use_true_random=False), grace=st.sampled_from([0, 3, 64]))
@example(sent_streams=(bytes_without_mark(120), b""), chance=None, grace=64)
def test_what_is_dropped_is_a_gap_of_just_these_bytes(sent_streams: Streams, chance: object, grace: int) -> None:
    packets = packets_of(sent_streams)
    fins = [
        Packet(side, 1001 + len(sent_streams[0]) if side else 5001 + len(sent_streams[1]), b"", FIN | ACK)
        for side in (True, False)
    ]
    kept = packets[:3] + packets[4:] if chance is None else lossy(packets, chance, 0.3)
    expected = [bytearray(b"?" * len(data)) for data in sent_streams]
    for packet in kept:
        at = packet.seq - (1001 if packet.from_client else 5001)
        if packet.payload:
            expected[not packet.from_client][at : at + len(packet.payload)] = packet.payload
    found = read(kept + fins, limits=replace(DEFAULT, acknowledged_packets=grace))
    assert found.streams == by_direction((bytes(expected[0]), bytes(expected[1])))
    assert {run.kind for run in found.runs} <= {RunKind.DATA, RunKind.LOST}


@given(sent_streams=streams(), snaplen=st.integers(54, 130), mangle=manglings())
def test_bytes_cut_off_by_the_snap_length_keep_their_place(
    sent_streams: Streams, snaplen: int, mangle: Mangling
) -> None:
    found = read(mangle(packets_of(sent_streams)), snaplen=snaplen)
    assert {direction: len(data) for direction, data in found.streams.items()} == {
        direction: len(data) for direction, data in by_direction(sent_streams).items()
    }
    assert {run.kind for run in found.runs} <= {RunKind.DATA, RunKind.TRUNCATED}
    for direction, data in found.streams.items():
        assert all(byte in (ord("?"), sent_streams[direction][at]) for at, byte in enumerate(data))


@pytest.mark.slow
@given(sent_streams=streams(), mangle=manglings(loss=True))
def test_along_a_stream_packets_never_run_backwards(sent_streams: Streams, mangle: Mangling) -> None:
    runs = read(mangle(packets_of(sent_streams))).runs
    for direction in (0, 1):
        packets = [run.packet for run in runs if run.direction == direction]
        assert packets == sorted(packets)


def many_connections(chance: random.Random, count: int) -> list[Packet]:
    """What so many clients and their servers say at once over a bad network, with acknowledgements, some of them early,
    and with ends; each connection has a port of its own."""
    lives = []
    for number in range(count):
        isn = (chance.choice((1000, 2**32 - 100)), chance.choice((5000, 2**32 - 300)))
        data = (bytes_without_mark(chance.randrange(500)), bytes_without_mark(chance.randrange(500))[::-1])
        parts = (data[0][:200], data[1][:300], data[0][200:], data[1][300:])
        turns = [Turn(at % 2 == 0, part) for at, part in enumerate(parts)]
        packets = conversation(turns, segment=60, isn=isn, client=("10.0.0.1", 40_000 + number))
        last = [
            Packet(side, isn[not side] + 1 + len(data[not side]), b"", FIN | ACK, client=packets[0].client)
            for side in (True, False)
        ]
        packets = lossy(repeated(reordered(packets, chance, 3), chance), chance, 0.2) + last
        for _ in range(4):
            side = chance.random() < 0.5
            ack = isn[side] + 1 + chance.randrange(len(data[side]) + 1)
            idle = replace(packets[0], from_client=side, seq=isn[not side], payload=b"", flags=ACK, ack=ack)
            packets.insert(chance.randrange(2, len(packets) + 1), idle)
        lives.append(packets[chance.choice((0, 0, 1, 2)) :])
    order = [number for number, packets in enumerate(lives) for _ in packets]
    chance.shuffle(order)
    following = [iter(packets) for packets in lives]
    return [next(following[number]) for number in order]


@pytest.mark.long
@pytest.mark.slow
@cases("seed", range(2))
def test_many_connections_at_once_are_put_together_as_packet_by_packet(seed: int) -> None:
    chance = random.Random(seed)
    packets = many_connections(chance, 9)
    limits = replace(DEFAULT, acknowledged_packets=40, out_of_order_packets=150, out_of_order_bytes=240)
    singly = read(packets, limits=limits, cuts=list(range(len(packets))))
    assert {RunKind.DATA, RunKind.LOST} == {run.kind for run in singly.runs}
    for cuts in ([], [chance.randrange(len(packets)) for _ in range(9)]):
        reading = read(packets, limits=limits, cuts=cuts)
        assert sorted(reading.runs) == sorted(singly.runs)
        assert sorted(reading.at_end) == sorted(singly.at_end)
        for direction in range(2 * 9):
            assert tiles([run for run in reading.runs if run.direction == direction])
        assert stretches(reading) == stretches(singly)


def stretches(reading: Reading) -> list[tuple[int, ...]]:
    columns = reading.transport.retransmissions._columns
    return sorted(zip(*(column.values.tolist() for column in columns), strict=True))


def test_what_follows_repeats_or_overlaps_is_placed_in_columns_alone() -> None:
    packets = [
        packet
        for number in range(5)
        for packet in conversation(
            [Turn(True, bytes_without_mark(300)), Turn(False, bytes_without_mark(200))],
            segment=50,
            isn=(2**32 - 100, 7),
            client=("10.0.0.1", 40_000 + number),
        )
    ]
    packets += [packets[3], replace(packets[-1], payload=packets[-1].payload + b"more")]
    transport = Transport(Store(), DEFAULT)
    segments = transport.segments(batch([ethernet(packet) for packet in packets]))
    rows = np.flatnonzero(segments.size)
    rows = rows[np.argsort(segments.direction[rows], kind="stable")]
    expected = ExpectedSequence(Column(np.int64, NOT_STARTED), Column(np.int64))
    expected.grow(10)
    expected.begin(segments, rows)
    runs, others, repeats = in_order(segments, rows, expected, np.zeros(0, np.int64))
    assert not len(others)
    assert repeats[:3].T.tolist() == [[0, 50, 100], [9, 150, 200]]
    ends = [300, 200] * 4 + [300, 204]
    assert expected.position.values.tolist() == ends
    assert expected.expected.values.tolist() == [(at + (2**32 - 99, 8)[n % 2]) % 2**32 for n, at in enumerate(ends)]
    assert int(runs.size.sum()) == sum(ends)
    _, others, _ = in_order(segments, rows, expected, np.array([4, 5]))
    assert sorted({*segments.direction[others].tolist()}) == [4, 5]
