"""Steps over columns, held to the same in Python."""

from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.core.grouping import begins, by_distinct, cuts, edges, expanded, groups, owners

COUNTS = st.lists(st.integers(0, 5), max_size=30)


@given(COUNTS)
def test_things_of_rows_lie_one_behind_the_other(counts: list[int]) -> None:
    column = np.array(counts, np.int64)
    of = [row for row, count in enumerate(counts) for _ in range(count)]
    assert owners(column).tolist() == of
    assert begins(column).tolist() == [sum(counts[:row]) for row in range(len(counts))]
    assert edges(column).tolist() == [sum(counts[:row]) for row in range(len(counts) + 1)]
    firsts = 10 * np.arange(len(counts))
    assert expanded(firsts, column).tolist() == [10 * row + n for row, count in enumerate(counts) for n in range(count)]


@given(COUNTS, st.integers(1, 7))
def test_parts_are_no_larger_than_allowed_behind_their_first_row(sizes: list[int], most: int) -> None:
    parts = [part.tolist() for part in np.split(np.array(sizes, np.int64), cuts(np.array(sizes, np.int64), most))]
    assert [size for part in parts for size in part] == sizes
    assert all(sum(part[1:]) < most for part in parts)
    assert all(len(part) == 1 or sum(part) > 0 for part in parts[1:])


@given(st.lists(st.integers(-2, 2), max_size=30))
def test_groups_are_the_places_of_equal_keys(keys: list[int]) -> None:
    expected = [list(group) for _, group in groupby(sorted(range(len(keys)), key=keys.__getitem__), keys.__getitem__)]
    assert [each.tolist() for each in groups(np.array(keys, np.int64))] == expected


@given(st.lists(st.integers(-2, 2), max_size=30))
def test_a_function_is_called_once_for_each_value(values: list[int]) -> None:
    called = []

    def square(value: int) -> int:
        called.append(value)
        return value * value

    assert by_distinct(np.array(values, np.int64), square, np.int64).tolist() == [value * value for value in values]
    assert called == sorted(set(values))
