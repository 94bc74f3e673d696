"""Small data frames, made by the driver."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dissector.tables.arrow_types import arrow_columns, column


def frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], words: str) -> DataFrame:
    """Return a data frame of a few rows, with columns as Spark's DDL. A list of rows would go through a Python worker,
    whose start takes longer than everything else."""
    schema = arrow_columns(words)
    columns = [column([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=schema), words)
