"""Data frames: of a few rows that the driver has, and of files in the storage of tables."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.tables.arrow_types import arrow_columns, arrow_schema, column
from dissector.tables.file_systems import opened
from dissector.tables.schemas import TableSchema, ddl

READ_TASKS: Final = 64
"""Tasks that read the files of a table, at most."""
_ROWS_PER_BATCH: Final = 4_096


def frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], words: str) -> DataFrame:
    """Return a data frame of a few rows, with columns as Spark's DDL. A list of rows would go through a Python worker,
    whose start takes longer than everything else."""
    schema = arrow_columns(words)
    columns = [column([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    return spark.createDataFrame(pa.Table.from_arrays(columns, schema=schema), words)


def rows_of_files(spark: SparkSession, table: TableSchema, uris: Sequence[str]) -> DataFrame:
    """Return the rows of files of a table. Tasks read them as they were written, by pyarrow: Spark itself would need a
    library of Hadoop's for each kind of object store."""
    tasks = min(len(uris), READ_TASKS)
    named = frame(spark, [(number % tasks, uri) for number, uri in enumerate(uris)], "task INT, uri STRING")
    schema = arrow_schema(table)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for uri in (uri for batch in batches for uri in batch.column(1).to_pylist()):
            files, path = opened(uri)
            with pq.ParquetFile(path, filesystem=files) as file:
                there = set(schema.names).intersection(file.schema_arrow.names)
                for batch in file.iter_batches(_ROWS_PER_BATCH, columns=list(there)):
                    columns = (  # earlier versions lack some
                        batch.column(each.name) if each.name in there else pa.nulls(len(batch), each.type)
                        for each in schema
                    )
                    yield pa.RecordBatch.from_arrays(list(columns), schema=schema)

    return named.repartitionById(tasks, f.col("task")).mapInArrow(read, ddl(table))
