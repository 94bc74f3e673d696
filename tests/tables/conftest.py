"""Bundled captures in tables, read by each engine: DuckDB in all runs, Spark where it is asked for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.conftest import spark, spark_log
from tests.pipeline.ingested import CAPTURES

if TYPE_CHECKING:
    from dissector.tables.reader import Tables

__all__ = ["spark", "spark_log"]
ENGINES = ["duckdb", pytest.param("spark", marks=[pytest.mark.slow, pytest.mark.spark])]


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Tables of some bundled captures, without the bytes of frames."""
    pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")
    from dissector.pipeline.ingest_here import ingest_here
    from dissector.pipeline.partition_rows import WriteOptions

    made = str(tmp_path_factory.mktemp("tables") / "tables")
    ingest_here(CAPTURES, made, WriteOptions())
    return made


@pytest.fixture(params=ENGINES)
def opened(request: pytest.FixtureRequest) -> "Callable[[str], Tables]":
    """Opens the tables of a folder."""
    if request.param == "duckdb":
        from dissector.tables.duckdb_engine import DuckDb

        engine: Any = DuckDb()
    else:
        session = request.getfixturevalue("spark")
        from dissector.pipeline.spark_engine import Spark

        engine = Spark(session)
    return lambda folder: tables_of(engine, folder)


def tables_of(engine: Any, folder: str) -> "Tables":
    """The tables of a folder, read by an engine."""
    from dissector.tables.reader import Tables
    from dissector.tables.snapshot import snapshot

    seen = snapshot(f"file://{folder}")
    assert seen is not None
    return Tables(engine, folder, seen)


@pytest.fixture
def tables(opened: "Callable[[str], Tables]", folder: str) -> "Tables":
    """Those of the bundled captures."""
    return opened(folder)
