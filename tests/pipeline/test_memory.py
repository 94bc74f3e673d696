"""What a worker holds does not grow with what it reads."""

import gzip
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")

from dissector.pipeline.file_scan import scan_file
from dissector.pipeline.splits import route, splits
from tests.conftest import PCAPS
from tools.benchmarks.measuring import measured
from tools.benchmarks.skewed import skewed

READ = """
import sys
from dissector.pipeline.partition_rows import WriteOptions, read_shared_state, rows
from dissector.pipeline.origins import origins
from dissector.pipeline.file_scan import scan_file
from dissector.pipeline.splits import route, splits
from dissector.tables.data_files import Output, write_rows
from dissector.index.shared_state import SharedState
from dissector.transport.partitions import Partition
scans = [scan_file(sys.argv[1])]
found = splits(scans)
def blocks():
    return (each.block for split in found for each in route(split, 1))
shared_state = SharedState.merged([read_shared_state(blocks(), Partition(0, 1))])
made = rows(blocks(), Partition(0, 1), shared_state, origins(scans, found, 1), WriteOptions())
written = write_rows(made, Output(sys.argv[2], "_runs/1", 1))
assert {each.table: each.rows for each in written}["exchanges"] >= int(sys.argv[3])
"""
"""A part, as a task reads it."""


def test_how_many_parts_there_are_follows_from_what_they_hold(tmp_path: Path) -> None:
    """And not from the size of a file, which may be compressed."""
    plain = PCAPS / "java.pcapng"
    packed = tmp_path / "java.pcapng.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    blocks = [each.block for split in splits([scan_file(str(plain))]) for each in route(split, 1)]
    held = sum(len(block.heads) + len(block.data) for block in blocks if block.heads)
    assert scan_file(str(plain)).block_bytes == scan_file(str(packed)).block_bytes
    assert held <= scan_file(str(plain)).block_bytes < held * 1.2, "what can't be Kafka's is not dealt out"


@pytest.mark.slow
@pytest.mark.spark
def test_a_giant_connection_takes_no_more_memory_than_a_smaller_one(tmp_path: Path) -> None:
    peaks = {}
    for exchanges in (75_000, 150_000):
        path = tmp_path / f"{exchanges}.pcapng"
        skewed(path, exchanges, 300)
        peaks[exchanges] = measured([sys.executable, "-c", READ, str(path), str(tmp_path), str(exchanges)], 1).megabytes
    assert peaks[150_000] < 400
    assert peaks[150_000] - peaks[75_000] < 50, "a kilobyte kept for each exchange is 75 MB"
