"""One session of Spark for all modules here, and bundled captures brought into tables once: to start one takes longer
than most tests. Where there is no Java, or no pyspark, what asks for it is skipped."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.needs import needs_spark
from tests.pipeline.events import logged
from tests.pipeline.ingested import CAPTURES, Ingested

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_START: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For a JVM that sees few rows: its second compiler would use a third of the CPU of a run."""


@pytest.fixture(scope="package")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the session's event log."""
    return tmp_path_factory.mktemp("spark") / "log"


@pytest.fixture(scope="package")
def spark(spark_log: Path) -> "Iterator[SparkSession]":
    """A session on two cores that tries a failed task again."""
    needs_spark()
    from dissector.pipeline.spark_session import session

    settings = {"spark.sql.shuffle.partitions": "2", **QUICK_START, **logged(spark_log)}
    with session("local[2,4]", None, settings, verbose=False) as made:
        yield made


@pytest.fixture(scope="package")
def ingested(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    """Some bundled captures, brought into tables with their frames' bytes left out."""
    from dissector.pipeline.ingest_on_spark import ingest_on_spark
    from dissector.pipeline.partition_rows import WriteOptions

    folder = str(tmp_path_factory.mktemp("tables") / "tables")
    ingest_on_spark(spark, CAPTURES, folder, WriteOptions())
    return Ingested(spark, folder, CAPTURES)
