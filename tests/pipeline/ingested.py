"""Bundled captures as tables: one session of Spark and one run for all tests of a module. Skipped without Java."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.conftest import PCAPS
from tests.needs import needs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = (
    "java",
    "aiokafka",
    "librdkafka-pipelined",
    "java-sasl-plain",
    "java-0.10.2",
    "java-streams",
    "java-cooperative",
)
CAPTURES = [str(PCAPS / f"{name}.pcapng") for name in NAMES]


class Ingested(NamedTuple):
    """A session, the folder of the tables, the captures that they were made of."""

    spark: "SparkSession"
    folder: str
    captures: list[str]


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ingested]:
    """Some bundled captures, brought into tables with their frames' bytes left out."""
    needs("java")
    if find_spec("pyspark") is None:
        pytest.skip("NOT TESTED with pyspark: it is not installed")
    from dissector.pipeline.ingest import ingest
    from dissector.pipeline.parts import Keeping
    from dissector.pipeline.spark import session

    folder = str(Path(tmp_path_factory.mktemp("tables")) / "tables")
    with session("local[2]", None, {"spark.sql.shuffle.partitions": "2"}, verbose=False) as spark:
        ingest(spark, CAPTURES, folder, Keeping())
        yield Ingested(spark, folder, CAPTURES)
