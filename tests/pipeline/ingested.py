"""Bundled captures that are brought into tables once for all modules that ask: the fixture is in `conftest`."""

from typing import TYPE_CHECKING, NamedTuple

from tests.conftest import PCAPS

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
