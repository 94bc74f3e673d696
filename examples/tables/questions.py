"""Asks the questions of a platform team of the tables that `kdissect ingest` wrote: by DuckDB, or by Spark.

The same SQL, one file a question in `questions/`, runs on both.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

TABLES = ("captures", "connections", "exchanges", "batches", "records", "partitions", "groups", "findings")
FOLDER = Path(__file__).parent / "questions"


class Question(NamedTuple):
    """A question, its SQL, and the column that is worth a picture."""

    name: str
    words: str
    plot: str
    sql: str


def questions() -> Iterator[Question]:
    """Yield all questions, by name."""
    for file in sorted(FOLDER.glob("*.sql")):
        first, second, *rest = file.read_text().splitlines()
        yield Question(file.stem, first.removeprefix("-- "), second.removeprefix("-- plot: "), "\n".join(rest))


def files_of(tables: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each table that has rows, and its files."""
    for name in TABLES:
        files = DeltaTable(f"{tables}/{name}").file_uris()
        if files:
            yield name, files


def duckdb_tables(tables: str) -> Callable[[str], pa.Table]:
    """Open a folder of tables with DuckDB. Return what answers SQL."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, files in files_of(tables):
        counts = "" if name == "captures" else "WHERE (capture, epoch) IN (SELECT (capture, epoch) FROM captures)"
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files}) {counts}")
    return lambda sql: connection.sql(sql).to_arrow_table()


def spark_tables(spark: Any, tables: str) -> Callable[[str], pa.Table]:
    """Open a folder of tables with a Spark session. Return what answers SQL."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for name, files in files_of(tables):
        rows = spark.read.parquet(*files)
        if name != "captures":
            rows = rows.join(spark.table("captures"), ["capture", "epoch"], "left_semi")
        rows.createOrReplaceTempView(name)
    return lambda sql: spark.sql(sql).toArrow()
