"""Generated names without a counterpart are compared with few others, however many there are."""

from collections.abc import Set

import pytest

from dissector.analysis.diff import name_matching
from dissector.analysis.diff.compared_values import EntityName

COUNT = 100
MOST = 5


def test_names_without_a_counterpart_are_compared_with_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Set[object]] = []
    likeness = name_matching._likeness

    def watched(one: Set[object], other: Set[object]) -> float:
        compared.append(one)
        return likeness(one, other)

    monkeypatch.setattr(name_matching, "_likeness", watched)
    monkeypatch.setattr(name_matching, "MAX_MATCHED", MOST)
    names = [EntityName("group", f"g{n}") for n in range(COUNT)]
    roles = {
        name: name_matching._Role(frozenset((EntityName("topic", f"t{n}"),)), frozenset())
        for n, name in enumerate(names)
    }
    _, common = name_matching._numbered("group", [[], names], ({}, roles))
    assert len(common) == COUNT
    assert len(compared) <= COUNT * (MOST + 1)
