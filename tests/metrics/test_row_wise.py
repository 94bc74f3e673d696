"""Rows are counted by columns: the numbers are those of the exchanges, counted one by one at the same time."""

import dataclasses
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="NOT TESTED with prometheus_client: it is not installed")

from dissector.capture_session import Capture
from dissector.core.arrays import Int64
from dissector.core.expansion import RUN
from dissector.core.limits import DEFAULT, Limits
from dissector.metrics import row_meter
from dissector.metrics.dimensions import MOST_LABEL_SETS
from dissector.metrics.live_metrics import LiveMetrics
from dissector.metrics.look import Look, Looking, Paced
from dissector.metrics.row_meter import RowMeter
from tests.conftest import PCAPS
from tests.metrics.row_wise import Key, RowWise

OF_READING = ("kdissect_packets", "kdissect_connections", "kdissect_unread", "kdissect_uncounted")


class Both(Looking):
    """Looks at rows, and has them counted one by one as well."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self._decoded = capture
        self.row_wise: RowWise | None = None

    def at(self, rows: Int64, paced: Paced) -> Look:
        found = super().at(rows, paced)
        assert self.row_wise is not None
        self.row_wise.add(self._decoded.at(rows))
        return found


def scraped(metrics: LiveMetrics) -> dict[Key, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created") and not sample.name.startswith(OF_READING)
    }


def both(
    path: Path, most: int = MOST_LABEL_SETS, limits: Limits = DEFAULT
) -> tuple[dict[Key, float], dict[Key, float]]:
    """The numbers of a capture that grows, counted by columns and one by one."""
    RUN.begin()
    metrics = LiveMetrics(lambda _: None, most)
    with Capture([str(path)], limits) as capture:
        meter = RowMeter(capture, None, metrics)
        looking = meter._looking = Both(capture)
        looking.row_wise = RowWise(capture, most)
        for _ in capture.read(sort=False):
            meter.look()
        while meter.look():
            pass
        return scraped(metrics), looking.row_wise.samples()


def captures() -> list[str]:
    return sorted(str(path.relative_to(PCAPS)) for path in PCAPS.rglob("*") if path.suffix in (".pcap", ".pcapng"))


@pytest.mark.long
@pytest.mark.parametrize("name", captures())
def test_numbers_are_those_of_the_exchanges(name: str) -> None:
    found, expected = both(PCAPS / name)
    assert found == expected


@pytest.mark.long
def test_many_label_sets_are_others_in_the_same_order() -> None:
    found, expected = both(PCAPS / "java.pcapng", 3)
    assert found == expected
    assert any(name == "kdissect_other_labels_total" for name, _ in found)


@pytest.mark.long
def test_many_short_looks_at_a_growing_capture_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows that wait for their response few are waited for: most are counted without it."""
    monkeypatch.setattr(row_meter, "STEP", 7)
    monkeypatch.setattr("dissector.capture.pcapng.BATCH_PACKETS", 10)
    found, expected = both(PCAPS / "java.pcapng", limits=dataclasses.replace(DEFAULT, pending_requests=1))
    assert found == expected
    assert ("kdissect_findings_total", (("code", "unanswered"), ("severity", "note"))) in found


@pytest.mark.long
def test_topics_of_sessions_are_counted_however_much_was_listed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics run for days. What a run may list is bounded: one by one, sessions have no topics from then on."""
    found, expected = both(PCAPS / "java-classic.pcapng")
    monkeypatch.setattr(RUN, "admits_session", lambda: False)
    later, one_by_one = both(PCAPS / "java-classic.pcapng")
    assert later == found
    assert one_by_one != expected
