"""Damaged captures are compared like all others: without an exception, and with every exchange in a pair."""

import random
from collections import Counter
from pathlib import Path

import pytest

from dissector.analysis.diff import Reason
from dissector.analysis.diff.fields import compare_fields
from dissector.analysis.diff.gathering import Facts
from dissector.analysis.diff.names import Names
from dissector.analysis.diff.rendering import text
from dissector.analysis.diff.report import compared as report
from tests.analysis.diff.editing import bundled, compared

WHOLE = Path(bundled("compare-java-1")).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_flipped_bytes_never_stop_a_comparison(tmp_path: Path, seed: int) -> None:
    chance, data = random.Random(seed), bytearray(WHOLE)
    for _ in range(chance.randint(1, 300)):
        data[chance.randrange(400, len(data))] ^= 1 << chance.randrange(8)
    path = tmp_path / "damaged.pcapng"
    path.write_bytes(data)
    comparison = compared(bundled("compare-java-1"), str(path))
    rows = [pair.b for pair in comparison.pairs if pair.b is not None]
    assert len(rows) == len(set(rows)) == comparison.b.exchanges
    assert list(text(report(comparison)))
    for pair in comparison.pairs:
        comparison.differences(pair)


def test_a_structure_that_is_null_on_one_side_is_a_difference() -> None:
    null, there = Facts(), Facts()
    null.fields[("request", ("cursor",))] = Counter({None: 1})
    there.fields[("request", ("cursor", "topic_name"))] = Counter({"orders": 1})
    for facts in (null, there):
        facts.first = dict.fromkeys(facts.fields, 0)
        facts.versions.update([0])
    found = list(compare_fields("DescribeTopicPartitions", null, there, Names({}, {})))
    assert [(each.path, each.reason, each.a, each.b) for each in found] == [
        (("cursor",), Reason.ONLY_HERE, "null", ""),
        (("cursor", "topic_name"), Reason.ONLY_HERE, "", "orders"),
    ]
