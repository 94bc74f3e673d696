"""A ring followed by structured streaming: its tables are those of one run over the same files."""

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.conftest import PCAPS
from tests.findings.conversations import Talk, heartbeat, written
from tests.pipeline.test_micro_batch import cut

if find_spec("pyspark") is None:
    pytest.skip("NOT TESTED with pyspark: it is not installed", allow_module_level=True)

from pyspark.sql import SparkSession

from dissector.pipeline import cross_connection, ring_follower
from dissector.pipeline.commit import FOLLOWER
from dissector.pipeline.ingest import ingest
from dissector.pipeline.micro_batch_run import MicroBatchRun
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.ring import ring_file
from dissector.pipeline.ring_follower import Follower, MicroBatchReport

pytestmark = [pytest.mark.slow, pytest.mark.spark]
TABLES = ("captures", "connections", "exchanges", "findings", "gaps")


def ring_of(folder: Path, count: int, capture: Path = PCAPS / "librdkafka-pipelined.pcapng") -> Path:
    """A capture as the files of a ring, the newest last."""
    folder.mkdir()
    for number, plan in enumerate(cut(capture, folder, count)):
        os.utime(plan.path, (1_000 + number, 1_000 + number))
    return folder


def rows(spark: SparkSession, tables: Path) -> dict[str, list[str]]:
    """All rows of all tables, JSON as text."""
    found = {}
    for name in TABLES:
        if not (tables / name).exists():
            found[name] = []
            continue
        read = spark.read.parquet(str(tables / name))
        columns = [f"to_json({c}) AS {c}" if kind == "variant" else c for c, kind in read.dtypes if c != "run"]
        found[name] = sorted(json.dumps(row.asDict(True), default=str) for row in read.selectExpr(*columns).collect())
    return found


def followed(spark: SparkSession, ring: Path, tables: Path, idle: float | None = 4) -> list[MicroBatchReport]:
    reports: list[MicroBatchReport] = []
    Follower(spark, str(tables), WriteOptions(), 3, reports.append).run(str(ring), idle, quiet=1)
    return reports


def test_tables_are_those_of_one_run_over_the_files(spark: SparkSession, tmp_path: Path) -> None:
    ring = ring_of(tmp_path / "ring", 4)
    reports = followed(spark, ring, tmp_path / "followed")
    ingest(spark, sorted(map(str, ring.iterdir())), str(tmp_path / "batch"), WriteOptions(), parts=2)
    whole = rows(spark, tmp_path / "batch")
    assert len(whole["captures"]) == sum(each.files for each in reports) == 4
    assert whole["exchanges"]
    assert rows(spark, tmp_path / "followed") == whole
    assert not (tmp_path / "followed" / FOLLOWER).exists(), "nothing is left of a ring that is over"


def one_by_one(spark: SparkSession, ring: Path, tables: Path) -> list[dict[str, list[str]]]:
    """The files of a ring, a micro-batch each: the tables after each, and at the end."""
    follower = Follower(spark, str(tables), WriteOptions(), 3, lambda reports: None)
    found = []
    for batch, each in enumerate(sorted(ring.iterdir())):
        entry = ring_file(each)
        assert entry is not None
        follower._micro_batch([entry], batch)
        found.append(rows(spark, tables))
    follower._end()
    return [*found, rows(spark, tables)]


def batch(spark: SparkSession, ring: Path, tables: Path) -> dict[str, list[str]]:
    ingest(spark, sorted(map(str, ring.iterdir())), str(tables), WriteOptions(), parts=2)
    return rows(spark, tables)


def test_cross_connection_findings_are_found_across_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    """One micro-batch has what came before, the next one what makes it a finding."""
    ring = ring_of(tmp_path / "ring", 4, PCAPS / "trouble-rebalance-loop.pcapng")
    *_, followed = one_by_one(spark, ring, tmp_path / "followed")
    assert followed == batch(spark, ring, tmp_path / "batch")
    assert "rebalance-loop" in codes(followed)


def codes(tables: dict[str, list[str]]) -> list[str]:
    return sorted(json.loads(row)["code"] for row in tables["findings"])


def troubled(folder: Path) -> Path:
    """A slow answer before it is known what is usual, and errors that are a storm, all in the first third; but there a
    request still waits for its answer. Then the storm goes on."""
    usual, stormy, late = Talk(1), Talk(2), Talk(3)
    heartbeat(late, 0, 900)
    for at in range(40):
        heartbeat(usual, at * 20, 190 if at == 3 else 1)
    for at in range(40):
        heartbeat(stormy, at * 20 + 5, error=15)
    return Path(written(folder, usual, stormy, late))


