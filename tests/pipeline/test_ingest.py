"""Tables are what `show` prints, row by row, whoever wrote them; and those of Spark the same whatever happened on the
way. In `make test` processes of this machine write them: Spark's code is imported, and runs in `make spark`."""

import json
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import PCAPS, QUICK

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dissector.capture_session import Capture
from dissector.pipeline.cell_json import MAX_BYTES
from dissector.pipeline.ingest import IngestResult
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.ingest_on_spark import ingest_on_spark
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.arrow_types import TIMES
from dissector.tables.schemas import FACT_TABLES
from tests.pipeline.contents import contents, rows_that_count
from tests.pipeline.rolling import rolled
from tests.pipeline.test_lone_files import INDEXES, JAVA, LOGS, SAMPLES, large
from tests.pipeline.without_spark import Tables, differences, shown, shown_by_tables, tables

pytestmark = pytest.mark.slow
JSON = ("request", "response", "rest")
"""Columns of JSON, which parts make as bytes."""
OTHERS = ("encoder", "plain-socket-sasl-v0", "trouble-near-loss")
RECORDED = [PCAPS / f"{name}.pcapng" for name in (*QUICK, *OTHERS)]
OF_KAFKA = [*LOGS, *(path for path in INDEXES if path.suffix != ".txnindex")]


class Made(NamedTuple):
    """What ingests files into a folder, and a folder of tables with the files that they are of."""

    ingest: Callable[[list[Path], Path], IngestResult]
    folder: Path
    files: list[Path]
    outcome: IngestResult


@pytest.fixture(scope="module", params=["processes", pytest.param("spark", marks=pytest.mark.spark)])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Captures that differ, and files of Kafka's own, in one run."""
    ingest = in_processes if request.param == "processes" else partial(ingested, request.getfixturevalue("spark"))
    folder = tmp_path_factory.mktemp("made") / "tables"
    files = [*RECORDED, *OF_KAFKA]
    return Made(ingest, folder, files, ingest(files, folder))


def in_processes(files: list[Path], folder: Path) -> IngestResult:
    return ingest_here([str(file) for file in files], str(folder), WriteOptions(), parts=2)


def ingested(spark: SparkSession, files: list[Path], folder: Path, **how: Any) -> IngestResult:
    return ingest_on_spark(spark, [str(file) for file in files], str(folder), WriteOptions(**how), parts=3)


def read(folder: Path) -> Tables:
    """Rows of all tables."""
    return defaultdict(list, rows_that_count(folder))


@pytest.mark.long
def test_many_files_at_once_are_what_show_prints(made: Made) -> None:
    expected, found = shown(made.files), shown_by_tables(read(made.folder))
    assert expected.total() > 500
    assert found == expected, "\n".join(differences(expected, found))
    assert made.outcome.read == len(made.files)
    assert not made.outcome.problems


@pytest.mark.long
def test_every_row_of_every_table_comes_back_from_parquet(made: Made) -> None:
    """As parts make it one after the other."""
    there, expected = read(made.folder), tables(made.files, parts=3)
    for name in FACT_TABLES:
        assert Counter(map(plain, there[name])) == Counter(map(plain, expected[name])), name
    assert made.outcome.counts == {name: len(expected[name]) for name in made.outcome.counts}
    assert made.outcome.counts["records"] > 500


def plain(row: dict[str, Any]) -> str:
    """A row as text, whatever types hold it: columns that are null are as those that are not there. Times are made of
    numbers where rows are written."""
    cells = {
        name: cell.decode() if name in JSON and isinstance(cell, bytes) else cell
        for name, cell in row.items()
        if name not in TIMES
    }
    del cells["epoch"]
    if cells.get("headers") is not None:
        cells["headers"] = [(each["key"], each["value"] and bytes(each["value"])) for each in cells["headers"]]
    if cells.get("offered") is not None:
        cells["offered"] = sorted((key, sorted(value.items())) for key, value in dict(cells["offered"]).items())
    return repr(sorted((name, cell) for name, cell in cells.items() if cell is not None))


@pytest.mark.long
def test_a_row_of_captures_says_what_the_file_is(made: Made) -> None:
    rows = {row["path"]: row for row in read(made.folder)["captures"]}
    assert rows.keys() == {str(file) for file in made.files}
    with Capture([str(JAVA)]) as capture:
        assert sum(1 for _ in capture.exchanges()) > 0
        of_java = rows[str(JAVA)]
        assert (of_java["packets"], of_java["begin_ns"], of_java["link_types"]) == (
            capture.packets,
            capture.start_ns,
            [1],
        )
    assert {row["bytes"] for row in rows.values()} == {file.stat().st_size for file in made.files}


@pytest.mark.long
def test_the_same_under_other_names_and_in_another_order_is_known(made: Made, tmp_path: Path) -> None:
    before = contents(made.folder)
    copies = [tmp_path / f"{number}.copy" for number in range(len(RECORDED))]
    for copy, file in zip(copies, random.Random(1).sample(RECORDED, len(RECORDED)), strict=True):
        copy.symlink_to(file)
    outcome = made.ingest(copies, made.folder)
    assert (outcome.read, sorted(outcome.already_ingested)) == (0, sorted(map(str, copies)))
    assert contents(made.folder) == before


