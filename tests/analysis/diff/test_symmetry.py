"""Swapping the sides swaps their texts, and nothing else."""

import re
from collections import Counter

import pytest

from dissector.analysis.diff import DiffReason, DiffResult, PairVerdict
from dissector.analysis.diff.group_consequences import FETCHED_OFFSETS
from tests.analysis.diff.editing import bundled, compared

PAIRS = (
    ("compare-java-1", "compare-librdkafka-1"),
    ("compare-kafka-python-1", "compare-aiokafka-1"),
    ("java-classic", "java-kip848"),
    ("franz-go", "sarama-2.3.0"),
)
SWAPPED = {PairVerdict.ONLY_A: PairVerdict.ONLY_B, PairVerdict.ONLY_B: PairVerdict.ONLY_A}


def entries(comparison: DiffResult, *, swapped: bool) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for e in comparison.entries:
        text = e.explanation
        text = text.replace("{a}", "{x}").replace("{b}", "{a}").replace("{x}", "{b}") if swapped else text
        text = re.sub(r"([\w.-]+)/([\w.-]+)", r"\2/\1", text) if swapped else text  # names that are matched
        sides = ((e.a, e.count_a, e.row_a), (e.b, e.count_b, e.row_b))
        settings = frozenset(e.settings)
        found[
            e.api, e.part, e.path, e.reason, sides[::-1] if swapped else sides, frozenset(text.split("; ")), settings
        ] += 1
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_swapping_the_sides_swaps_the_entries(one: str, other: str) -> None:
    there, back = compared(bundled(one), bundled(other)), compared(bundled(other), bundled(one))
    assert entries(there, swapped=False) == entries(back, swapped=True)
    verdicts = Counter(pair.verdict for pair in there.pairs)
    assert verdicts == Counter(SWAPPED.get(pair.verdict, pair.verdict) for pair in back.pairs)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_every_exchange_is_in_one_pair(one: str, other: str) -> None:
    comparison = compared(bundled(one), bundled(other))
    for rows, side in (
        ([pair.a for pair in comparison.pairs if pair.a is not None], comparison.a),
        ([pair.b for pair in comparison.pairs if pair.b is not None], comparison.b),
    ):
        assert len(rows) == len(set(rows)) == side.exchanges


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_differences_of_a_pair_have_an_entry(one: str, other: str) -> None:
    comparison = compared(bundled(one), bundled(other))
    reasons = {(entry.part, entry.reason) for entry in comparison.entries}
    follow_version = any("(since v" in entry.explanation for entry in comparison.entries)
    if follow_version or ("", DiffReason.VERSION) in reasons:  # lists the fields that depend on it
        reasons.add(("request", DiffReason.VERSION))
    shown = [each for pair in comparison.pairs for each in comparison.differences(pair)]
    assert shown
    for each in shown:
        assert each.value_a != each.value_b
        assert each.path_a or each.path_b
    of_protocol = [path for api, part, path in FETCHED_OFFSETS if part == "request"]  # its entry stands for them
    listed = {(each.part, each.reason) for each in shown if each.part == "request" and each.path not in of_protocol}
    assert listed <= reasons
