"""Partners among requests and responses, with ids that are used more than once and with losses."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.index.pairing import Pairing, PendingFrames, key_of

ASK, ANSWER, LOSS = range(3)
Event = tuple[int, int]
"""What happens with the next packet of the one connection, and its correlation id."""
events = st.lists(st.tuples(st.sampled_from([ASK, ASK, ANSWER, ANSWER, LOSS]), st.integers(0, 2)), max_size=30)


def pending(packets: list[int], ids: list[int]) -> PendingFrames:
    """Rows are called by their packets."""
    at = np.array(packets, np.int64)
    return PendingFrames(key_of(np.zeros(len(at), np.int64), np.array(ids, np.int64)), at, at)


def pairs(some: Sequence[Event], cuts: set[int]) -> set[tuple[int, int]]:
    """Packets of requests and of their responses, paired in pieces."""
    pairing = Pairing(1000, lambda _connection: False)
    found: set[tuple[int, int]] = set()
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(some)), len(some)]
    for low, high in pairwise(edges):
        piece = [(packet, *some[packet]) for packet in range(low, high)]
        lost = np.array([packet for packet, kind, _ in piece if kind == LOSS], np.int64)
        pairing.lost(np.zeros(len(lost), np.int64), lost, np.zeros(len(lost), np.bool_))
        sides = [[each for each in piece if each[1] == kind] for kind in (ASK, ANSWER)]
        requests, answers = pairing.pair(*(pending([e[0] for e in side], [e[2] for e in side]) for side in sides))
        found |= set(zip(requests.tolist(), answers.tolist(), strict=True))
    return found


@given(some=events, cuts=st.sets(st.integers(0, 30)))
def test_pairs_do_not_depend_on_how_frames_were_cut_into_batches(some: list[Event], cuts: set[int]) -> None:
    assert pairs(some, cuts) == pairs(some, set())


def test_after_a_loss_the_newest_request_is_paired_and_then_the_next_in_order() -> None:
    """The first one's response was lost: it is passed over once, and not with each response again."""
    some = [(ASK, 1), (LOSS, 0), (ASK, 1), (ANSWER, 1), (ASK, 1), (ASK, 1), (ANSWER, 1), (ANSWER, 1)]
    for cuts in (set(), {4}, set(range(len(some)))):
        assert pairs(some, cuts) == {(2, 3), (4, 6), (5, 7)}


def test_a_skipped_request_is_paired_when_no_other_waits() -> None:
    some = [(ASK, 1), (ASK, 1), (LOSS, 0), (ANSWER, 1), (ANSWER, 1)]
    for cuts in (set(), {4}):
        assert pairs(some, cuts) == {(1, 3), (0, 4)}
