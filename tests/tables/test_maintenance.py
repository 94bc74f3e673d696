"""Captures in tables are forgotten, replaced, compacted and checked, and all others stay as they are."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

from deltalake import DeltaTable

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.delta_log import append_facts, remove_captures
from dissector.tables.maintenance import compact, vacuum
from dissector.tables.run import Run
from dissector.tables.schemas import FACT_TABLES
from dissector.tables.snapshot import Snapshot, snapshot
from dissector.tables.verification import problems
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.pipeline.contents import contents, rows_that_count
from tests.pipeline.test_micro_batch import cut
from tests.pipeline.without_spark import differences, shown, shown_by_tables
from tests.tables.copied import copy_tables
from tests.tables.test_delta_log import gaps
from tests.traffic import Turn, conversation, ethernet, exchanges, pcap

pytestmark = pytest.mark.slow

JAVA, SLOW, RDKAFKA = (PCAPS / f"{name}.pcapng" for name in ("java", "trouble-slow", "librdkafka"))


def ingested(folder: Path, *files: Path, again: bool = False, frames: bool = False) -> Path:
    """Ingest files; what lies in `pcaps`, and is the first in its folder, once in this process."""
    names = [str(file) for file in files]
    if not again and not (folder / "captures").exists() and all(PCAPS in file.parents for file in files):
        return copy_tables(folder, *names, frames=frames)
    ingest_here(names, str(folder), WriteOptions(frames=frames), again=again)
    return folder


def seen(folder: Path) -> Snapshot:
    found = snapshot(str(folder))
    assert found is not None
    return found


def epochs(folder: Path) -> dict[str, int]:
    return {Path(row["path"]).stem: row["epoch"] for row in seen(folder).captures}


def physical(folder: Path) -> set[tuple[str, int]]:
    """The captures and epochs of all rows of facts that tables have, whether they count or not."""
    rows = [
        row
        for name in FACT_TABLES
        for row in DeltaTable(folder / name).to_pyarrow_table(columns=["capture", "epoch"]).to_pylist()
    ]
    return {(row["capture"], row["epoch"]) for row in rows}


def live(folder: Path) -> set[tuple[str, int]]:
    return {(row["capture"], row["epoch"]) for row in seen(folder).captures}


@pytest.mark.long
def test_what_is_forgotten_was_never_there(tmp_path: Path) -> None:
    ingested(tmp_path / "all", JAVA, SLOW)
    ingested(tmp_path / "all", RDKAFKA)
    ingested(tmp_path / "one", RDKAFKA)
    for each in seen(tmp_path / "all").captures:
        if each["path"] != str(RDKAFKA):
            assert remove_captures(str(tmp_path / "all"), [each["capture"]])
            assert not remove_captures(str(tmp_path / "all"), [each["capture"]])
    assert contents(tmp_path / "all") == contents(tmp_path / "one")
    assert physical(tmp_path / "all") == live(tmp_path / "all"), "for readers that do not look at captures, too"


@pytest.mark.exhaustive
def test_captures_that_end_before_a_day_are_forgotten(tmp_path: Path) -> None:
    """Those without times stay: of them nobody knows."""
    frames = tmp_path / "frames.hex"
    frames.write_text("> 00000009 0012 0000 00000001 ffff")
    old = tmp_path / "old.pcap"
    old.write_bytes(pcap([ethernet(each) for each in conversation(exchanges(3))]))
    folder = str(ingested(tmp_path / "tables", JAVA, old, frames))
    day = {Path(row["path"]).stem: row["day"] for row in seen(tmp_path / "tables").captures}
    assert day["old"] < day["java"]
    done = kdissect("tables", "forget", folder, "--before", str(day["old"]))
    assert (done.returncode, done.stderr.decode()) == (1, f"{folder}: no capture ends before that day\n")
    done = kdissect("tables", "forget", folder, "--before", str(day["java"]))
    assert (done.returncode, done.stderr.decode()) == (0, f"{old}: forgotten\n")
    assert epochs(tmp_path / "tables").keys() == {"java", "frames"}
    assert physical(tmp_path / "tables") == live(tmp_path / "tables")
    assert b"--before" in kdissect("tables", "forget", folder).stderr


@pytest.mark.exhaustive
def test_what_the_user_says_of_connections_is_kept_and_replaced_with_the_capture(tmp_path: Path) -> None:
    """Bytes that no one knows are rows where the server is said to be a broker."""
    unknown = tmp_path / "unknown.pcap"
    turns = [Turn(True, bytes(range(64))), Turn(False, bytes(range(64)))]
    unknown.write_bytes(pcap([ethernet(each) for each in conversation(turns, server=("10.0.0.2", 7777))]))
    folder = str(tmp_path / "tables")
    ingested(Path(folder), unknown)
    assert rows_that_count(folder)["exchanges"] == []
    assert kdissect("ingest", str(unknown), "--out", folder, "-d", "10.0.0.2:7777,kafka").returncode == 0
    rows, [row] = rows_that_count(folder)["exchanges"], seen(Path(folder)).captures
    assert rows
    assert row["options"] == "decode-as 10.0.0.2:7777,kafka"
    assert kdissect("tables", "replace", folder, "unknown").returncode == 0
    assert len(rows_that_count(folder)["exchanges"]) == len(rows)


@pytest.mark.exhaustive
def test_a_capture_that_is_ingested_in_another_way_replaces_itself(tmp_path: Path) -> None:
    before = epochs(ingested(tmp_path, JAVA, SLOW))
    after = epochs(ingested(tmp_path, JAVA, frames=True))
    assert after["java"] > before["java"]
    assert after["trouble-slow"] == before["trouble-slow"]
    assert physical(tmp_path) == live(tmp_path)
    kept = {row["capture"] for row in rows_that_count(tmp_path)["bodies"] if row["request_bytes"] is not None}
    assert kept == {row["capture"] for row in seen(tmp_path).captures if row["options"] == "frames"}
    assert epochs(ingested(tmp_path, JAVA, frames=True)) == after, "in the same way, it is not read again"


@pytest.mark.exhaustive
def test_a_connection_that_crosses_two_ingests_becomes_whole(tmp_path: Path) -> None:
    capture = PCAPS / "librdkafka-pipelined.pcapng"
    files = [Path(plan.path) for plan in cut(capture, tmp_path, 3)]
    for file in files:
        ingested(tmp_path / "tables", file)
    assert shown_by_tables(rows_that_count(tmp_path / "tables")) != shown([capture])
    done = kdissect("tables", "replace", str(tmp_path / "tables"), *map(str, files))
    assert done.returncode == 0, done.stderr
    found, expected = shown_by_tables(rows_that_count(tmp_path / "tables")), shown([capture])
    assert found == expected, "\n".join(differences(expected, found))


@pytest.mark.long
def test_compaction_keeps_every_row_and_leaves_few_files(tmp_path: Path) -> None:
    for file in (JAVA, SLOW, RDKAFKA):
        ingested(tmp_path, file)
    before, old = contents(tmp_path), set(tmp_path.glob("*/*.parquet"))
    counts = compact(str(tmp_path))
    assert contents(tmp_path) == before
    assert all(after <= 1 for _, after in counts.values())
    assert counts["exchanges"] == (3, 1)
    assert all(path.exists() for path in old), "who began to read before goes on"
    assert vacuum(str(tmp_path), 1) == 0, "they are young"
    assert vacuum(str(tmp_path), 0) > 0
    assert contents(tmp_path) == before
    assert len(list(tmp_path.glob("*/*.parquet"))) == sum(after for _, after in counts.values())
    [file] = (tmp_path / "exchanges").glob("*.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    encodings = {each.path_in_schema: each.encodings for each in map(group.column, range(group.num_columns))}
    assert "DELTA_BINARY_PACKED" in encodings["time_ns"], "dictionaries would take four times the room"


@pytest.mark.long
def test_35_captures_give_at_most_30_files(tmp_path: Path) -> None:
    """However many captures one ingest reads: a file for each table that has rows of them, and not one for each."""
    pieces = [Path(scan.path) for scan in cut(JAVA, tmp_path, pieces=35)]
    folder = ingested(tmp_path / "tables", *pieces)
    assert len(seen(folder).captures) == len(pieces) == 35
    files = [each.parent.name for each in folder.rglob("*.parquet")]
    assert len(files) <= 30
    assert {"exchanges", "bodies", "records", "captures"} <= set(files)


@pytest.mark.exhaustive
def test_a_capture_is_forgotten_and_replaced_behind_a_compaction(tmp_path: Path) -> None:
    """Its rows are in files with those of others then."""
    ingested(tmp_path / "all", JAVA)
    ingested(tmp_path / "all", SLOW)
    compact(str(tmp_path / "all"))
    ingested(tmp_path / "all", SLOW, again=True)
    [java] = [row["capture"] for row in seen(tmp_path / "all").captures if row["path"] == str(JAVA)]
    remove_captures(str(tmp_path / "all"), [java])
    assert contents(tmp_path / "all") == contents(ingested(tmp_path / "one", SLOW))
    assert physical(tmp_path / "all") == live(tmp_path / "all")


@pytest.mark.long
def test_nothing_is_wrong_with_whole_tables(tmp_path: Path) -> None:
    assert list(problems(str(tmp_path), seen(ingested(tmp_path, JAVA, SLOW)))) == []


@pytest.mark.long
def test_files_that_are_missing_cut_or_foreign_are_told(tmp_path: Path) -> None:
    ingested(tmp_path, JAVA, SLOW)
    [records], [bodies], [findings] = (
        list((tmp_path / name).glob("*.parquet")) for name in ("records", "bodies", "findings")
    )
    records.unlink()
    os.truncate(bodies, 1_000)
    whole = findings.read_bytes()
    findings.write_bytes(whole[:-8] + b"\xff" * 8)
    told = "\n".join(problems(str(tmp_path), seen(tmp_path)))
    assert f"records: {records.name}: the file is missing" in told
    assert f"bodies: {bodies.name}: 1,000 bytes instead of " in told
    assert f"findings: {findings.name}: " in told
    assert "bodies: not one for each row of exchanges" in told


@pytest.mark.long
def test_rows_of_a_killed_ingest_are_told(tmp_path: Path) -> None:
    ingested(tmp_path, SLOW)
    append_facts(str(tmp_path), gaps(tmp_path, "killed", 7))
    assert list(problems(str(tmp_path), seen(tmp_path))) == [
        "gaps: 2 rows of captures that are not there: a killed ingest left them"
    ]


def test_the_commands_say_what_they_did(tmp_path: Path) -> None:
    folder = str(ingested(tmp_path, JAVA, SLOW))
    listed = kdissect("tables", "list", folder).stdout.decode().splitlines()
    assert [line.split()[-1] for line in listed] == [str(JAVA), str(SLOW)]
    assert kdissect("tables", "list", folder, "-f", "json").stdout.count(b'"digest"') == 2
    assert kdissect("tables", "verify", folder).stderr.decode() == f"{folder}: 2 captures, nothing is missing\n"
    done = kdissect("tables", "forget", folder, "nobody")
    assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {folder}: no capture is called nobody\n")
    assert kdissect("tables", "forget", folder, "java").returncode == 0
    assert kdissect("tables", "compact", folder).stderr.decode() == f"{folder}: 6 files instead of 6\n"
    for file in (tmp_path / "bodies").glob("*.parquet"):  # one is of the table, one was its
        file.unlink()
    done = kdissect("tables", "verify", folder)
    assert (done.returncode, done.stderr.count(b"the file is missing")) == (1, 1)


@pytest.mark.long
def test_nothing_is_removed_beside_an_ingest_whose_files_are_in_no_table_yet(tmp_path: Path) -> None:
    ingested(tmp_path, SLOW)
    (tmp_path / Run.new().folder).mkdir(parents=True)
    done = kdissect("tables", "vacuum", str(tmp_path), "--older-than", "0")
    assert done.returncode == 2
    assert b"is ingesting into it" in done.stderr