def test_what_is_found_later_of_rows_in_the_tables_stands_there(spark: SparkSession, tmp_path: Path) -> None:
    """New findings of rows that came before, and new words of findings that did."""
    ring = ring_of(tmp_path / "ring", 3, troubled(tmp_path))
    first, *_, followed = one_by_one(spark, ring, tmp_path / "followed")
    assert len(first["exchanges"]) > 10
    assert "slow" not in codes(first)
    whole = batch(spark, ring, tmp_path / "batch")
    assert followed == whole
    assert {"slow", "error-storm"} <= set(codes(whole))


def test_words_of_an_exchange_begin_with_all_codes_in_order_each_once(spark: SparkSession) -> None:
    exchanges = [("a", 1, 0, "[slow] orders[0]", "note"), ("a", 2, 0, "[slow]", None), ("a", 3, 0, "[slow]", "note")]
    exchanges += [("b", 1, 0, "[mine] [slow]", None), ("b", 2, 0, "", None)]
    found = [("a", 1, 0, code, "warning") for code in ("throttled", "near-loss", "slow")]
    found += [("a", 2, 0, "lag", "note"), ("b", 1, 0, "slow", "error"), ("b", 2, 0, "slow", "note")]
    where = "capture STRING, packet BIGINT, start BIGINT"
    reports = spark.createDataFrame(found, f"{where}, code STRING, severity STRING")
    marked = cross_connection.with_found(
        spark.createDataFrame(exchanges, f"{where}, info STRING, severity STRING"), reports
    )
    assert sorted((row.capture, row.packet, row.info, row.severity) for row in marked.collect()) == [
        ("a", 1, "[near-loss] [slow] [throttled] orders[0]", "warning"),
        ("a", 2, "[lag] [slow]", "note"),
        ("a", 3, "[slow]", "note"),
        ("b", 1, "[slow] [mine] [slow]", "error"),
        ("b", 2, "[slow]", "note"),
    ]


def test_a_micro_batch_that_was_broken_off_is_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First before its stage is complete, then in the middle of moving it, twice; others run, and late files come, in
    between."""
    ring = ring_of(tmp_path / "ring", 4)
    kept = tmp_path / "kept"
    kept.mkdir()
    for file in sorted(ring.iterdir())[2:]:
        shutil.move(file, kept / file.name)
    tables = tmp_path / "followed"

    def killed(*_: Any) -> NoReturn:
        raise RuntimeError("killed")

    with monkeypatch.context() as broken:
        broken.setattr(MicroBatchRun, "_captures", killed)
        with pytest.raises(Exception, match="killed"):
            followed(spark, ring, tables)
    assert not list(tables.glob("exchanges/**/*.parquet"))
    rename = Path.rename

    def killed_at_captures(path: Path, to: Path) -> Path:
        return killed() if "captures" in path.parts else rename(path, to)

    with monkeypatch.context() as broken:
        broken.setattr(Path, "rename", killed_at_captures)
        with pytest.raises(Exception, match="killed"):
            followed(spark, ring, tables)
    moved = sorted(tables.glob("exchanges/**/*.parquet"))
    assert moved
    ingest(spark, [str(tmp_path / "nothing")], str(tables), WriteOptions())
    assert sorted(tables.glob("exchanges/**/*.parquet")) == moved, "others leave it as it is"
    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", killed)
        with pytest.raises(Exception, match="killed"):
            followed(spark, ring, tables)
    assert list(tables.glob("exchanges/**/*.parquet")), "it was broken off behind that"
    for file in sorted(kept.iterdir()):
        shutil.move(file, ring / file.name)
    followed(spark, ring, tables)
    ingest(spark, sorted(map(str, ring.iterdir())), str(tmp_path / "batch"), WriteOptions(), parts=2)
    assert rows(spark, tables) == rows(spark, tmp_path / "batch")


def test_late_and_overwritten_files_are_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file comes after the others, and one that was read has grown."""
    monkeypatch.setattr(ring_follower, "LATE_NS", 0)
    ring = ring_of(tmp_path / "ring", 4)
    first, *_, last = sorted(ring.iterdir())
    shutil.move(first, tmp_path / first.name)
    reports: list[MicroBatchReport] = []
    follower = Follower(spark, str(tmp_path / "followed"), WriteOptions(), 3, reports.append)
    entries = [entry for each in sorted(ring.iterdir()) if (entry := ring_file(each))]
    follower._micro_batch(entries, 0)
    shutil.move(tmp_path / first.name, first)
    os.utime(first, (2_000, 2_000))
    with last.open("ab") as file:
        file.write(last.read_bytes()[-100:])
    late, grown = ring_file(first), ring_file(last)
    assert late is not None
    assert grown is not None
    follower._micro_batch([late, grown, entries[-1]], 1)
    assert [problem.code for problem in reports[0].problems] == []
    assert {"late-file", "file-grew", "file-overwritten"} <= {problem.code for problem in reports[1].problems}
    captures = spark.read.parquet(str(tmp_path / "followed" / "captures"))
    assert sorted(row.path for row in captures.collect()) == sorted(map(str, ring.iterdir()))
