"""Partners on several connections, with repeated ids, losses and early responses, held against the rules in words."""

import random
from collections import deque

import numpy as np
import pytest
from hypothesis import given

from dissector.index.pairing import Pairing, PendingFrames, key_of
from tests.cases import cases
from tests.traffic import seeds

Frame = tuple[int, int, int]
"""Connection, correlation id, packet."""
Loss = tuple[int, int, bool]
"""Connection, packet, whether of the client's direction."""
WHOLE = (3, 1 << 20)
"""Connections that are in the capture from their SYN on."""
CONNECTIONS = (*WHOLE, 4, 5)
IDS = (-1, 0, 7, 8)


def frames(some: list[Frame], first_row: int) -> PendingFrames:
    table = np.array([(c, i, p) for c, i, p in some], np.int64).reshape(-1, 3).T
    return PendingFrames(key_of(table[0], table[1]), first_row + np.arange(len(some)), table[2])


def in_words(requests: list[Frame], responses: list[Frame], losses: list[Loss]) -> set[tuple[int, int]]:
    """Positions of partners."""
    found: set[tuple[int, int]] = set()
    for key in {(connection, number) for connection, number, _ in requests}:
        connection = key[0]
        damaged = min((packet for of, packet, _ in losses if of == connection), default=1 << 40)
        of_server = [packet for of, packet, of_client in losses if of == connection and not of_client]
        asked = sorted((at for at, each in enumerate(requests) if each[:2] == key), key=lambda at: requests[at][2])
        answers = sorted((at for at, each in enumerate(responses) if each[:2] == key), key=lambda at: responses[at][2])

        def follows(asking: int, packet: int, connection: int = connection, damaged: int = damaged) -> bool:
            sent = requests[asking][2]
            return sent < packet or (connection in WHOLE and sent < damaged)

        waiting, skipped = deque(asked), deque[int]()
        for answer in answers:
            packet = responses[answer][2]
            is_repeated = len(asked) > 1 or len(answers) > 1
            if is_repeated and waiting and any(requests[waiting[0]][2] < loss <= packet for loss in of_server):
                while len(waiting) > 1 and requests[waiting[1]][2] < packet:
                    skipped.append(waiting.popleft())
            if waiting and follows(waiting[0], packet):
                found.add((waiting.popleft(), answer))
            elif skipped and requests[skipped[0]][2] < packet:
                found.add((skipped.popleft(), answer))
    return found


def any_frames(chance: random.Random, count: int) -> list[Frame]:
    return [(chance.choice(CONNECTIONS), chance.choice(IDS), chance.randrange(9)) for _ in range(count)]


@pytest.mark.long
@given(chance=seeds)
def test_partners_are_those_of_the_rules(chance: random.Random) -> None:
    for _ in range(60):
        count = chance.randint(1, 16)
        requests, responses = (any_frames(chance, chance.randrange(count + 1)) for _ in range(2))
        places = [(chance.choice(CONNECTIONS), chance.randrange(10)) for _ in range(chance.randrange(4))]
        losses = [(*place, chance.random() < 0.5) for place in places]
        expected = in_words(requests, responses, losses)
        pairing = Pairing(1000, WHOLE.__contains__)
        pairing.lost(*(np.array([each[n] for each in losses]) for n in range(3)))
        rows, found = pairing.pair(frames(requests, 100), frames(responses, 500))
        assert {(a - 100, b - 500) for a, b in zip(rows.tolist(), found.tolist(), strict=True)} == expected
        assert len(rows) == len(expected)
        early = [1 for asked, answer in expected if responses[answer][2] < requests[asked][2]]
        assert pairing.early_responses == len(early)
        waiting = [at for at in range(len(requests)) if at not in {asked for asked, _ in expected}]
        orphans = [at for at in range(len(responses)) if at not in {answer for _, answer in expected}]
        assert pairing.responses.tolist() == [500 + at for at in orphans]
        of_rows = np.arange(1000, 2000)
        assert pairing.pending(of_rows).tolist() == [1100 + at for at in waiting] + [500 + at for at in orphans]
        for connection in CONNECTIONS:
            ids = [requests[at][1] for at in waiting if requests[at][0] == connection]
            outstanding = pairing.outstanding(connection)
            oldest = {requests[at][1]: requests[at][2] for at in waiting[::-1] if requests[at][0] == connection}
            assert outstanding == type(outstanding)(oldest, len(ids) == len(oldest))
        check_early(pairing, [requests[at] for at in waiting], [responses[at] for at in orphans])
        ending = chance.choice(CONNECTIONS)
        assert pairing.end(np.array([ending])).tolist() == [500 + at for at in orphans if responses[at][0] == ending]
        left = [500 + at for at in orphans if responses[at][0] != ending]
        assert pairing.flush().tolist() == left
        assert not len(pairing.pending(of_rows))


def check_early(pairing: Pairing, waiting: list[Frame], orphans: list[Frame]) -> None:
    """Responses before their requests, by ids that wait once on each side."""
    asked, answered = ([each[:2] for each in side] for side in (waiting, orphans))
    once = {each for each in asked if asked.count(each) == answered.count(each) == 1}
    packets = [{each[:2]: each[2] for each in side} for side in (orphans, waiting)]
    early = {each for each in once if packets[0][each] < packets[1][each]}
    for connections in (None, np.array([3, 4])):
        keys, _, _ = pairing.early_pairs(connections)
        expected = {each for each in early if connections is None or each[0] in (3, 4)}
        assert {(key >> 32, (key & 0xFFFFFFFF) - ((key & 0x80000000) << 1)) for key in keys.tolist()} == expected


@cases(("count", "full"), [(5, False), (6, True)])
def test_what_waits_is_bounded_on_each_side_and_the_oldest_are_given_up(count: int, full: bool) -> None:
    for side in (0, 1):
        sides: list[list[Frame]] = [[], []]
        sides[side] = [(4, number, number) for number in range(count)]
        pairing = Pairing(5, lambda _: False)
        pairing.pair(frames(sides[0], 100), frames(sides[1], 500))
        assert pairing.is_full == full
        assert pairing.give_up().tolist() == ([500] if full and side else [])
        first = (100, 500)[side] + full
        assert pairing.pending(np.arange(1000)).tolist() == list(range(first, first + 5))
        assert not pairing.is_full


def test_early_pairs_wait_until_they_are_removed() -> None:
    pairing = Pairing(5, lambda _: False)
    pairing.pair(frames([(4, 1, 9), (4, 2, 9)], 100), frames([(4, 1, 8), (4, 2, 9)], 500))
    _, rows, found = pairing.early_pairs()
    assert (rows.tolist(), found.tolist()) == ([100], [500])
    pairing.remove(rows, found)
    assert pairing.early_responses == 1
    assert pairing.pending(np.arange(1000)).tolist() == [101, 501]
    assert pairing.outstanding(4).packets == {2: 9}
