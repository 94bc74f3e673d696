"""Runs SQL over tables by Spark, on this machine or on a cluster."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from dissector.pipeline.frames import rows_of_files
from dissector.tables.engine import Convert, Dialect, Row, SparkDialect
from dissector.tables.file_systems import is_url
from dissector.tables.schemas import TableSchema, ddl

ROWS_PER_BATCH: Final = 256
"""Rows that go to Python in one batch: their bodies may be large."""
_TYPES: Final = {
    pa.bool_(): "BOOLEAN", pa.int32(): "INT", pa.int64(): "BIGINT", pa.binary(): "BINARY", pa.string(): "STRING",
}  # fmt: skip


class Spark:
    """A session of Spark, with views that only it has."""

    dialect: Dialect = SparkDialect()

    def __init__(self, spark: SparkSession) -> None:
        self.session = spark
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ROWS_PER_BATCH))

    def define_files(self, name: str, table: TableSchema, uris: Sequence[str]) -> None:
        if uris and is_url(uris[0]):
            self._view(name, rows_of_files(self.session, table, uris))
        elif uris:
            self._view(name, self.session.read.schema(ddl(table)).parquet(*uris))
        else:
            self._view(name, self.session.createDataFrame([], ddl(table)))

    def define_rows(self, name: str, rows: pa.Table) -> None:
        self._view(name, self.session.createDataFrame(rows, _ddl(rows.schema)).hint("broadcast"))

    def define(self, name: str, sql: str, *, kept: bool = False) -> None:
        found = self.session.sql(sql)
        self._view(name, found.persist() if kept else found)

    def define_converted(self, name: str, sql: str, convert: Convert, schema: pa.Schema) -> None:
        self._view(name, self._mapped(sql, convert, schema))

    def rows(self, sql: str) -> Iterator[Row]:
        return (row.asDict(recursive=True) for row in self.session.sql(sql).toLocalIterator())

    def converted(self, sql: str, convert: Convert, schema: pa.Schema, most: int | None) -> Iterator[tuple[Any, ...]]:
        found = self._mapped(sql, convert, schema).orderBy("number")
        return iter((found if most is None else found.limit(most)).toLocalIterator())

    def _mapped(self, sql: str, convert: Convert, schema: pa.Schema) -> DataFrame:
        def convert_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                made = list(convert(iter(batch.to_pylist())))
                columns = [pa.array([row[at] for row in made], field.type) for at, field in enumerate(schema)]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        return self.session.sql(sql).mapInArrow(convert_all, _ddl(schema))

    def _view(self, name: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(name)


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {_TYPES[field.type]}" for field in schema)
