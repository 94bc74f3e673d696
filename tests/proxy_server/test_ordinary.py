"""Frames that the kernel passes over, and the requests that wait: as if Python looked at each frame."""

import random
import struct
from collections import deque
from itertools import count, islice

import pytest

from dissector.protocol.codec.plan import plan
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api
from dissector.proxy_server.ordinary import (
    LEAST_VERSION,
    MOST_WAITING,
    LookedAt,
    OrdinaryFrames,
    PendingRequests,
    PlainEnd,
    Request,
)
from dissector.proxy_server.rewriting import PLAIN_ENDS, REWRITTEN
from tests.frames import request, response
from tests.protocol.random_messages import make
from tests.proxy_server.test_exchanges import Both
from tests.proxy_server.test_rewriting import VERSIONS, frame_of, put_addresses

LOOKED_AT = {0: LEAST_VERSION, 3: 5}
NEGATIVE = -1 & 0xFFFF


LAST = [(key, version) for key, version in VERSIONS if key in PLAIN_ENDS and version >= REWRITTEN[key]]


def asking(number: int, key: int, version: int = 0) -> bytes:
    return struct.pack(">ihhi", 8, key, version, number)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_pieces_the_same_requests_wait_in_the_same_order(seed: int) -> None:
    chance = random.Random(seed)
    both, waiting = Both(), deque[Request]()
    numbers = count()
    for _ in range(12):
        asked = []
        for number in islice(numbers, chance.choice((1, 7, 50))):
            key, version = chance.choice(((12, 4), (1, 12), (1, 17), (-5, -1), (32_000, 7), (8, 9)))
            asked.append(
                request(number, api_key=key, version=version, body=chance.randbytes(chance.choice((0, 3, 400))))
            )
            waiting.append((number, key, version))
        both.ask(b"".join(asked), step=chance.choice((1, 5, 13, 300, 1 << 20)))
        assert [*both.pending] == [*waiting]
        answered = [*islice(waiting, chance.randrange(len(waiting) + 1))]
        if chance.random() < 0.2:
            chance.shuffle(answered)
        data = b"".join(response(each[0], bytes(chance.choice((4, 60, 900))) + b"\1\0\0\0") for each in answered)
        before = both.to_client
        step = chance.choice((1, 6, 100, 1 << 20))
        for at in range(0, len(data), step):
            both.responses.feed(data[at : at + step])
        assert both.to_client == before + data
        for each in answered:
            waiting.remove(each)
        assert [*both.pending] == [*waiting]


@pytest.mark.parametrize(("key", "version"), LAST)
def test_a_whole_response_that_may_end_with_addresses_is_changed_as_one_in_pieces(key: int, version: int) -> None:
    chance = random.Random(f"{key} {version}")
    known = api(key)
    assert known is not None
    plain = 0
    for _ in range(60):
        body, _ = make(plan(known.response, version), chance)
        if chance.random() < 0.5:
            put_addresses(body, chance, key)
        frame, out = frame_of(key, version, body), []
        for step in (len(frame), len(frame) - 1, 40):
            both = Both()
            both.pending.append((7, key, version))
            for at in range(0, len(frame), step):
                both.responses.feed(frame[at : at + step])
            out.append(both.to_client)
        assert out[0] == out[1] == out[2]
        plain += out[0] == frame
    assert 0 < plain < 60


@pytest.mark.parametrize(("key", "end"), PLAIN_ENDS.items())
def test_the_plain_ends_of_the_newest_versions_were_looked_at(key: int, end: PlainEnd) -> None:
    known = api(key)
    assert known is not None
    assert known.versions.high == end.last_version, "look at how this version ends without addresses"
    assert end.fits(end.last_version, bytes(8), 20)
    assert not end.fits(end.last_version + 1, bytes(8), 20), "of a schema that a user imports"


@pytest.mark.parametrize("behind", [0, 1])
def test_versions_that_are_unknown_are_looked_at_however_they_end(behind: int) -> None:
    known = api(ApiKey.FETCH)
    assert known is not None
    waiting = PendingRequests()
    waiting.append((1, ApiKey.FETCH, known.versions.high + behind))
    data = response(1, b"r" * 40 + bytes(3))
    frames = OrdinaryFrames(waiting, LookedAt(REWRITTEN, PLAIN_ENDS), answers=True)
    assert frames.end(data, 0, len(data)) == (0 if behind else len(data))


