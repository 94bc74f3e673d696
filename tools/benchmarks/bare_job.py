"""The least that a PySpark program does: a session on two cores, one job with Arrow and Python, a Parquet file.

`python -m tools.benchmarks.bare_job FOLDER`
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession


def main(folder: str) -> None:
    """Write a file of one row from a task."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    out = str(Path(folder).absolute())

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            pq.write_table(pa.Table.from_batches([batch]), f"{out}/bare.parquet")
            yield batch

    assert spark.range(1, numPartitions=1).mapInArrow(write, "id BIGINT").count() == 1
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
