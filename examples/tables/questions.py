"""Asks the questions of a platform team of the tables that `kdissect ingest` wrote: by DuckDB, or by Spark.

Each answer is a view of `kdissect tables views`, whose SQL both run.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

import dissector


class Question(NamedTuple):
    """A question, the view that answers it, and the column that is worth a picture."""

    name: str
    words: str
    plot: str

    @property
    def sql(self) -> str:
        return f"SELECT * FROM {self.name}"


QUESTIONS = (
    Question("removed_versions", "Which clients use versions that Kafka 4.0 removed?", "requests"),
    Question("producers", "Which clients, in which version, produce to which topic?", "records"),
    Question("produce_latency", "How long does each broker take for a Produce?", "p99_ms"),
    Question("rebalances", "Why do consumer groups rebalance?", "rebalances"),
    Question("consumer_lag", "How far behind are consumer groups?", "lag"),
    Question("topic_traffic", "Which topics are there, and how much goes in and out?", "produced_bytes"),
    Question("partition_skew", "How many records a second does each partition get, and how unevenly?", "skew"),
    Question("large_batches", "How close do batches come to what a broker takes?", "of_limit"),
    Question("uncompressed_producers", "Who produces without compression?", "plain_bytes"),
    Question("throttled_clients", "Which clients do quotas throttle?", "total_ms"),
    Question("error_budget", "Which share of requests fails?", "failing"),
)


def duckdb_tables(tables: str) -> Callable[[str], pa.Table]:
    """Open a folder of tables with DuckDB. Return what answers SQL."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for statement in dissector.table_views(tables):
        connection.execute(statement)
    return lambda sql: connection.sql(sql).to_arrow_table()


def spark_tables(spark: Any, tables: str) -> Callable[[str], pa.Table]:
    """Open a folder of tables with a Spark session. Return what answers SQL."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    for statement in dissector.table_views(tables, "spark"):
        spark.sql(statement)
    return lambda sql: spark.sql(sql).toArrow()
