"""Slow exchanges, compared with a naive computation."""

from math import ceil

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.slow_exchanges import MIN_EXCHANGES, _limits, slow_rows
from dissector.capture_session import Capture
from tests.conftest import PCAPS


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50)), max_size=6 * MIN_EXCHANGES))
def test_the_limit_is_the_99th_percentile_of_the_group(found: list[tuple[int, int]]) -> None:
    group, latency = (np.array([each[n] for each in found], np.int64) for n in (0, 1))
    wanted = []
    for number, _ in found:
        like = sorted(value for other, value in found if other == number)
        wanted.append(like[ceil(len(like) * 0.99) - 1] if len(like) >= MIN_EXCHANGES else -1)
    assert _limits(group, latency).tolist() == wanted


def test_slow_rows_took_longer_than_most_of_their_api() -> None:
    with Capture([str(PCAPS / "librdkafka-pipelined.pcapng")]) as capture:
        exchanges = list(capture.exchanges())
        slow = slow_rows(capture).tolist()
        for number in slow:
            row = exchanges[number].row
            like = [e.row.latency_ns for e in exchanges if e.row.api == row.api and e.row.latency_ns is not None]
            assert row.latency_ns is not None
            assert row.latency_ns > np.median(like)


def test_an_empty_capture_has_no_slow_row() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        assert not len(slow_rows(capture))
