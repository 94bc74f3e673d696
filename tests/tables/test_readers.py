"""Every reader of Delta Lake gives the same answers, of every table and of every column: DuckDB, polars, pandas, Arrow,
the library's own query engine, and Spark without any library of Delta's.

Traps of the log: statistics that are wrong or there for some columns only make readers skip files that have the rows.
"""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")
pytest.importorskip("polars", reason="NOT TESTED with polars: it is not installed")

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from dissector.tables.reader import Tables
from dissector.tables.schemas import BY_NAME
from dissector.tables.snapshot import Snapshot
from tests.conftest import some_of
from tests.pipeline.contents import rows_that_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUESTIONS = (
    "SELECT api, client_id, count(*) AS n, max(latency_ns) AS slowest FROM exchanges WHERE kind = 'exchange'"
    " GROUP BY api, client_id ORDER BY api, client_id",
    "SELECT topic, codec, count(*) AS n, CAST(sum(size) AS BIGINT) AS bytes FROM batches WHERE api = 'Produce'"
    " GROUP BY topic, codec ORDER BY topic, codec",
    "SELECT f.code, e.api, count(*) AS n FROM findings f JOIN exchanges e ON f.capture = e.capture AND"
    " f.epoch = e.epoch AND f.packet = e.packet AND f.start = e.start GROUP BY f.code, e.api ORDER BY f.code, e.api",
)
"""In SQL that all engines have."""
NAMES = ("exchanges", "batches", "findings")
Answer = list[dict[str, Any]]


def table(folder: str, name: str) -> DeltaTable:
    return DeltaTable(f"{folder}/{name}")


def by_duckdb(folder: str) -> list[Answer]:
    database = duckdb.connect()
    for name in NAMES:
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({table(folder, name).file_uris()})")
    return [database.sql(sql).to_arrow_table().to_pylist() for sql in QUESTIONS]


def by_polars(folder: str) -> list[Answer]:
    context = pl.SQLContext({name: pl.scan_delta(f"{folder}/{name}") for name in NAMES})
    return [context.execute(sql, eager=True).to_dicts() for sql in QUESTIONS]


def by_deltalake(folder: str) -> list[Answer]:
    engine = QueryBuilder()
    for name in NAMES:
        engine = engine.register(name, table(folder, name))
    return [pa.table(engine.execute(sql).read_all()).to_pylist() for sql in QUESTIONS]


def by_pandas(folder: str) -> list[Answer]:
    exchanges, batches, findings = (table(folder, name).to_pandas() for name in NAMES)
    some = exchanges[exchanges.kind == "exchange"].groupby(["api", "client_id"], dropna=False)
    requests = some.agg(n=("kind", "size"), slowest=("latency_ns", "max"))
    produced = (
        batches[batches.api == "Produce"].groupby(["topic", "codec"]).agg(n=("size", "size"), bytes=("size", "sum"))
    )
    joined = findings.merge(exchanges, on=["capture", "epoch", "packet", "start"])
    found = joined.groupby(["code", "api"]).agg(n=("code", "size"))
    return [json.loads(each.reset_index().to_json(orient="records")) for each in (requests, produced, found)]


@pytest.fixture(scope="module")
def answers(folder: str) -> list[Answer]:
    """Counted by Python, of the rows as they are in the files."""
    rows = rows_that_count(folder)
    some = [row for row in rows["exchanges"] if row["kind"] == "exchange"]
    requests: dict[Any, list[Any]] = {}
    for row in some:
        requests.setdefault((row["api"], row["client_id"]), []).append(row["latency_ns"])
    produced: dict[Any, list[int]] = {}
    for row in rows["batches"]:
        if row["api"] == "Produce":
            produced.setdefault((row["topic"], row["codec"]), []).append(row["size"])
    apis = {(row["capture"], row["packet"], row["start"]): row["api"] for row in rows["exchanges"]}
    codes = Counter((row["code"], apis[row["capture"], row["packet"], row["start"]]) for row in rows["findings"])
    return [
        [
            {
                "api": api,
                "client_id": client,
                "n": len(each),
                "slowest": max((n for n in each if n is not None), default=None),
            }
            for (api, client), each in requests.items()
        ],
        [
            {"topic": topic, "codec": codec, "n": len(each), "bytes": sum(each)}
            for (topic, codec), each in produced.items()
        ],
        [{"code": code, "api": api, "n": count} for (code, api), count in codes.items()],
    ]


def assert_same(found: list[Answer], expected: list[Answer]) -> None:
    for some, wanted in zip(found, expected, strict=True):
        assert wanted
        assert sorted(map(repr, some)) == sorted(map(repr, wanted))


@pytest.mark.slow
@pytest.mark.parametrize("reader", [by_duckdb, by_polars, by_deltalake])
def test_readers_give_the_same_answers(folder: str, answers: list[Answer], reader: Any) -> None:
    assert_same(reader(folder), answers)


