"""Damaged captures are compared like all others: without an exception, every exchange in a pair."""

import random
from collections import Counter
from pathlib import Path

import pytest

from dissector.analysis.diff import DiffReason
from dissector.analysis.diff.field_comparison import compare_fields
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.name_uses import NameUses
from dissector.analysis.diff.report import diff_report as report
from dissector.analysis.rendering import render_text
from tests.analysis.diff.editing import bundled, compared
from tests.conftest import some_of

WHOLE = Path(bundled("compare-java-1")).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("seed", some_of(range(12), *range(4)))
def test_flipped_bytes_never_stop_a_comparison(tmp_path: Path, seed: int) -> None:
    chance, data = random.Random(seed), bytearray(WHOLE)
    for _ in range(chance.randint(1, 300)):
        data[chance.randrange(400, len(data))] ^= 1 << chance.randrange(8)
    path = tmp_path / "damaged.pcapng"
    path.write_bytes(data)
    comparison = compared(bundled("compare-java-1"), str(path))
    rows = [pair.b for pair in comparison.pairs if pair.b is not None]
    assert len(rows) == len(set(rows)) == comparison.b.exchanges
    assert list(render_text(report(comparison)))
    for pair in comparison.pairs:
        comparison.differences(pair)


def test_a_structure_that_is_null_on_one_side_is_a_difference() -> None:
    null, present = KeyProfile(), KeyProfile()
    null.fields[("request", ("cursor",))] = Counter({None: 1})
    present.fields[("request", ("cursor", "topic_name"))] = Counter({"orders": 1})
    for profile in (null, present):
        profile.first_rows = dict.fromkeys(profile.fields, 0)
        profile.versions.update([0])
    found = list(
        compare_fields("DescribeTopicPartitions", null, present, NameMatching({}, {}, (NameUses({}), NameUses({}))))
    )
    assert [(each.path, each.reason, each.a, each.b) for each in found] == [
        (("cursor",), DiffReason.ONE_SIDE, "null", ""),
        (("cursor", "topic_name"), DiffReason.ONE_SIDE, "", "orders"),
    ]
