"""Files looked over by the tasks of Spark: `plan`, side by side, in the order of the files."""

import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dissector.pipeline.arrow import frame
from dissector.pipeline.plan import Plan, plan

TASKS_A_CORE: Final = 4
"""Tasks that look over many files: more cost more than they even out."""


def plans_of(spark: SparkSession, paths: Sequence[str]) -> list[Plan]:
    """Files looked over, in their order."""
    tasks = max(1, len(paths) if len(paths) <= TASKS_A_CORE else min(len(paths), TASKS_A_CORE * cores(spark)))
    told = [(number % tasks, number, os.fsencode(path)) for number, path in enumerate(paths)]
    asked = frame(spark, told, "task INT, number INT, path BINARY")
    planned = asked.repartitionById(tasks, f.col("task")).mapInArrow(_plan_all, "number INT, plan BINARY")
    return [pickle.loads(row.plan) for row in sorted(planned.collect(), key=lambda row: row.number)]


def _plan_all(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in some:
        for number, path in zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True):
            made = pickle.dumps(plan(os.fsdecode(path)))
            yield pa.RecordBatch.from_pydict(
                {"number": pa.array([number], pa.int32()), "plan": pa.array([made], pa.binary())}
            )


def cores(spark: SparkSession) -> int:
    """How many tasks Spark runs side by side: where a server does not say, as many as it makes of a range."""
    if hasattr(spark, "_jsparkSession"):
        return spark.sparkContext.defaultParallelism
    return spark.range(1 << 10).select(f.spark_partition_id()).distinct().count()
