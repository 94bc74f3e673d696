"""Bundled captures in tables."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.conftest import spark, spark_log
from tests.pipeline.ingested import CAPTURES

if TYPE_CHECKING:
    from dissector.tables.reader import Tables

__all__ = ["spark", "spark_log"]


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Tables of some bundled captures, without the bytes of frames."""
    pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")
    from dissector.pipeline.ingest_here import ingest_here
    from dissector.pipeline.partition_rows import WriteOptions

    made = str(tmp_path_factory.mktemp("tables") / "tables")
    ingest_here(CAPTURES, made, WriteOptions())
    return made


@pytest.fixture
def opened() -> "Callable[[str], Tables]":
    """Opens the tables of a folder."""
    return tables_of


def tables_of(folder: str) -> "Tables":
    """The tables of a folder."""
    from dissector.tables.database import Database
    from dissector.tables.reader import Tables
    from dissector.tables.snapshot import snapshot

    seen = snapshot(f"file://{folder}")
    assert seen is not None
    return Tables(Database(), seen)


@pytest.fixture
def tables(folder: str) -> "Tables":
    """Those of the bundled captures."""
    return tables_of(folder)