@pytest.mark.spark
def test_a_ring_in_any_order_gives_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    files = rolled(tmp_path, PCAPS / "librdkafka-pipelined.pcapng", chance, most=9)
    ingested(spark, files, tmp_path / "one")
    renamed = [file.rename(tmp_path / f"{chance.random()}") for file in files]
    ingested(spark, chance.sample(renamed, len(renamed)), tmp_path / "other")
    held = contents(tmp_path / "one")
    assert held == contents(tmp_path / "other")
    assert held["captures"][0] == len(files)
    found = shown_by_tables(read(tmp_path / "one"))
    assert found == shown([PCAPS / "librdkafka-pipelined.pcapng"])


@pytest.mark.spark
def test_problems_of_files_are_in_the_tables_and_reported(spark: SparkSession, tmp_path: Path) -> None:
    """Good files among them are whole, those with the packets of another one are left out, and a second run has nothing
    to add."""
    files = [JAVA]
    for name, data in SAMPLES.items():
        files.append(tmp_path / name)
        files[-1].write_bytes(data())
    files.append(tmp_path / "no capture")
    files[-1].write_bytes(b"nothing that anybody knows")
    outcome = ingested(spark, [*files, tmp_path / "absent"], tmp_path / "tables")
    there = read(tmp_path / "tables")
    kept = {row["path"] for row in there["captures"]}
    assert 0 < len(files) - len(kept) < len(SAMPLES)
    expected = tables([each for each in files if str(each) in kept], parts=2)
    assert Counter(map(plain, there["quarantine"])) == Counter(map(plain, expected["quarantine"]))
    assert Counter(each["path"] for each in there["quarantine"]).keys() >= {str(files[-1])}
    problems = {row["path"]: [each["message"] for each in row["problems"]] for row in there["captures"]}
    told_of = {each.message for each in outcome.problems}
    assert {words for lines in problems.values() for words in lines} < told_of
    assert [words for words in told_of if "absent" in words]
    assert any("IP fragment without the others" in words for words in problems[str(JAVA)])
    before = contents(tmp_path / "tables")
    assert len(ingested(spark, files, tmp_path / "tables").already_ingested) == len(files)
    assert contents(tmp_path / "tables") == before


@pytest.mark.spark
def test_bodies_of_the_largest_size_are_kept_and_larger_ones_reported(spark: SparkSession, tmp_path: Path) -> None:
    files = [large(tmp_path, 40 << 20, 40_001), large(tmp_path, 7 << 20, 40_002)]
    ingested(spark, files, tmp_path / "tables", frames=True)
    there = read(tmp_path / "tables")
    by_size = {len(each["request"]): json.loads(each["request"]) for each in there["bodies"]}
    assert min(by_size) < 2_000 < MAX_BYTES // 2 < max(by_size) < MAX_BYTES
    assert [each["code"] for each in there["findings"]].count("cell-too-large") == 1
    assert sorted(len(each["request_bytes"]) >> 20 for each in there["bodies"]) == [7, 40]
    assert len(there["records"]) == 47


KILLED = """
import os, signal, sys
from dissector.pipeline.ingest_on_spark import ingest_on_spark
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.spark_session import session
from dissector.tables import delta_log
out, moment, *files = sys.argv[1:]
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def report(stage, done, total):
    if stage.startswith(moment):
        die()
commit, committed = delta_log.DeltaTable.create_write_transaction, []
def counted(*given, **named):
    commit(*given, **named)
    committed.append(None)
    if moment == f"{len(committed)} commits":
        die()
delta_log.DeltaTable.create_write_transaction = counted
with session("local[2]", None, {}, verbose=False) as spark:
    ingest_on_spark(spark, files, out, WriteOptions(), parts=3, report=report)
"""


@pytest.mark.spark
def test_a_run_that_is_killed_anywhere_leaves_nothing_of_a_capture(spark: SparkSession, tmp_path: Path) -> None:
    """In one folder, one killed run after the other; the last one is not killed, and has other files to read."""
    files = [PCAPS / f"{name}.pcapng" for name in QUICK]
    killed = tmp_path / "killed"
    for moment in ("dissecting", "committing", "1 commits", "3 commits", "5 commits"):
        words = [sys.executable, "-c", KILLED, str(killed), moment, *map(str, files)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert not any(rows_that_count(killed).values())
        assert len(list((killed / "_runs").iterdir())) == 1, "of this run, and none of an earlier one"
    ingested(spark, files[1:], killed)
    ingested(spark, files[1:], tmp_path / "clean")
    assert contents(killed) == contents(tmp_path / "clean")
    for name in FACT_TABLES:
        epochs = set(DeltaTable(killed / name).to_pyarrow_table(columns=["epoch"]).column(0).to_pylist())
        assert len(epochs) <= 1, "facts of killed runs are removed"
