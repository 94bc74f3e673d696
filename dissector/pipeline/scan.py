"""Scans many files with `file_scan`, in parallel in Spark's tasks, but for those that `BackgroundScan` has scanned.

Results are in the order of the files.
"""

import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dissector.pipeline.background_scan import BackgroundScan
from dissector.pipeline.file_scan import FileScan, scan_file
from dissector.pipeline.frames import frame

TASKS_PER_CORE: Final = 4
"""Tasks per core for a scan of many files: more cost more than they balance."""


def scan_files(spark: SparkSession, paths: Sequence[str], ahead: BackgroundScan | None = None) -> list[FileScan]:
    """Return the scans of files, in their order. Spark scans those that are not in `ahead` yet."""
    done = ahead.scans() if ahead is not None else []
    return done + _scan_in_tasks(spark, paths[len(done) :])


def _scan_in_tasks(spark: SparkSession, paths: Sequence[str]) -> list[FileScan]:
    if not paths:
        return []
    tasks = len(paths) if len(paths) <= TASKS_PER_CORE else min(len(paths), TASKS_PER_CORE * cores(spark))
    numbered = [(number % tasks, number, os.fsencode(path)) for number, path in enumerate(paths)]
    files = frame(spark, numbered, "task INT, number INT, path BINARY")
    scans = files.repartitionById(tasks, f.col("task")).mapInArrow(_scan_batch, "number INT, scan BINARY")
    return [pickle.loads(row.scan) for row in sorted(scans.collect(), key=lambda row: row.number)]


def _scan_batch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number, path in zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True):
            pickled_scan = pickle.dumps(scan_file(os.fsdecode(path)))
            yield pa.RecordBatch.from_pydict(
                {"number": pa.array([number], pa.int32()), "scan": pa.array([pickled_scan], pa.binary())}
            )


def cores(spark: SparkSession) -> int:
    """Return how many tasks Spark runs in parallel. A Connect server does not report it; there, the number of
    partitions of a range."""
    if hasattr(spark, "_jsparkSession"):
        return spark.sparkContext.defaultParallelism
    return spark.range(1 << 10).select(f.spark_partition_id()).distinct().count()
