"""Files looked over while Spark starts, and those that are left to its tasks."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from dissector.pipeline import file_scan
from dissector.pipeline.background_scan import BackgroundScan
from dissector.pipeline.file_scan import FileScan, scan_file
from dissector.pipeline.input_files import OnProgress
from dissector.pipeline.scan import scan_files
from tests.pipeline.ingested import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _scanned(paths: list[str]) -> BackgroundScan:
    """One that came to its end."""
    ahead = BackgroundScan(paths)
    ahead._thread.join()
    return ahead


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("ahead", [0, 2, len(CAPTURES)])
def test_plans_and_their_order_do_not_depend_on_how_many_files_are_scanned_ahead(
    spark: "SparkSession", ahead: int
) -> None:
    looked = _scanned(CAPTURES[:ahead])
    assert len(looked.scans()) == ahead
    assert scan_files(spark, CAPTURES, looked) == [scan_file(path) for path in CAPTURES]


def test_no_file_is_begun_in_the_background_once_scans_are_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    begins, is_there = threading.Event(), threading.Event()

    def requested_meanwhile(path: str, on_progress: OnProgress) -> FileScan:
        begins.set()
        assert is_there.wait(10)
        ahead._requested.set()
        return scan_file(path, on_progress=on_progress)

    monkeypatch.setattr(file_scan, "scan_file", requested_meanwhile)
    ahead = BackgroundScan(CAPTURES)
    is_there.set()
    assert begins.wait(60)
    assert ahead.scans() == [scan_file(CAPTURES[0])]


def test_a_file_that_nobody_waits_for_any_more_is_left_in_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    is_left = threading.Event()

    def left_meanwhile(path: str, on_progress: OnProgress) -> FileScan:
        assert is_left.wait(10)
        return scan_file(path, on_progress=on_progress)

    monkeypatch.setattr(file_scan, "scan_file", left_meanwhile)
    with BackgroundScan(CAPTURES) as ahead:
        monkeypatch.setattr(ahead._cancelled, "set", lambda: (threading.Event.set(ahead._cancelled), is_left.set()))
    assert not ahead._thread.is_alive()
    assert ahead.scans() == []


@pytest.mark.slow
@pytest.mark.spark
def test_what_fails_ahead_is_met_again_by_a_task(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: str, on_progress: OnProgress) -> FileScan:
        raise MemoryError

    paths = [str(tmp_path / "none.pcap"), *CAPTURES[:1]]
    with monkeypatch.context() as here:
        here.setattr(file_scan, "scan_file", fails)
        ahead = _scanned(paths)
        assert ahead.scans() == []
    assert scan_files(spark, paths, ahead) == [scan_file(path) for path in paths]
