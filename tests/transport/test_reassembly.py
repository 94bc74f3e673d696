"""Runs tile their streams; the first copy of a byte wins; what waits is bounded."""

import random
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import open_capture
from dissector.core.batches import NOWHERE, RunBatch
from dissector.core.limits import DEFAULT, Limits
from dissector.core.store import Store
from dissector.transport import Transport
from tests.traffic import Packet, Turn, capture_of, conversation, reordered, repeated, resegmented, seeds


def streams(path: str, limits: Limits = DEFAULT) -> dict[int, bytes]:
    """Every direction's bytes, ``?`` for those that are missing; fails where runs don't tile."""
    store = Store()
    transport = Transport(store, limits)
    found: dict[int, bytes] = {}

    def take(runs: RunBatch) -> None:
        for direction, start, address, size in zip(
            runs.direction.tolist(), runs.start.tolist(), runs.address.tolist(), runs.size.tolist(), strict=True
        ):
            assert start == len(found.get(direction, b""))
            part = b"?" * size if address == NOWHERE else bytes(store.read(address, size))
            found[direction] = found.get(direction, b"") + part

    for batch in open_capture(path, store).batches():
        for runs in transport.feed(batch):
            take(runs)
    for runs in transport.flush():
        take(runs)
    return found


def bytes_of(count: int) -> bytes:
    return bytes(128 + n % 101 for n in range(count))  # none of them is the mark of a missing byte


@given(chance=seeds, size=st.integers(1, 3000))
def test_streams_are_complete_whatever_a_lossless_network_does(
    tmp_path: Path, chance: random.Random, size: int
) -> None:
    data = bytes_of(size)
    packets = conversation([Turn(True, data), Turn(False, data[::-1])], segment=100)
    mangled = repeated(reordered(resegmented(packets, chance), chance), chance)
    assert streams(capture_of(tmp_path, mangled)) == {0: data, 1: data[::-1]}


@given(chance=seeds, lost=st.integers(1, 19))
def test_what_is_lost_is_a_gap_of_its_size_in_its_place(tmp_path: Path, chance: random.Random, lost: int) -> None:
    data = bytes_of(2000)
    packets = conversation([Turn(True, data)], segment=100)
    gone = chance.sample(range(2, len(packets) - 1), lost - 1 or 1)
    kept = [packet for n, packet in enumerate(packets) if n not in gone]
    expected = bytearray(data)
    for n in gone:
        expected[(n - 2) * 100 : (n - 1) * 100] = b"?" * 100
    assert streams(capture_of(tmp_path, kept)) == {0: bytes(expected)}


def test_of_two_copies_the_first_one_seen_wins(tmp_path: Path) -> None:
    packets = conversation([Turn(True, b"aaaabbbbcccc")], segment=4)
    other = replace(packets[3], payload=b"XXXX")
    assert streams(capture_of(tmp_path, [*packets, other])) == {0: b"aaaabbbbcccc"}
    early = replace(packets[3], seq=packets[3].seq + 2, payload=b"YYcc")
    assert streams(capture_of(tmp_path, [*packets[:2], early, *packets[2:]])) == {0: b"aaaabbYYcccc"}


def test_a_hole_waits_for_so_many_bytes_and_no_more(tmp_path: Path) -> None:
    packets = conversation([Turn(True, bytes_of(1000))], segment=10)
    late = [*packets[:3], *packets[4:50], packets[3], *packets[50:]]
    assert b"?" in streams(capture_of(tmp_path, late), replace(DEFAULT, out_of_order_bytes=100))[0]
    assert b"?" in streams(capture_of(tmp_path, late), replace(DEFAULT, out_of_order_packets=10, losses=0))[0]
    assert b"?" not in streams(capture_of(tmp_path, late))[0]


def test_a_wild_sequence_number_makes_no_gap(tmp_path: Path) -> None:
    packets = conversation([Turn(True, bytes_of(100))], segment=10)
    wild = replace(packets[4], seq=packets[4].seq + 2**31 - 5)
    assert streams(capture_of(tmp_path, [*packets[:5], wild, *packets[5:]])) == {0: bytes_of(100)}


def test_a_fin_shows_that_the_end_is_missing(tmp_path: Path) -> None:
    packets = conversation([Turn(True, bytes_of(30))], segment=10)
    last = packets[-1]
    fin = Packet(True, last.seq + 10, b"", 17)
    assert streams(capture_of(tmp_path, [*packets[:-1], fin])) == {0: bytes_of(20) + b"?" * 10}
