"""Columns hold what was put into them, in memory or in a file; equal rows are found."""

import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.core import columns
from dissector.core.arrays import Int64
from dissector.core.columns import Column, ValueColumn, distinct, is_in, unique
from dissector.core.process_memory import infrequent_collection, trim

steps = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), st.lists(st.integers(0, 2**31 - 1), max_size=3000)),
        st.tuples(st.just("grow"), st.integers(0, 9000)),
        st.tuples(st.just("release_pages"), st.none()),
    ),
    max_size=12,
)


@pytest.fixture(params=["memory", "file", "no room"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where columns live."""
    if request.param != "memory":
        monkeypatch.setattr(columns, "_FILE_BYTES", 1 << 12)
        monkeypatch.setattr(columns, "_GROWTH_BYTES", 1 << 12)
    if request.param == "no room":
        monkeypatch.setattr(tempfile, "mkstemp", refused)
    return str(request.param)


def refused() -> tuple[int, str]:
    raise OSError(28, "No space left on device")


@given(steps=steps, default=st.sampled_from([0, -1, 7]), dtype=st.sampled_from([np.int64, np.int32]))
def test_a_column_has_the_values_appended_to_it(
    place: str, steps: list[tuple[str, Any]], default: int, dtype: type
) -> None:
    column, held = Column(dtype, default), list[int]()
    for step, value in steps:
        if step == "extend":
            column.extend(value)
            held += value
        elif step == "grow":
            column.grow(value)
            held += [default] * (value - len(held))
        else:
            column.release_pages()
        assert len(column) == len(held)
        assert column.values.dtype == dtype
    assert column.values.tolist() == held


def test_what_is_written_through_a_view_stays(place: str) -> None:
    column = Column(np.int64)
    column.grow(5000)
    column.values[1000:2000] = 9
    old = column.values
    column.release_pages()
    column.grow(500_000)
    assert old[999:2001].tolist() == [0, *[9] * 1000, 0]
    assert column.values[999:2001].tolist() == [0, *[9] * 1000, 0]
    assert int(column.values.sum()) == 9000


def test_a_large_column_keeps_few_pages_resident() -> None:
    column = Column(np.int64)
    before = resident()
    for _ in range(64):
        column.extend(np.arange(1 << 17))  # 64 MiB in all
    assert int(column.values[-1]) == (1 << 17) - 1
    assert resident() - before < 16 << 20


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@given(rows=st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=60))
def test_the_first_of_equal_rows_is_returned(rows: list[tuple[int, int, int]]) -> None:
    firsts, which = distinct(np.array(rows, np.uint64))
    different = list(dict.fromkeys(rows))
    assert firsts.tolist() == [rows.index(row) for row in different]
    assert which.tolist() == [different.index(row) for row in rows]


def test_rows_with_equal_sums_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_FACTORS", np.ones(64, np.uint64))
    rows = [(1, 2), (2, 1), (0, 3), (2, 1), (1, 2)]
    firsts, which = distinct(np.array(rows, np.uint64))
    assert firsts.tolist() == [0, 1, 2]
    assert which.tolist() == [0, 1, 2, 1, 0]


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)))
def test_values_come_once_each_in_order(values: list[int]) -> None:
    assert unique(np.array(values, np.int64)).tolist() == sorted(set(values))


@given(st.lists(st.integers(1, 2**31 - 1), max_size=5000), st.sets(st.integers(0, 4999)))
def test_a_column_pickled_has_the_rows_that_were_kept(place: str, values: list[int], rows: set[int]) -> None:
    column = Column(np.int64)
    column.extend(values)
    kept = np.array(sorted(row for row in rows if row < len(values)), np.int64)
    column.keep(kept)
    again = pickle.loads(pickle.dumps(column))
    expected = np.zeros(len(values), np.int64)
    expected[kept] = np.array(values, np.int64)[kept]
    assert again.values.tolist() == expected.tolist()
    again.extend([5] * 600)
    again.grow(len(again) + 3)
    assert again.values.tolist() == [*expected.tolist(), *[5] * 600, 0, 0, 0]


def test_rows_that_are_gone_take_no_room() -> None:
    column = Column(np.int64)
    column.grow(3_000_000)
    column.values[2_000_000] = 7
    column.keep(np.array([2_000_000]))
    data = pickle.dumps(column)
    assert len(data) < 1_000
    again = pickle.loads(data)
    assert again.values[2_000_000] == 7
    assert os.fstat(again._file).st_blocks * 512 < 1 << 20 < os.fstat(again._file).st_size


@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-5, 5)))
def test_values_among_others_are_found(values: list[int], others: list[int]) -> None:
    found = is_in(np.array(values, np.int64), np.array(others, np.int64))
    assert found.tolist() == [each in others for each in values]


def test_values_of_rows_are_kept_by_number() -> None:
    column: ValueColumn[str] = ValueColumn()
    one, other, again = (column.number(each, each) for each in ("one", "other", "one"))
    assert again == one != other
    column.set(np.array([3, 7, 5_000, 7, 7, 4]), np.array([one, other, other, one, 0, 0], np.int32))
    assert [column.get(row) for row in (3, 7, 5_000, 4, 5_001, -1)] == ["one", "one", "other", None, None, None]
    column.keep(np.array([7, 9_000]))
    assert [column.get(row) for row in (3, 7, 5_000)] == [None, "one", None]


def test_zeros_of_rows_that_are_not_kept_take_no_disk() -> None:
    column = Column(np.int64)
    column.grow(1 << 20)
    column.values[:] = 7
    kept = column.with_only(np.array([3, 1 << 19]), np.array([5, 6]))
    assert len(kept) == len(column)
    assert (kept.values[[3, 4, 1 << 19, -1]]).tolist() == [5, 0, 6, 0]
    blocks = [os.fstat(each._file).st_blocks * 512 for each in (column, kept) if each._file is not None]
    assert len(blocks) == 2
    assert blocks[0] >= 8 << 20
    assert blocks[1] <= 64 << 10


def test_pages_of_columns_are_released_with_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.core.process_memory._BETWEEN", 0)
    columns_filled = [Column(np.int64) for _ in range(64)]
    with infrequent_collection():
        before = resident()
        for column in columns_filled:
            column.grow(1 << 16)  # half a megabyte, too little for any of them to release its pages by itself
            trim()
        assert resident() - before < 20 << 20


def test_pages_of_views_are_released_too() -> None:
    def filled() -> Int64:
        column = Column(np.int64)
        column.grow(1 << 16)
        return column.values

    with infrequent_collection():
        before = resident()
        views = [filled() for _ in range(64)]
        columns.release_all()
        assert resident() - before < 20 << 20
    assert not any(map(np.any, views))
