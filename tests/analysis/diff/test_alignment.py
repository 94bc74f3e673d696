"""Alignment of two sequences: valid matches, in order, as long as possible."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dissector.analysis.diff import alignment
from dissector.analysis.diff.alignment import align, out_of_order

SEQUENCES = st.lists(st.sampled_from("abcdefgh"), max_size=40)


def longest(a: list[str], b: list[str]) -> int:
    """The length of a longest common subsequence, the slow way."""
    row = [0] * (len(b) + 1)
    for one in a:
        before = row[:]
        for j, other in enumerate(b):
            row[j + 1] = before[j] + 1 if one == other else max(row[j], before[j + 1])
    return row[-1]


def is_ascending(numbers: list[int]) -> bool:
    return all(low < high for low, high in pairwise(numbers))


@given(SEQUENCES, SEQUENCES)
def test_matches_have_equal_keys_and_are_in_order(a: list[str], b: list[str]) -> None:
    matches = align(a, b)
    assert all(a[i] == b[j] for i, j in matches)
    assert is_ascending([i for i, _ in matches])
    assert is_ascending([j for _, j in matches])


@given(SEQUENCES)
def test_a_sequence_matches_itself_completely(a: list[str]) -> None:
    assert align(a, a) == [(n, n) for n in range(len(a))]
    assert out_of_order(a, a, align(a, a)) == []


@given(SEQUENCES, st.sets(st.integers(0, 39)))
def test_removed_elements_leave_the_others_matched(a: list[str], gone: set[int]) -> None:
    b = [key for n, key in enumerate(a) if n not in gone]
    assert len(align(a, b)) == len(b)


@given(SEQUENCES, SEQUENCES)
def test_short_sequences_get_a_longest_common_subsequence(a: list[str], b: list[str]) -> None:
    assert len(align(a, b)) == longest(a, b)


def test_long_sequences_are_matched_around_unique_elements() -> None:
    a = [n % 7 if n % 10 else f"once {n}" for n in range(3_000)]
    b = [key for n, key in enumerate(a) if n % 13]
    assert len(align(a, b)) == len(b)


@given(SEQUENCES, SEQUENCES)
def test_out_of_order_elements_are_those_of_both_sides_without_a_match(a: list[str], b: list[str]) -> None:
    matches = align(a, b)
    moved = out_of_order(a, b, matches)
    assert all(a[i] == b[j] for i, j in moved)
    for column in (0, 1):
        matched = [pair[column] for pair in (*matches, *moved)]
        assert len(matched) == len(set(matched))
    unmatched_a = [key for n, key in enumerate(a) if n not in {i for i, _ in (*matches, *moved)}]
    unmatched_b = [key for n, key in enumerate(b) if n not in {j for _, j in (*matches, *moved)}]
    assert not set(unmatched_a) & set(unmatched_b)


@given(SEQUENCES, SEQUENCES)
def test_long_stretches_are_matched_key_by_key(a: list[str], b: list[str]) -> None:
    matches = alignment._nth_with_nth(a, b)
    assert all(a[i] == b[j] for i, j in matches)
    assert is_ascending([i for i, _ in matches])
    assert is_ascending([j for _, j in matches])
    assert matches or not set(a) & set(b)


def test_the_work_on_long_cycles_is_bounded() -> None:
    begin, add, end = "begin", "add", "end"
    a, b = [begin, add, end] * 20_000, [begin, add, add, end] * 20_000
    assert len(align(a, b)) >= len(a) // 2
