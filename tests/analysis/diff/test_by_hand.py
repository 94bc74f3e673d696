"""Exchanges that the user matches by hand, and the tree nodes of differences."""

import pytest

from dissector.analysis.diff import ExchangePair, PairVerdict, diff
from dissector.analysis.diff.node_lookup import find_node
from tests.analysis.diff.editing import bundled, compared, side

JAVA, AGAIN, LIBRDKAFKA = (f"compare-{name}" for name in ("java-1", "java-2", "librdkafka-1"))


def numbers(name: str, api: str) -> list[int]:
    capture = side(bundled(name)).capture
    return [n for n in range(len(capture)) if capture.exchange(n).row.api == api]


def test_manually_matched_rows_are_a_pair_and_every_other_row_is_in_one_pair() -> None:
    a, b = side(bundled(JAVA)), side(bundled(LIBRDKAFKA))
    one, other = numbers(JAVA, "Fetch")[0], numbers(LIBRDKAFKA, "Fetch")[5]
    comparison = diff(a, b, rows=((one, other),))
    assert [pair[:2] for pair in comparison.pairs if one == pair.a or other == pair.b] == [(one, other)]
    for n, each in enumerate((a, b)):
        assert sorted(pair[n] for pair in comparison.pairs if pair[n] is not None) == list(range(len(each.capture)))


def test_manually_matched_rows_of_other_subjects_are_compared_field_by_field() -> None:
    a, b = side(bundled(JAVA)), side(bundled(LIBRDKAFKA))
    alone = next(pair.b for pair in diff(a, b).pairs if pair.verdict is PairVerdict.ONLY_B and pair.b is not None
                 and b.capture.exchange(pair.b).row.api == "Metadata")  # fmt: skip
    request_row = numbers(JAVA, "Metadata")[0]
    comparison = diff(a, b, rows=((request_row, alone),))
    pair = ExchangePair(request_row, alone, PairVerdict.DIFFERENT)
    assert pair in comparison.pairs
    assert "topics" in [each.path for each in comparison.differences(pair)]
    [entry] = [
        each for each in comparison.entries if (each.api, each.part, each.path) == ("Metadata", "request", "topics")
    ]
    assert comparison.shows(pair, entry)
    assert [each for each in comparison.pairs if comparison.shows(each, entry)] == [pair]


@pytest.mark.long
def test_a_manual_match_of_a_matching_pair_changes_nothing() -> None:
    a, b = side(bundled(JAVA)), side(bundled(AGAIN))
    pairs = [pair for pair in diff(a, b).pairs if pair.a is not None and pair.b is not None]
    rows = tuple((pair.a, pair.b) for pair in pairs if pair.a is not None and pair.b is not None)
    assert {pair[:2] for pair in diff(a, b, rows=rows).pairs} >= set(rows)


@pytest.mark.slow
@pytest.mark.parametrize("b", ["librdkafka-1", "kafka-python-1", "aiokafka-1"])
def test_a_difference_is_at_the_node_of_its_field(b: str) -> None:
    comparison = compared(bundled(JAVA), bundled(f"compare-{b}"))
    captures = [side(bundled(name)).capture for name in (JAVA, f"compare-{b}")]
    checked = 0
    for pair in comparison.pairs:
        for found in comparison.differences(pair):
            for capture, row, where in zip(captures, pair[:2], (found.where_a, found.where_b), strict=True):
                if where is not None and row is not None:
                    message = getattr(capture.exchange(row), found.part)
                    node = find_node(message, where)
                    assert node is not None
                    named = [step for step in where if isinstance(step, str)][-1]
                    assert named in node.path or named in ("compression", "transactional", "timestamp_type"), node.path
                    checked += 1
    assert checked > 20
