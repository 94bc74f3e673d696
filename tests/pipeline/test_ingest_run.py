"""In how many files an ingest writes: as many as it has tasks, however many captures there are."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from pyspark.sql import SparkSession

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


def test_many_captures_have_few_files(spark: SparkSession, tmp_path: Path) -> None:
    where = tmp_path / "captures"
    where.mkdir()
    paths = [capture(where / f"{number}.pcap", 12) for number in range(12)]
    done = ingest_on_spark(spark, paths, str(tmp_path / "tables"), WriteOptions(), parts=2)
    assert done.counts["exchanges"] == 12 * 12
    assert 0 < len(list((tmp_path / "tables" / "exchanges").glob("*.parquet"))) <= 2
