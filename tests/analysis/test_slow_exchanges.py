"""Slow exchanges, compared with a naive computation."""

from math import ceil
from types import SimpleNamespace
from typing import cast
from unittest.mock import MagicMock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.slow_exchanges import MIN_EXCHANGES, _limits, slow_rows
from dissector.capture_session import Capture
from tests.cases import cases
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


def as_capture(api_keys: list[int], connections: list[int], latencies: list[int]) -> Capture:
    """What is asked of a capture whose exchanges have these columns; a latency of -1 is none."""
    columns = SimpleNamespace(
        api_key=np.array(api_keys, np.int64), connection=np.array(connections, np.int64),
        latency_ns=np.array(latencies, np.int64), has_latency=np.array(latencies, np.int64) >= 0,
    )  # fmt: skip
    index = SimpleNamespace(numbers=lambda _: columns)
    return cast(Capture, MagicMock(__len__=lambda _: len(latencies), index=index))


@cases(("others", "found"), [(MIN_EXCHANGES - 2, []), (MIN_EXCHANGES - 1, [1])])
def test_an_exchange_is_slow_only_among_enough_of_its_api(others: int, found: list[int]) -> None:
    latencies = [5, 900, *[5] * (others - 1), -1]
    assert slow_rows(as_capture([3] * (others + 2), [0] * (others + 2), latencies)).tolist() == found


def test_what_takes_as_long_as_the_99th_percentile_is_not_slow() -> None:
    latencies = [7] * 10 + [5] * (MIN_EXCHANGES - 10)
    assert not len(slow_rows(as_capture([3] * MIN_EXCHANGES, [0] * MIN_EXCHANGES, latencies)))
    latencies[3] = 8
    assert slow_rows(as_capture([3] * MIN_EXCHANGES, [0] * MIN_EXCHANGES, latencies)).tolist() == [3]


def test_a_connection_with_enough_exchanges_is_compared_with_itself() -> None:
    slow_connection, quick = [50] * MIN_EXCHANGES, [0] * (100 * MIN_EXCHANGES)
    of = [1] * len(slow_connection) + [2] * len(quick)
    assert not len(slow_rows(as_capture([3] * len(of), of, slow_connection + quick)))
    few = [1] * (MIN_EXCHANGES - 1) + [2] * len(quick)
    found = slow_rows(as_capture([3] * len(few), few, slow_connection[1:] + quick))
    assert found.tolist() == list(range(MIN_EXCHANGES - 1))
