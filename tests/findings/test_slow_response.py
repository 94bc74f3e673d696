"""Slow is what is far from the median and seldom, of what a connection has shown until then: held against the words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.findings.detectors.slow_response import LEAST_NS, LEAST_SEEN, SELDOM, STEPS, TIMES
from dissector.protocol.schema.api_groups import WAITING
from dissector.protocol.schema.api_keys import ApiKey
from tests.conftest import costly
from tests.findings.conversations import MS, Talk, codes, heartbeat

took = st.one_of(st.integers(1, 3), st.sampled_from([30, 45, 49, 50, 51, 60, 200, 600, 5_000]), st.integers(1, 1_000))


def slow(latencies: list[int]) -> list[int]:
    """Which are slow, one after the other, in milliseconds each; where a stall hides none. Those before the thirtieth
    are looked at with it."""
    found = []
    for at in range(len(latencies)):
        known = [_bucket(each) for each in latencies[: max(LEAST_SEEN, at + 1)]]
        mine = known[at]
        median = sorted(known)[(len(known) + 1) // 2 - 1]
        seldom = sum(each >= mine for each in known) * SELDOM <= len(known)
        if len(known) >= LEAST_SEEN and latencies[at] * MS >= LEAST_NS and seldom and mine >= median + _FAR:
            found.append(at)
    return found


def _bucket(latency: int) -> int:
    """An eighth of an octave, exactly: whole powers, and no logarithm."""
    nanoseconds = latency * MS
    return max(bucket for bucket in range(44 * STEPS) if 2**bucket <= nanoseconds**STEPS)


_FAR = min(bucket for bucket in range(100) if 2 ** (2 * bucket + 1) >= TIMES ** (2 * STEPS))
"""The nearest to ten times."""


@pytest.mark.long
@pytest.mark.slow
@costly(15)
@given(latencies=st.lists(took, max_size=150), step=st.integers(1, 200))
def test_each_is_judged_by_those_before_it(tmp_path: Path, latencies: list[int], step: int) -> None:
    talk = Talk()
    at = 0
    for each in latencies:
        heartbeat(talk, at, took=each)
        at += each + 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dissector.findings.framework.examination.STEP", step)
        assert codes(tmp_path, talk) == [(row, "slow") for row in slow(latencies)]


@pytest.mark.parametrize(("others", "expected"), [(28, []), (29, [(3, "slow")])])
def test_early_slow_responses_are_reported_later(tmp_path: Path, others: int, expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    for n in range(others + 1):
        heartbeat(talk, 1_000 * n, took=500 if n == 3 else 2)
    assert codes(tmp_path, talk) == expected


def test_apis_that_wait_on_purpose_are_exempt_and_broker_heartbeats_are_not() -> None:
    assert {ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER} <= WAITING
    assert ApiKey.BROKER_HEARTBEAT not in WAITING
