"""Files looked over: `plan`, side by side by the tasks of Spark; on one machine here, as far as it comes while Spark
starts. In the order of the files."""

import os
import pickle
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from dissector.pipeline.arrow import frame
from dissector.pipeline.plan import Plan, plan

TASKS_A_CORE: Final = 4
"""Tasks that look over many files: more cost more than they even out."""


class _LeftError(Exception):
    """Nobody waits for a file any more."""


class Ahead:
    """Files looked over one behind the other, until somebody asks. A thread begins with it at once, and is at its end
    when the context is left: one that was in the middle of something when Python ends would take it down."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self._plans: list[Plan] = []
        self._asked = threading.Event()
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(self, *_: object) -> None:
        self._asked.set()
        self._left.set()
        self._thread.join()

    def _look(self) -> None:
        with suppress(Exception):  # a task of Spark meets it again, and it is told
            for path in self._paths:
                if self._asked.is_set():
                    return
                self._plans.append(plan(path, between=self._stay))

    def _stay(self) -> None:
        if self._left.is_set():
            raise _LeftError

    def plans(self) -> list[Plan]:
        """Those of the first files; the one that it is at is looked over to its end."""
        self._asked.set()
        self._thread.join()
        return self._plans


def plans_of(spark: SparkSession, paths: Sequence[str], ahead: Ahead | None = None) -> list[Plan]:
    """Files looked over, in their order: those that are not by now are left to Spark."""
    made = ahead.plans() if ahead is not None else []
    return made + _by_tasks(spark, paths[len(made) :])


def _by_tasks(spark: SparkSession, paths: Sequence[str]) -> list[Plan]:
    if not paths:
        return []
    tasks = len(paths) if len(paths) <= TASKS_A_CORE else min(len(paths), TASKS_A_CORE * cores(spark))
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