@pytest.mark.parametrize(
    ("version", "before", "acks", "is_noted"),
    [
        (2, b"", 1, True),
        (2, b"", 0, False),
        (8, b"\xff\xff", -1, True),
        (8, b"\xff\xff", 0, False),
        (8, b"\0\0", 1, False),
        (9, b"\0\0", 1, True),
        (9, b"\0\0", 0, False),
        (13, b"\0\1", 1, False),
        (13, b"\1\0", 1, False),
    ],
)
def test_produce_is_noted_where_it_is_surely_acknowledged(
    version: int, before: bytes, acks: int, is_noted: bool
) -> None:
    frame = request(4, api_key=0, version=version, body=before + struct.pack(">h", acks))
    for size in (len(frame), len(frame) - 1):
        waiting = PendingRequests()
        frames = OrdinaryFrames(waiting, LookedAt(LOOKED_AT), answers=False)
        is_whole = size == len(frame)
        assert frames.end(frame, 0, size) == (size if is_noted and is_whole else 0)


@pytest.mark.parametrize(
    ("data", "end", "left"),
    [
        (asking(1, 12) * 3, 36, 0),
        (asking(1, 12) + asking(2, 12)[:11], 12, 0),
        (asking(1, 12) + struct.pack(">ihhi", 100, 12, 0, 2), 24, 92),
        (asking(1, 12) + struct.pack(">ihhi", 7, 12, 0, 2), 12, 0),
        (asking(1, 12) + struct.pack(">ihhi", -1, 12, 0, 2), 12, 0),
        (asking(1, 12) + asking(2, 0), 12, 0),
        (asking(1, 12) + asking(2, 3, 4), 24, 0),
        (asking(1, 12) + asking(2, 3, 5), 12, 0),
        (asking(1, 4) + asking(2, -1, 5), 24, 0),
        (asking(1, 0, NEGATIVE - (1 << 16)), 0, 0),
    ],
)
def test_requests_that_somebody_has_to_look_at_are_left(data: bytes, end: int, left: int) -> None:
    waiting = PendingRequests()
    frames = OrdinaryFrames(waiting, LookedAt(LOOKED_AT), answers=False)
    assert frames.end(data, 0, len(data)) == end
    assert len([*waiting]) == end // 12
    after = bytes(left) + asking(9, 12)
    assert frames.end(after, 0, len(after)) == len(after)


@pytest.mark.parametrize(
    ("key", "data", "end"),
    [
        (12, response(1), 16),
        (12, response(1)[:7], 0),
        (12, struct.pack(">ii", 3, 1), 0),
        (12, response(2), 0),
        (12, response(1) + response(1), 16),
        (3, response(1), 0),
    ],
)
def test_responses_that_somebody_has_to_look_at_are_left(key: int, data: bytes, end: int) -> None:
    waiting = PendingRequests()
    waiting.append((1, key, 5))
    assert OrdinaryFrames(waiting, LookedAt(LOOKED_AT), answers=True).end(data, 0, len(data)) == end
    assert len([*waiting]) == (end == 0)


def test_a_view_is_read_where_it_is_and_not_behind_its_end() -> None:
    memory = memoryview(bytearray(b"x" * 5 + asking(7, 12) + asking(8, 12)))
    waiting = PendingRequests()
    frames = OrdinaryFrames(waiting, LookedAt(LOOKED_AT), answers=False)
    assert frames.end(memory[5:28], 0, 23) == 12
    assert [*waiting] == [(7, 12, 0)]


def test_the_oldest_of_equal_ids_is_taken_wherever_its_bytes_come_again() -> None:
    waiting = PendingRequests()
    asked = [(0x0102_0304, 0x0304, 0x0102), (0x0304_0102, 0x0102, 0x0304), (5, 1, 2), (0x0304_0102, 7, 8), (-1, 3, 4)]
    for each in asked:
        waiting.append(each)
    for left, taken in ((4, asked[1]), (3, asked[3]), (2, asked[4]), (1, asked[0]), (0, asked[2])):
        assert waiting.take(taken[0]) == taken
        assert len([*waiting]) == left
    assert waiting.take(5) is None


@pytest.mark.long
def test_very_many_requests_may_be_answered_in_any_order() -> None:
    waiting = PendingRequests()
    for number in range(20_000):
        waiting.append((number, 12, 4))
    assert [waiting.take(number) for number in reversed(range(20_000))][-1] == (0, 12, 4)
    assert not [*waiting]


@pytest.mark.long
def test_the_oldest_of_very_many_requests_are_forgotten() -> None:
    both = Both()
    both.ask(b"".join(asking(number, 12) for number in range(MOST_WAITING + 3)))
    assert both.waiting == [*range(3, MOST_WAITING + 3)]
    both.responses.feed(response(3))
    assert both.waiting[:2] == [4, 5]
