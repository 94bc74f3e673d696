"""Which splits a task reads."""

import pytest

pytest.importorskip("pyarrow", reason="NOT TESTED with pyarrow: it is not installed")

from hypothesis import given
from hypothesis import strategies as st

from dissector.pipeline.splits import InputSplit, group_splits


def _splits(packets: list[int]) -> list[InputSplit]:
    return [InputSplit((), 0, count, number, is_merged=False) for number, count in enumerate(packets)]


@given(st.lists(st.integers(1, 10**9), max_size=200), st.integers(1, 50))
def test_each_split_is_read_by_one_task_and_no_task_reads_much_more_than_its_share(
    packets: list[int], tasks: int
) -> None:
    splits = _splits(packets)
    found = group_splits(splits, tasks)
    assert [split for some in found for split in some] == splits
    assert len(found) <= tasks + 1
    for some in found:
        assert sum(split.packets for split in some[:-1]) < sum(packets) / tasks


def test_a_large_file_in_ranges_has_a_task_for_each() -> None:
    assert [len(some) for some in group_splits(_splits([1_000] * 16), 32)] == [1] * 16
