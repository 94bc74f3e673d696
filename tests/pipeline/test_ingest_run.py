"""How an ingest divides its work: into as many files as it has tasks, and findings as if it were not divided."""

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from pyspark.sql import SparkSession

from dissector.pipeline import ingest_on_spark as module
from dissector.pipeline import observations
from dissector.pipeline.ingest_on_spark import ingest_on_spark
from dissector.pipeline.partition_rows import WriteOptions
from tests.conftest import PCAPS
from tests.pipeline.contents import rows_that_count
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


def test_findings_are_the_same_whoever_aggregates_observations(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver those of few rows, tasks those of many, some scopes each."""
    paths = [
        str(PCAPS / f"{name}.pcapng")
        for name in ("trouble-rebalance-loop", "trouble-error-storm", "trouble-consumer-lag")
    ]
    found = []
    for most, per_task in ((observations.MOST_HERE, module.OBSERVATIONS_PER_TASK), (0, 10)):
        monkeypatch.setattr(module, "MOST_HERE", most)
        monkeypatch.setattr(module, "OBSERVATIONS_PER_TASK", per_task)
        out = tmp_path / str(most)
        ingest_on_spark(spark, paths, str(out), WriteOptions(), parts=2)
        found.append(Counter((row["code"], row["path"], row["message"]) for row in rows_that_count(out)["findings"]))
    assert found[0] == found[1]
    assert len(found[0]) > 5
