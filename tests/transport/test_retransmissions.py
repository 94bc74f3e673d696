"""What TCP sent again, and what waited for it: by bytes and milliseconds, however the capture is cut."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.limits import DEFAULT, Limits
from dissector.core.stage import NOTHING_PENDING
from dissector.core.store import Store
from dissector.transport import Retransmissions, Transport
from tests.traffic import ACK, Mangling, Packet, Turn, conversation, ethernet, manglings, seeds, streams
from tests.transport.reading import batch, read

MS = 1_000_000
PACKETS = conversation([Turn(True, b"a" * 100), Turn(False, b"b" * 300)], segment=100)
"""Two to open, one of the client, three of the server: a packet a millisecond."""


def delays(retransmissions: Retransmissions, *frames: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    """Of frames (direction, stream offset, size, begun after so many milliseconds), in milliseconds."""
    direction, start, size, time = np.array(frames, np.int64).T
    again, waited = retransmissions.delays(direction, start, size, time * MS)
    return [(a // MS, w // MS) for a, w in zip(again.tolist(), waited.tolist(), strict=True)]


def stretches(retransmissions: Retransmissions) -> set[tuple[int, ...]]:
    return set(zip(*(column.values.tolist() for column in retransmissions._columns), strict=True))


def test_a_segment_that_comes_again_delays_the_frames_that_it_has_bytes_of() -> None:
    retransmissions = read([*PACKETS, *PACKETS[:1] * 10, PACKETS[4]]).transport.retransmissions
    assert delays(retransmissions, (1, 0, 100, 3), (1, 100, 50, 4), (1, 150, 150, 4), (0, 0, 100, 2)) == [
        (0, 0), (12, 0), (12, 0), (0, 0),
    ]  # fmt: skip


def test_bytes_behind_a_hole_wait_until_it_is_filled() -> None:
    late = [*PACKETS[:3], *PACKETS[4:], *[Packet(True, 1101, b"", ACK)] * 7, PACKETS[3]]
    retransmissions = read(late).transport.retransmissions
    assert delays(retransmissions, (1, 0, 100, 12), (1, 100, 50, 12), (1, 200, 100, 12), (0, 0, 100, 2)) == [
        (0, 9), (0, 9), (0, 9), (0, 0),
    ]  # fmt: skip


def test_the_first_packet_that_waits_for_bytes_is_known() -> None:
    store = Store()
    data = [ethernet(packet) for packet in [*PACKETS[:3], *PACKETS[4:]]]  # the last two wait for the one left out
    transport = Transport(store, DEFAULT)
    transport.feed(batch(data[:3], base=store.add(b"".join(data[:3])), first=1))
    assert transport.oldest_pending() == NOTHING_PENDING
    transport.feed(batch(data[3:], base=store.add(b"".join(data[3:])), first=4))
    assert transport.oldest_pending() == (4, 4 * MS)
    assert transport.oldest_pending(4 * MS) == (5, 5 * MS)
    assert transport.oldest_pending(5 * MS) == NOTHING_PENDING
    assert transport.held_bytes == 200


@pytest.mark.parametrize("garbage", [b"", b"\0"])
def test_clean_traffic_and_keep_alives_are_none_of_it(garbage: bytes) -> None:
    alive = [Packet(True, 1100, garbage), Packet(False, 5300, garbage)]
    assert not len(read([*PACKETS, *alive * 5]).transport.retransmissions)


def test_what_is_remembered_is_bounded_and_the_rest_counted() -> None:
    retransmissions = read([*PACKETS, *PACKETS[3:] * 4], limits=Limits(retransmissions=5)).transport.retransmissions
    assert (len(retransmissions), retransmissions.left_out) == (5, 7)


@given(sent=streams(), mangle=manglings(), cuts=st.lists(st.integers(0, 10_000), max_size=6))
def test_batches_make_no_difference(sent: tuple[bytes, bytes], mangle: Mangling, cuts: list[int]) -> None:
    packets = mangle(conversation([Turn(True, sent[0]), Turn(False, sent[1])], segment=100))
    assert stretches(read(packets, cuts=cuts).transport.retransmissions) == stretches(
        read(packets).transport.retransmissions
    )


@given(chance=seeds)
def test_delays_are_those_of_looking_at_every_stretch(chance: random.Random) -> None:
    retransmissions = Retransmissions(DEFAULT)
    rows = []
    for _ in range(chance.randrange(1, 30)):
        start = chance.randrange(200)
        since = chance.choice([0, chance.randrange(1, 50)])
        rows.append((chance.randrange(4), start, start + chance.randint(1, 40), chance.randrange(50, 100), since))
    retransmissions.add(np.array(rows, np.int64).T)
    frames, at = [], 0
    while at < 200:
        size = chance.randint(1, 30)
        frames.append((chance.randrange(4), at, size, chance.randrange(50)))
        at += size
    again, waited = retransmissions.delays(*np.array(frames, np.int64).T)
    for (direction, start, size, begun), *found in zip(frames, again.tolist(), waited.tolist(), strict=True):
        over = [row for row in rows if row[0] == direction and row[1] < start + size and row[2] > start]
        assert found[0] == max([0, *(came - begun for *_, came, since in over if not since)])
        assert found[1] == max([0, *(came - since for *_, came, since in over if since)])
