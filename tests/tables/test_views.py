"""Views of the tables: they have the rows that count, and answer alike in DuckDB and in Spark."""

import doctest
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")

import duckdb
import pyarrow.parquet as pq

import dissector
import dissector.api.tables
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.arrow_types import arrow_schema
from dissector.tables.delta_log import append_facts, create_tables
from dissector.tables.schemas import BY_NAME, KEYS
from dissector.tables.snapshot import snapshot
from dissector.tables.view_engine import ViewEngine
from dissector.tables.views import questions, statements
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.pipeline.contents import rows_that_count
from tests.tables.copied import copy_tables
from tests.tables.test_delta_log import gaps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def opened(statements: list[str]) -> "duckdb.DuckDBPyConnection":
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for statement in statements:
        connection.execute(statement)
    return connection


@pytest.mark.long
def test_the_example_of_the_api_runs(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(folder).parent)
    assert doctest.testmod(dissector.api.tables, globs={"dissector": dissector}) == (0, 4)


@pytest.mark.long
@pytest.mark.slow
def test_views_have_the_rows_that_count(folder: str) -> None:
    database = opened(dissector.table_views(folder))
    for name, rows in rows_that_count(folder).items():
        assert database.sql(f"SELECT count(*) FROM {name}").fetchall() == [(len(rows),)], name


@pytest.mark.long
def test_rows_of_a_killed_ingest_are_in_no_view(tmp_path: Path) -> None:
    create_tables(str(tmp_path))
    append_facts(str(tmp_path), gaps(tmp_path, "a", 1))
    assert opened(dissector.table_views(str(tmp_path))).sql("SELECT * FROM gaps").fetchall() == []


@pytest.mark.long
@pytest.mark.slow
def test_tables_without_rows_have_their_columns(tmp_path: Path) -> None:
    folder = tmp_path / "it's {here}, [or] not*"
    create_tables(str(folder))
    database = opened(dissector.table_views(str(folder)))
    for name, table in BY_NAME.items():
        assert database.table(name).columns == [each.name for each in (*KEYS, *table.columns)]
    for question in questions():
        assert database.table(question.name).fetchall() == [], question.name


@pytest.mark.long
def test_the_command_prints_what_duckdb_takes_as_one_script(folder: str) -> None:
    done = kdissect("tables", "views", folder, "--snapshot")
    assert opened([done.stdout.decode()]).sql("SELECT count(*) FROM exchanges").fetchall() != [(0,)]
    of_spark = kdissect("tables", "views", folder, "--for", "spark", "--snapshot").stdout
    assert of_spark.count(b"TEMPORARY VIEW") > len(BY_NAME)
    assert b"delta" not in done.stdout + of_spark


SCAN = "CREATE MACRO delta_scan(place) AS TABLE SELECT * FROM read_parquet(place || '/*.parquet', union_by_name = true)"
"""In place of DuckDB's extension, which is not in its package: right for tables of which nothing was removed."""


@pytest.mark.long
@pytest.mark.slow
def test_views_by_the_log_have_what_is_ingested_afterwards(tmp_path: Path) -> None:
    folder = copy_tables(tmp_path / "it's", str(PCAPS / "java.pcapng"))
    for name in BY_NAME:  # the macro needs a file
        if not any((folder / name).glob("*.parquet")):
            pq.write_table(arrow_schema(BY_NAME[name]).empty_table(), folder / name / "empty.parquet")
    script = kdissect("tables", "views", str(folder)).stdout.decode()
    assert ".parquet" not in script
    database = opened([SCAN, script])
    before = database.sql("SELECT count(*) FROM exchanges").fetchall()
    ingest_here([str(PCAPS / "trouble-slow.pcapng")], str(folder), WriteOptions())
    assert database.sql("SELECT count(*) FROM exchanges").fetchall() > before
    for name, rows in rows_that_count(folder).items():
        assert database.sql(f"SELECT count(*) FROM {name}").fetchall() == [(len(rows),)], name
    for question in questions():
        database.table(question.name).fetchall()


@pytest.mark.slow
def test_views_by_the_log_of_spark_name_no_file(tmp_path: Path) -> None:
    create_tables(str(tmp_path))
    done = kdissect("tables", "views", str(tmp_path), "--for", "spark")
    for name in BY_NAME:
        assert f" FROM delta.`{tmp_path}/{name}`;" in done.stdout.decode()
    assert b".parquet" not in done.stdout


def test_what_is_no_folder_of_tables_is_told(tmp_path: Path) -> None:
    with pytest.raises(dissector.CaptureError, match="no tables found"):
        dissector.table_views(str(tmp_path))
    with pytest.raises(ValueError, match="is not an engine: there are duckdb, spark"):
        dissector.table_views(str(tmp_path), "sqlite")


@pytest.mark.long
def test_a_member_that_joins_with_the_id_that_it_was_given_is_a_new_one(folder: str) -> None:
    """The broker refuses its first JoinGroup only to name it; its own words for that have its id."""
    rows = opened(dissector.table_views(folder)).sql("SELECT cause FROM rebalances").fetchall()
    assert ("a new member joined",) in rows
    assert not any("member-id" in cause for (cause,) in rows)


@pytest.mark.slow
@pytest.mark.spark
def test_spark_and_duckdb_answer_alike(folder: str, tmp_path: Path, spark: "SparkSession") -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    strange = tmp_path / "it's {here}, [or] not*"
    create_tables(str(strange))
    seen = snapshot(f"file://{strange}")
    assert seen is not None
    for statement in statements(seen, ViewEngine.SPARK):
        spark.sql(statement)
    assert spark.table("exchanges").columns == [each.name for each in (*KEYS, *BY_NAME["exchanges"].columns)]
    database = opened(dissector.table_views(folder))
    for statement in dissector.table_views(folder, "spark"):
        spark.sql(statement)
    for question in questions():
        answers = (spark.table(question.name).toArrow(), database.table(question.name).to_arrow_table())
        assert answers[0].to_pylist() == answers[1].to_pylist(), question.name
