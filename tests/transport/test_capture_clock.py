"""The time of a capture that grows: what is old, held to a computation in words, and to what times may do."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.transport.capture_clock import TICKS, CaptureClock
from tests.cases import cases

MS = 1_000_000
WAIT = TICKS * 100
STEPS = st.sampled_from(
    [0, 0, 1, 7, 60, 99, 100, 101, 800, WAIT, WAIT + 1, 5 * WAIT, -1, -90, -WAIT, -WAIT - 1, -(2**61)]
)


def recent(times: list[int], cuts: list[int], wait_ns: int = WAIT) -> list[int]:
    """For each packet the first one that is not old, in batches between cuts."""
    clock = CaptureClock(wait_ns)
    found = []
    for low, high in pairwise(sorted({0, len(times), *(cut % (len(times) + 1) for cut in cuts)})):
        numbers = np.arange(low, high)
        clock.feed(numbers, np.array(times[low:high], np.int64))
        found += clock.first_recent(numbers).tolist()
    return found


def in_words(times: list[int]) -> list[int]:
    latest, elapsed, ticks = times[0], 0, []
    for time in times:
        if time > latest:
            elapsed += min(time - latest, 2 * WAIT)
        if time > latest or latest - time > WAIT:
            latest = time
        ticks.append(elapsed // (WAIT // TICKS))
    return [next(n for n, tick in enumerate(ticks) if tick >= now - TICKS) for now in ticks]


@given(steps=st.lists(STEPS, min_size=1, max_size=60), cuts=st.lists(st.integers(0, 60), max_size=8))
def test_what_is_old_does_not_depend_on_batches(steps: list[int], cuts: list[int]) -> None:
    times = (1_700_000_000_000_000_000 + np.cumsum(np.array(steps, np.int64))).tolist()
    expected = in_words(times)
    assert recent(times, []) == recent(times, cuts) == recent(times, list(range(60))) == expected
    assert expected == sorted(expected), "the clock never goes back"


@cases(("later_ns", "is_old"), [(WAIT, False), (WAIT + 2 * WAIT // TICKS, True)])
def test_a_packet_is_old_after_the_wait_and_not_before(later_ns: int, is_old: bool) -> None:
    for begin in (0, 1, 99, 250):
        found = recent([5, 5 + begin, 5 + begin + later_ns], [])
        assert (found[-1] > 1) is is_old


def test_one_wrong_time_ahead_does_not_stop_the_clock() -> None:
    times = [n * 100 for n in range(40)]
    times[10] = 2**62
    found = recent(times, [])
    assert found[9] == 0
    assert found[10] > 9, "what waits then has waited long enough"
    assert found[39] == 39 - TICKS


def test_two_clocks_that_differ_by_less_than_the_wait_are_one() -> None:
    times = [n * 100 - (WAIT // 2 if n % 2 else 0) for n in range(80)]
    assert recent(times, [])[78] == 78 - TICKS


def test_its_memory_is_that_of_the_wait() -> None:
    clock = CaptureClock(WAIT)
    for n in range(2_000):
        clock.feed(np.array([n]), np.array([n * (100 if n % 7 else 3_000)]))
        assert len(clock._ticks) <= TICKS + 2
