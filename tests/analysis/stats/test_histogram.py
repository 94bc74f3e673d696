"""Percentiles from buckets, compared with percentiles from a sorted list."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.stats.histogram import RELATIVE_ERROR, Histogram

durations = st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**53)), min_size=1, max_size=60)


def made(values: list[int]) -> Histogram:
    return Histogram.of(np.array(values, np.int64))


@given(durations, st.floats(0, 100))
def test_a_percentile_is_within_the_relative_error_of_the_value_of_that_rank(values: list[int], percent: float) -> None:
    exact = sorted(values)[max(1, math.ceil(percent * len(values) / 100)) - 1]
    found = made(values).percentile(percent)
    assert found is not None
    assert abs(found - exact) <= RELATIVE_ERROR * exact


@given(durations)
def test_the_smallest_and_the_largest_duration_are_exact(values: list[int]) -> None:
    histogram = made(values)
    assert (histogram.least, histogram.most, histogram.count) == (min(values), max(values), len(values))


@given(durations)
def test_adding_one_by_one_equals_adding_all_at_once(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.merge(made([value]))
    assert histogram == made(values)


@given(durations, durations, durations)
def test_merging_is_addition(one: list[int], two: list[int], three: list[int]) -> None:
    left = made(one)
    left.merge(made(two))
    left.merge(made(three))
    right = made(two)
    right.merge(made(three))
    right.merge(made(one))
    assert left == right == made(one + two + three)


def test_an_empty_histogram_has_no_percentile_and_negative_durations_count_as_zero() -> None:
    assert Histogram().percentile(50) is None
    assert made([-5]).percentile(50) == 0
