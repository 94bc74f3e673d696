"""By how many tasks, so in how many files, the rows of a capture are written."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from pyspark.sql import SparkSession

from dissector.pipeline import ingest_run
from dissector.pipeline.ingest_on_spark import ingest_on_spark
from dissector.pipeline.partition_rows import WriteOptions
from tests.traffic import Packet, conversation, ethernet, exchanges, pcap

pytestmark = [pytest.mark.slow, pytest.mark.spark]
CONNECTIONS = 6
"""Of a capture: enough that no part has all of them."""


def capture(path: Path, count: int) -> str:
    """So many exchanges, on connections that no other capture has."""
    packets: list[Packet] = []
    for number in range(CONNECTIONS):
        client = (f"10.{len(list(path.parent.iterdir()))}.0.1", 40_000 + number)
        packets += conversation(exchanges(count // CONNECTIONS), client=client)
    path.write_bytes(pcap([ethernet(packet) for packet in packets]))
    return str(path)


def files_of_exchanges(spark: SparkSession, counts: list[int], folder: Path) -> dict[int, int]:
    """Of captures with so many exchanges: files by packets of the capture, at most."""
    where = folder / "captures"
    where.mkdir()
    paths = [capture(where / f"{number}.pcap", count) for number, count in enumerate(counts)]
    done = ingest_on_spark(spark, paths, str(folder / "tables"), WriteOptions(), parts=5)
    assert done.counts["exchanges"] == sum(counts)
    captures = spark.read.parquet(str(folder / "tables" / "captures")).collect()
    packets = {row.digest[:16]: row.packets for row in captures}
    found: dict[int, int] = {}
    for each in (folder / "tables" / "exchanges").glob("day=*/capture=*"):
        of = packets[each.name.removeprefix("capture=")]
        found[of] = max(found.get(of, 0), len(list(each.glob("*.parquet"))))
    return found


def test_captures_with_few_rows_have_a_file_each(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_run, "ROWS_PER_TASK", 20)
    [files] = files_of_exchanges(spark, [12] * 6, tmp_path).values()
    assert files == 1


def test_a_capture_with_far_more_rows_is_written_by_more_than_one_task(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_run, "ROWS_PER_TASK", 100)
    files = files_of_exchanges(spark, [300, *[12] * 5], tmp_path)
    assert files[max(files)] == 2
