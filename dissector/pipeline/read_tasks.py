"""Spark's tasks that read packets of capture files and write them for partitions. A task reads one input split, or some
small ones, and returns the locations of blocks (`shuffled`).

Splits go to tasks as rows, not by a Data Source of Spark's: to plan one, the driver starts the Python of workers, which
takes seconds, and is not there on YARN.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.pipeline.frames import frame
from dissector.pipeline.shuffled import LOCATIONS, write_blocks
from dissector.pipeline.splits import InputSplit, route


def locations(spark: SparkSession, splits: Sequence[InputSplit], parts: int, folder: str) -> DataFrame:
    """Write blocks of splits to a folder of the storage, for so many partitions; return their locations."""
    groups = group_splits(splits, 2 * parts)
    numbered = frame(
        spark, [(number, pickle.dumps(group)) for number, group in enumerate(groups)], "task INT, splits BINARY"
    )

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pickled in batch.column(1).to_pylist():
                yield from write_blocks(
                    (each for split in pickle.loads(pickled) for each in route(split, parts)), folder
                )

    return numbered.repartitionById(len(groups), f.col("task")).mapInArrow(read, LOCATIONS)


def group_splits(splits: Sequence[InputSplit], tasks: int) -> list[list[InputSplit]]:
    """Group splits for about so many tasks. Small neighbors share a task, as a task costs more than they do."""
    enough = sum(split.packets for split in splits) / tasks
    found: list[list[InputSplit]] = []
    remaining = 0.0
    for split in splits:
        if remaining <= 0:
            found.append([])
            remaining = enough
        found[-1].append(split)
        remaining -= split.packets
    return found
