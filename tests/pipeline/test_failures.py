"""One giant connection, files that are damaged or vanish, workers that are killed: tables are what `show` prints, every
row once."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import PCAPS
from tools.benchmarks.captures import chatty
from tools.benchmarks.measuring import family
from tools.benchmarks.skewed import skewed

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from pyspark.sql import SparkSession

from dissector.pipeline import spark_session
from dissector.pipeline.ingest import IngestResult, Report
from dissector.pipeline.ingest_on_spark import ingest_on_spark
from dissector.pipeline.partition_rows import WriteOptions
from tests.pipeline.contents import contents
from tests.pipeline.events import failed, run_again
from tests.pipeline.test_ingest import read
from tests.pipeline.without_spark import differences, shown, shown_by_tables

pytestmark = [pytest.mark.slow, pytest.mark.spark]
GOOD = [PCAPS / "java.pcapng", PCAPS / "aiokafka.pcapng"]


class Place(NamedTuple):
    """A session, and the folder of its event log."""

    spark: SparkSession
    log: Path


@pytest.fixture
def place(spark: SparkSession, spark_log: Path) -> Place:
    return Place(spark, spark_log)


def ingested(
    place: Place, files: list[Path], out: Path, report: Report = lambda stage, done, total: None
) -> IngestResult:
    return ingest_on_spark(place.spark, [str(file) for file in files], str(out), WriteOptions(), parts=3, report=report)


def are_shown(place: Place, out: Path, files: list[Path]) -> None:
    expected, found = shown(files), shown_by_tables(read(out))
    assert expected.total() > 0
    assert found == expected, "\n".join(differences(expected, found))


def test_one_giant_connection_among_many_small_ones(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_session, "POLL_SECONDS", 0.01)  # stages of so few packets are short
    monkeypatch.setattr(spark_session, "PATIENCE", 1_500)  # as many seconds as before until executors are missed
    path = tmp_path / "skewed.pcapng"
    skewed(path, 5_000, 1_500)
    stages: dict[str, list[tuple[int, int]]] = {}
    outcome = ingested(
        place, [path], tmp_path / "tables", lambda stage, *done: stages.setdefault(stage, []).append(done)
    )
    assert outcome.counts["connections"] == 1_501
    assert [stage.split()[0] for stage in stages] == [
        "scanning",
        "shuffling",
        "sharing",
        "dissecting",
        "aggregating",
        "committing",
    ]
    assert {f"shuffling {outcome.packets:,} packets", "dissecting 3 partitions"} <= stages.keys()
    assert all(done <= of for shown_by_tables in stages.values() for done, of in shown_by_tables)
    assert any(of for shown_by_tables in stages.values() for _, of in shown_by_tables), "tasks are counted"
    are_shown(place, tmp_path / "tables", [path])


def test_unreadable_files_leave_the_others_whole(place: Place, tmp_path: Path) -> None:
    """Readable parts of a damaged file are there; the rest is in quarantine, or at least reported."""
    java = GOOD[0].read_bytes()
    cut, garbage, empty, folder = (tmp_path / name for name in ("cut", "garbage", "empty", "folder"))
    cut.write_bytes((PCAPS / "librdkafka.pcapng").read_bytes()[:-333])
    garbage.write_bytes(random.Random(5).randbytes(5_000))
    empty.touch()
    folder.mkdir()
    halved = tmp_path / "halved"
    halved.write_bytes(java[: len(java) // 2] + b"\xff" * 3_000)
    outcome = ingested(place, [cut, GOOD[1], garbage, empty, folder, halved, tmp_path / "absent"], tmp_path / "tables")
    are_shown(place, tmp_path / "tables", [cut, GOOD[1], halved])
    there = read(tmp_path / "tables")
    assert {Path(row["path"]) for row in there["quarantine"]} == {cut, garbage, empty, halved}
    assert outcome.read == 3
    words = "\n".join(problem.message for problem in outcome.problems)
    for each in (cut, garbage, empty, folder, halved, tmp_path / "absent"):
        assert f"{each}: " in words


@pytest.mark.parametrize("change", [Path.unlink, lambda path: os.truncate(path, 5_000)], ids=["gone", "cut"])
def test_a_file_that_changes_under_way_has_no_part_in_the_run(
    place: Place, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "some.pcapng"
    path.write_bytes(GOOD[0].read_bytes())

    def report(stage: str, done: int, total: int) -> None:
        if stage.startswith("shuffling") and path.exists() and path.stat().st_size > 5_000:
            change(path)

    outcome = ingested(place, [path, GOOD[1]], tmp_path / "tables", report)
    assert [problem.path for problem in outcome.problems if problem.code == "file-changed"] == [str(path)]
    assert outcome.read == 1
    are_shown(place, tmp_path / "tables", [GOOD[1]])
    path.write_bytes(GOOD[0].read_bytes())
    assert ingested(place, [path], tmp_path / "tables").read == 1, "it can be read another time"


def test_a_worker_that_is_killed_as_it_writes_is_replaced_and_nothing_is_there_twice(
    place: Place, tmp_path: Path
) -> None:
    path = tmp_path / "chatty.pcap"
    chatty(path, 12_000)
    ingested(place, [path], tmp_path / "whole")
    before = run_again(place.log)
    killer = Killer(tmp_path / "tables")
    killer.start()
    ingested(place, [path], tmp_path / "tables", killer.report)
    killer.join()
    assert killer.left, "what it had begun to write was still there when the tables were written"
    assert failed(place.log)
    assert run_again(place.log) > before
    assert contents(tmp_path / "tables") == contents(tmp_path / "whole")


class Killer(threading.Thread):
    """Kills the first process that writes rows of exchanges."""

    def __init__(self, out: Path) -> None:
        super().__init__(daemon=True)
        self._out = out
        self._over = False
        self._victim: Path | None = None
        """The file that it wrote."""
        self.left = False
        """Whether that was there when rows were committed."""

    def report(self, stage: str, done: int, total: int) -> None:
        """How far the run is."""
        self._over = stage.startswith(("aggregating", "committing"))
        if stage.startswith("committing") and self._victim is not None:
            self.left |= self._victim.exists()

    def run(self) -> None:
        while self._victim is None and not self._over:
            for process in family(os.getpid())[1:]:
                written = [path for path in _open_files(process) if path.match("exchanges/*.parquet")]
                if written and self._out in written[0].parents:
                    os.kill(process, signal.SIGKILL)
                    self._victim = written[0]
                    break
            time.sleep(0.02)


def _open_files(process: int) -> list[Path]:
    try:
        return [each.readlink() for each in Path(f"/proc/{process}/fd").iterdir()]
    except OSError:
        return []
