"""The rows of the list, against sets and lists that compute the same slowly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.row_view import RowView

COUNT = 40
CHOSEN = st.none() | st.sets(st.integers(0, COUNT - 1))


def _rows(numbers: set[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(sorted(numbers), np.int64)


def _view(
    kept: set[int] | None, marked: set[int] | None, order: list[int] | None, count: int = COUNT, first: int = 0
) -> RowView:
    view = RowView()
    view.grow(count)
    view.begin(first)
    view.keep(None if kept is None else _rows(kept))
    view.mark(None if marked is None else _rows(marked))
    view.sort(None if order is None else np.array(order, np.int64))
    return view


@given(CHOSEN, CHOSEN, st.none() | st.permutations(range(COUNT)), st.just(0) | st.integers(0, COUNT))
def test_it_shows_matching_and_marked_rows_in_the_given_order(
    kept: set[int] | None, marked: set[int] | None, order: list[int] | None, first: int
) -> None:
    view = _view(kept, marked, order, first=first)
    chosen = [n for n in (order or range(COUNT)) if (kept is None or n in kept) and (marked is None or n in marked)]
    wanted = [n for n in chosen if n >= first]
    assert [view.number(at) for at in range(len(view))] == wanted
    assert view.rows.tolist() == sorted(wanted)
    assert view.is_filtered == (kept is not None or marked is not None or first > 0)
    for number in range(-1, COUNT + 1):
        assert view.position(number) == (wanted.index(number) if number in wanted else None)
        near = view.nearest(number)
        assert (near is None) == (not wanted)
        if near is not None:
            assert abs(view.number(near) - number) == min(abs(each - number) for each in wanted)


@given(st.sets(st.integers(0, COUNT - 1)), st.permutations(range(COUNT)) | st.none(), st.integers(1, 9))
def test_rows_that_a_filter_finds_step_by_step_are_those_it_finds_at_once(
    kept: set[int], order: list[int] | None, step: int
) -> None:
    view = _view(set(), None, order)
    rows = _rows(kept)
    for start in range(0, len(rows), step):
        view.add(rows[start : start + step])
    whole = _view(kept, None, order)
    assert [view.number(at) for at in range(len(view))] == [whole.number(at) for at in range(len(whole))]


def test_a_row_matched_again_takes_its_place() -> None:
    view = _view({3, 9}, None, None)
    view.add(_rows({5, 12}))
    assert [view.number(at) for at in range(len(view))] == [3, 5, 9, 12]


@pytest.mark.parametrize("order", [None, [2, 0, 1]])
def test_rows_that_come_later_stand_behind(order: list[int] | None) -> None:
    view = _view(None, None, order, count=3)
    view.grow(5)
    assert [view.number(at) for at in range(5)] == [*(order or [0, 1, 2]), 3, 4]
    assert view.position(4) == 4


def test_a_filter_hides_new_rows_until_they_are_matched() -> None:
    view = _view({1}, None, None, count=3)
    view.grow(10)
    assert len(view) == 1
    view.keep(None)
    assert len(view) == 10


def test_a_filter_may_find_rows_that_came_since_the_list_grew() -> None:
    view = _view({1, 5}, None, [2, 1, 0], count=3)
    assert [view.position(number) for number in (1, 5, 2)] == [0, 1, None]
    assert view.nearest(0) == 0


@pytest.mark.parametrize("count", [3, 6])
def test_rows_that_came_since_others_were_sorted_may_get_smaller_numbers(count: int) -> None:
    view = _view(None, None, [2, 0, 1], count=count)
    new = np.array([0, 2, 5, 1, 3, 4])
    view.renumber(lambda rows: new[rows])
    view.grow(7)
    assert [view.number(at) for at in range(len(view))] == [5, 0, 2, 1, 3, 4, 6]
    assert view.position(4) == 5
