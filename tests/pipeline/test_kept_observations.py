"""Observations that stay in their process give the findings that those give that become rows, in the same order."""

import random
from typing import Any, Final, NamedTuple

import pytest

from dissector.core.finding import Finding
from dissector.findings.framework.aggregation import Observation
from dissector.pipeline import observations
from dissector.pipeline.observations import ORDER, KeptObservations
from dissector.pipeline.origins import FileOrigins, Sources
from dissector.tables.row_batches import Cells

SCOPES: Final = (("a", 10), ("a", 9), ("b",), (), ("a", None))


class Seen(NamedTuple):
    """What was observed."""

    number: int


def some(count: int) -> list[Observation]:
    """Observations of some extractors and scopes, as they come: by packets, a few of which have several."""
    chance = random.Random(7)
    packets = sorted(chance.choices(range(count // 2), k=count))
    return [
        Observation(
            chance.choice(("Late", "Early")), chance.choice(SCOPES), packet, chance.choice((0, 40)), nth, Seen(nth)
        )
        for nth, packet in enumerate(packets)
    ]


def order(observation: Observation) -> tuple[Any, ...]:
    cells: Cells = observation._asdict() | {"scope": repr(observation.scope)}
    return tuple(cells[name] for name in ORDER)


def test_they_are_aggregated_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    found = some(200)
    kept, seen = KeptObservations(), list[Observation]()

    def aggregate(ordered: Any) -> list[tuple[Observation, Finding]]:
        seen.extend(ordered)
        return []

    monkeypatch.setattr(observations, "aggregate", aggregate)
    assert not list(kept.keep(found[:50], Sources()))
    assert not list(kept.keep(found[50:], Sources()))
    assert not list(kept.findings(FileOrigins([], [])))
    assert seen == sorted(found, key=order)
    assert seen != sorted(found, key=lambda each: order(each)[2:])


def test_none_give_no_findings() -> None:
    assert not list(KeptObservations().findings(FileOrigins([], [])))