def test_pandas_gives_the_same_answers(folder: str, answers: list[Answer]) -> None:
    """It makes numbers with nulls floating."""
    for some, wanted in zip(by_pandas(folder), answers, strict=True):
        plain = [{name: int(each) if isinstance(each, float) else each for name, each in row.items()} for row in some]
        assert sorted(map(repr, plain)) == sorted(map(repr, wanted))


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_every_reader_reads_every_table(folder: str, name: str) -> None:
    """Rows and columns; a reader of Parquet has nothing to read where a table has no file."""
    delta = table(folder, name)
    columns, files = [field.name for field in delta.schema().fields], delta.file_uris()
    engine = QueryBuilder().register("t", delta)
    read, pandas = pl.scan_delta(f"{folder}/{name}").collect(), delta.to_pandas()
    found = {
        "polars": (read.columns, read.height), "pandas": (list(pandas.columns), len(pandas)),
        "deltalake": _shape(pa.table(engine.execute("SELECT * FROM t").read_all())),
        "Arrow": _shape(delta.to_pyarrow_table()),
    }  # fmt: skip
    if files:
        found["DuckDB"] = _shape(duckdb.connect().sql(f"SELECT * FROM read_parquet({files})").to_arrow_table())
    count = sum(row["num_records"] for row in pa.table(delta.get_add_actions()).to_pylist())
    assert found == dict.fromkeys(found, (columns, count))
    assert files or name in ("gaps", "quarantine")


def _shape(read: pa.Table) -> tuple[list[str], int]:
    return read.column_names, read.num_rows


@pytest.mark.slow
@pytest.mark.spark
def test_spark_without_jars_reads_every_table(folder: str, spark: "SparkSession") -> None:
    for name in BY_NAME:
        delta = table(folder, name)
        if delta.file_uris():
            rows = spark.read.parquet(*delta.file_uris())
            assert rows.columns == [field.name for field in delta.schema().fields]
            assert len(rows.toArrow()) == delta.to_pyarrow_table().num_rows > 0


@pytest.mark.slow
@pytest.mark.spark
def test_spark_without_jars_gives_the_same_answers(folder: str, answers: list[Answer], spark: "SparkSession") -> None:
    for name in NAMES:
        spark.read.parquet(*table(folder, name).file_uris()).createOrReplaceTempView(name)
    assert_same([spark.sql(sql).toArrow().to_pylist() for sql in QUESTIONS], answers)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    some_of([name for name in BY_NAME if name not in ("gaps", "quarantine")], "exchanges"),
)
def test_no_reader_skips_a_row_for_what_the_log_says_of_a_column(folder: str, name: str) -> None:
    """Trap: where some columns have statistics, a reader takes a column without for an empty one."""
    delta = table(folder, name)
    assert delta.file_uris()
    rows = pa.concat_tables([pa.table(pl.read_parquet(uri).to_arrow()) for uri in delta.file_uris()])
    lazy, engine = pl.scan_delta(f"{folder}/{name}"), QueryBuilder().register("t", delta)
    for field in rows.schema:
        if pa.types.is_nested(field.type) or pa.types.is_large_binary(field.type):
            continue
        column, of = rows.column(field.name), pc.field(field.name)
        nulls = column.null_count
        assert lazy.filter(pl.col(field.name).is_null()).select(pl.len()).collect().item() == nulls, field.name
        counted = pa.table(engine.execute(f"SELECT count(*) AS n FROM t WHERE {field.name} IS NULL").read_all())
        assert counted.column("n").to_pylist() == [nulls], field.name
        assert delta.to_pyarrow_table(columns=[field.name], filters=of.is_null()).num_rows == nulls, field.name
        for value in {column.drop_null()[at].as_py() for at in range(min(3, len(column) - nulls))}:
            same = pc.sum(pc.equal(column, pa.scalar(value, field.type))).as_py()
            assert lazy.filter(pl.col(field.name) == pl.lit(value)).select(pl.len()).collect().item() == same
            assert delta.to_pyarrow_table(columns=[field.name], filters=of == value).num_rows == same, field.name


def test_the_log_has_the_exact_size_and_number_of_rows_of_each_file(folder: str) -> None:
    """Trap: a wrong size is committed, and readers of object stores fail at it."""
    for name in BY_NAME:
        actions = pa.table(table(folder, name).get_add_actions())
        for row in actions.to_pylist():
            path = Path(folder) / name / row["path"]
            assert path.stat().st_size == row["size_bytes"]
            assert pl.read_parquet(path).height == row["num_records"]


def test_tables_ask_of_readers_what_all_of_them_can(folder: str) -> None:
    """Trap: who reads the files by their names does not see deletion vectors."""
    for name in BY_NAME:
        delta = table(folder, name)
        assert (delta.protocol().min_reader_version, delta.protocol().reader_features or []) == (1, []), name
        assert not delta.metadata().partition_columns, "their values are not in the files"


def test_a_problem_of_a_run_is_counted_once_however_many_captures_it_read() -> None:
    problem = {"code": "no-keys", "severity": "warning", "path": "", "message": "keys are missing"}
    own = problem | {"message": "cut"}
    rows = [(1, [problem]), (1, [problem, own]), (2, [problem]), (2, None)]
    captures = [{"epoch": epoch, "problems": problems} for epoch, problems in rows]
    tables = object.__new__(Tables)
    tables._seen = Snapshot(captures, {}, {})
    assert tables.count() == (4, 3)
