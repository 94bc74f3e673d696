"""When rules fire: the same in each run."""

import pytest

from dissector.proxy_server.faults.rules import read_rule
from dissector.proxy_server.faults.triggers import RunningTriggers

SECOND = 10**9


def fired(said: str, count: int, step_ns: int = 0) -> list[int]:
    """Which of so many matches a rule fires at, counted from 1."""
    running = RunningTriggers(read_rule(f"drop{said}").triggers)
    return [number for number in range(1, count + 1) if running.admit(number * step_ns)]


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("", list(range(1, 13))),
        (", always", list(range(1, 13))),
        (", first 3", [1, 2, 3]),
        (", after 10", [11, 12]),
        (", every 5", [5, 10]),
        (", after 2, first 3", [3, 4, 5]),
        (", first 3, after 2", [3]),
        (", every 3, first 2", [3, 6]),
        (", first 3, every 3", [3]),
    ],
)
def test_by_number(said: str, numbers: list[int]) -> None:
    assert fired(said, 12) == numbers


def test_for_a_time_that_begins_with_the_first_match() -> None:
    assert fired(", for 3s", 9, SECOND) == [1, 2, 3]
    assert fired(", after 2, for 3s", 9, SECOND) == [3, 4, 5]


def test_by_chance_that_repeats() -> None:
    found = fired(", probability 0.1 seed 7", 10_000)
    assert found == fired(", probability 0.1 seed 7", 10_000) != fired(", probability 0.1 seed 8", 10_000)
    assert 900 < len(found) < 1_100
    assert len(fired(", probability 1", 50)) == 50


def test_a_rule_is_over_when_it_will_never_fire_again() -> None:
    for said, over_after in ((", first 2", 2), (", after 1, first 2", 3), (", for 2s", 3), (", after 9", 99)):
        running = RunningTriggers(read_rule(f"drop{said}").triggers)
        states = []
        for number in range(1, 6):
            running.admit(number * SECOND)
            states.append(running.is_over(number * SECOND))
        assert states == [number >= over_after for number in range(1, 6)], said
