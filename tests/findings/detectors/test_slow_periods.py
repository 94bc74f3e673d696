"""What was slow at one time is one finding; what was slow at different times, or on different brokers, is not."""

from pathlib import Path

from tests.findings.conversations import Talk, codes, fetch, found, heartbeat


def quick(number: int, *slow: tuple[float, float]) -> Talk:
    """A connection with 40 quick exchanges, and slow ones: when, and how long, in milliseconds."""
    talk = Talk(number)
    for n in range(40):
        heartbeat(talk, 10 * n + number, took=2)
    for at, took in slow:
        heartbeat(talk, at, took=took)
    return talk


def test_connections_that_are_slow_together_are_one_finding(tmp_path: Path) -> None:
    [(_, finding)] = found(tmp_path, quick(1, (1_000, 800)), quick(2, (1_010, 780)), quick(3, (1_020, 790)))
    assert finding.code == "slow"
    assert finding.message.endswith(
        "2 more were slow within these 810.0 ms, on 3 connections: the broker may have stalled"
    )


def test_a_late_fetch_is_part_of_it(tmp_path: Path) -> None:
    fetching = Talk(4)
    fetch(fetching, 900, 1, 10, took=900, wait=100)
    [(_, finding)] = found(tmp_path, quick(1, (1_000, 800)), fetching)
    assert finding.code == "slow"
    assert " 1 more was slow within " in finding.message


def test_a_long_poll_is_not(tmp_path: Path) -> None:
    fetching = Talk(4)
    fetch(fetching, 900, 1, 10, took=900, wait=1_000)
    [(_, finding)] = found(tmp_path, quick(1, (1_000, 800)), fetching)
    assert finding.message.endswith("until the broker answered")


def test_at_different_times_they_are_several(tmp_path: Path) -> None:
    assert [code for _, code in codes(tmp_path, quick(1, (1_000, 800)), quick(2, (2_000, 800)))] == ["slow", "slow"]


def test_a_short_overlap_is_chance(tmp_path: Path) -> None:
    """Half of the longer one is the least."""
    for begin, several in ((1_390, False), (1_410, True)):
        count = len(codes(tmp_path, quick(1, (1_000, 800)), quick(2, (begin, 800))))
        assert count == (2 if several else 1)
