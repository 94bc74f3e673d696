"""Two runs of one program have no differences: this decides what counts as close."""

from pathlib import Path

import pytest

from dissector.analysis.diff import PairVerdict
from tests.analysis.diff.editing import bundled, compared

CLIENTS = ("java", "librdkafka", "kafka-python", "aiokafka")


@pytest.mark.parametrize("client", CLIENTS)
def test_two_runs_of_a_client_do_not_differ(client: str) -> None:
    comparison = compared(bundled(f"compare-{client}-1"), bundled(f"compare-{client}-2"))
    assert [entry for entry in comparison.entries if entry] == []
    assert {pair.verdict for pair in comparison.pairs} <= {PairVerdict.SAME, PairVerdict.MORE}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_different_clients_differ(client: str) -> None:
    for other in set(CLIENTS) - {client}:
        assert not compared(bundled(f"compare-{client}-1"), bundled(f"compare-{other}-1")).is_same


def test_matched_names_are_listed() -> None:
    ignored = compared(bundled("compare-java-1"), bundled("compare-java-2")).ignored
    assert "topic java-orders-1 of A is compared with java-orders-2 of B" in ignored
    assert "group java-billing-1 of A is compared with java-billing-2 of B" in ignored


@pytest.mark.slow
def test_a_capture_does_not_differ_from_itself(bundled: Path) -> None:
    comparison = compared(str(bundled), str(bundled))
    assert comparison.is_same
    assert all(pair.a == pair.b and pair.verdict is PairVerdict.SAME for pair in comparison.pairs)
    assert len(comparison.pairs) == comparison.a.exchanges
