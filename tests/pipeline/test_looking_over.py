"""Files looked over while Spark starts, and those that are left to its tasks."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from dissector.pipeline import looking_over
from dissector.pipeline.looking_over import Ahead, plans_of
from dissector.pipeline.plan import Between, Plan, plan
from tests.pipeline.ingested import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _looked(paths: list[str]) -> Ahead:
    """One that came to its end."""
    ahead = Ahead(paths)
    ahead._thread.join()
    return ahead


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("ahead", [0, 2, len(CAPTURES)])
def test_files_have_the_same_plans_in_their_order_however_many_are_looked_over_ahead(
    spark: "SparkSession", ahead: int
) -> None:
    looked = _looked(CAPTURES[:ahead])
    assert len(looked.plans()) == ahead
    assert plans_of(spark, CAPTURES, looked) == [plan(path) for path in CAPTURES]


def test_no_file_is_begun_when_somebody_has_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    is_there = threading.Event()

    def asked_meanwhile(path: str, between: Between) -> Plan:
        assert is_there.wait(10)
        ahead._asked.set()
        return plan(path, between=between)

    monkeypatch.setattr(looking_over, "plan", asked_meanwhile)
    ahead = Ahead(CAPTURES)
    is_there.set()
    assert ahead.plans() == [plan(CAPTURES[0])]


def test_a_file_that_nobody_waits_for_any_more_is_left_in_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    is_left = threading.Event()

    def left_meanwhile(path: str, between: Between) -> Plan:
        assert is_left.wait(10)
        return plan(path, between=between)

    monkeypatch.setattr(looking_over, "plan", left_meanwhile)
    with Ahead(CAPTURES) as ahead:
        monkeypatch.setattr(ahead._left, "set", lambda: (threading.Event.set(ahead._left), is_left.set()))
    assert not ahead._thread.is_alive()
    assert ahead.plans() == []


@pytest.mark.slow
@pytest.mark.spark
def test_what_fails_ahead_is_met_again_by_a_task(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: str, between: Between) -> Plan:
        raise MemoryError

    paths = [str(tmp_path / "none.pcap"), *CAPTURES[:1]]
    with monkeypatch.context() as here:
        here.setattr(looking_over, "plan", fails)
        ahead = _looked(paths)
        assert ahead.plans() == []
    assert plans_of(spark, paths, ahead) == [plan(path) for path in paths]
