"""Tables as pyiceberg reads them: the rows of Delta's log after each change, and no table of others changed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")
pytest.importorskip("pyiceberg", reason="NOT TESTED with pyiceberg: it is not installed")

import pyarrow as pa
from deltalake import DeltaTable
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import StaticTable

from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables.delta_log import remove_captures
from dissector.tables.iceberg import IcebergTable, write_iceberg
from dissector.tables.maintenance import compact, vacuum
from dissector.tables.schemas import BY_NAME, FACT_TABLES
from dissector.tables.snapshot import seen_tables
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS
from tests.pipeline.contents import lines
from tests.tables.copied import copy_tables

pytestmark = pytest.mark.slow

JAVA, SLOW = (str(PCAPS / f"{name}.pcapng") for name in ("java", "trouble-slow"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_tables(tmp_path / "tables", JAVA)


def table_of(folder: Path, name: str) -> StaticTable:
    metadata = folder / "_iceberg" / name / "metadata"
    newest = (metadata / "version-hint.text").read_text()
    return StaticTable.from_metadata(f"file://{metadata}/{newest}.metadata.json")


SOME = ("exchanges", "captures")
"""Tables whose rows each change changes: after the first, these stand for the others, which take seconds."""


def assert_equal(folder: Path, names: Iterable[str] = BY_NAME) -> None:
    """As pyiceberg reads the rows of each table, they are those of Delta's log."""
    for name in names:
        expected = DeltaTable(folder / name).to_pyarrow_table().to_pylist()
        assert lines(table_of(folder, name).scan().to_arrow().to_pylist()) == lines(expected), name


def with_catalog(folder: Path, *words: str, command: str = "iceberg") -> "subprocess.CompletedProcess[bytes]":
    """In a process that imports pyiceberg, which reads its configuration then."""
    environment = {"TYPE": "sql", "URI": f"sqlite:///{folder.parent}/catalog.db"}
    return subprocess.run(
        [sys.executable, "-m", "dissector", "tables", command, str(folder), "--catalog", "lab", *words],
        env=os.environ | {f"PYICEBERG_CATALOG__LAB__{name}": value for name, value in environment.items()},
        capture_output=True,
        check=False,
    )


def catalog_of(folder: Path) -> Catalog:
    return load_catalog("lab", uri=f"sqlite:///{folder.parent}/catalog.db", type="sql")


def write(folder: Path) -> list[IcebergTable]:
    """As the command, here, where pyiceberg is imported: it takes longer than to write."""
    return list(write_iceberg(f"file://{folder}", seen_tables(str(folder))))


@pytest.mark.long
def test_the_command_says_where_each_table_is(folder: Path) -> None:
    done = kdissect("tables", "iceberg", str(folder))
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[0] for line in done.stdout.decode().splitlines()] == [*FACT_TABLES, "captures"]
    assert " added, 0 removed" in done.stderr.decode()
    assert_equal(folder, SOME)


@pytest.mark.long
def test_rows_are_those_of_delta_after_each_change(folder: Path) -> None:
    write(folder)
    assert_equal(folder)
    ingest_here([SLOW], str(folder), WriteOptions())
    with pytest.raises(AssertionError):
        assert_equal(folder, SOME)  # it is of the moment when it was written
    write(folder)
    assert_equal(folder, SOME)
    compact(str(folder))
    write(folder)
    vacuum(str(folder), 0)
    assert_equal(folder, SOME)
    remove_captures(str(folder), [seen_tables(str(folder)).captures[0]["capture"]])
    write(folder)
    assert_equal(folder, SOME)
    assert len(table_of(folder, "exchanges").metadata.snapshots) == 1


@pytest.mark.long
def test_what_has_not_changed_is_not_written_again(folder: Path) -> None:
    write(folder)
    before = table_of(folder, "exchanges").metadata
    assert not any(each.added or each.removed for each in write(folder))
    assert table_of(folder, "exchanges").metadata == before


@pytest.mark.long
def test_columns_of_users_are_there(folder: Path) -> None:
    write(folder)
    DeltaTable(folder / "exchanges").alter.add_columns([pa_field("site")])
    ingest_here([SLOW], str(folder), WriteOptions())
    write(folder)
    assert_equal(folder, SOME)
    assert "site" in table_of(folder, "exchanges").schema().column_names


def pa_field(name: str) -> object:
    from deltalake import Schema

    [field] = Schema.from_arrow(pa.schema([(name, pa.string())])).fields
    return field


@pytest.mark.long
def test_tables_that_were_moved_get_metadata_of_their_own(folder: Path, tmp_path: Path) -> None:
    write(folder)
    moved = Path(shutil.move(folder, tmp_path / "moved"))
    write(moved)
    assert_equal(moved, SOME)
    assert not folder.exists()


@pytest.mark.long
def test_a_catalog_knows_the_tables(folder: Path) -> None:
    for files, names in (([SLOW], BY_NAME), ([], SOME)):
        assert with_catalog(folder, "--namespace", "wire").returncode == 0
        for name in names:
            expected = DeltaTable(folder / name).to_pyarrow_table().to_pylist()
            found = catalog_of(folder).load_table(f"wire.{name}").scan().to_arrow().to_pylist()
            assert lines(found) == lines(expected), name
        if files:
            ingest_here(files, str(folder), WriteOptions())


@pytest.mark.long
def test_upkeep_brings_a_catalog_up_to_date_before_it_removes_files(folder: Path) -> None:
    """Without its catalog, a reader of that would look for files that are gone."""
    assert with_catalog(folder, "--namespace", "wire").returncode == 0
    ingest_here([SLOW], str(folder), WriteOptions())
    done = with_catalog(folder, "--namespace", "wire", "--older-than", "0", command="upkeep")
    assert done.returncode == 0, done.stderr
    assert b": iceberg: " in done.stderr
    for name in BY_NAME:
        expected = DeltaTable(folder / name).to_pyarrow_table().to_pylist()
        found = catalog_of(folder).load_table(f"wire.{name}").scan().to_arrow().to_pylist()
        assert lines(found) == lines(expected), name


@pytest.mark.long
def test_upkeep_with_a_catalog_that_is_none_removes_nothing(folder: Path) -> None:
    files = set(folder.rglob("*.parquet"))
    done = kdissect("tables", "upkeep", str(folder), "--catalog", "nowhere", "--older-than", "0")
    assert done.returncode == 2
    assert b"vacuum" not in done.stderr
    assert files <= set(folder.rglob("*.parquet"))


@pytest.mark.long
def test_a_table_of_others_in_the_catalog_is_left_alone(folder: Path) -> None:
    catalog, place = catalog_of(folder), f"file://{folder.parent}/theirs"
    catalog.create_namespace("kafka")
    rows = pa.table({"theirs": [1]})
    catalog.create_table("kafka.exchanges", rows.schema, place).append(rows)
    done = with_catalog(folder)
    words = f"kafka.exchanges of the catalog is another table, at {place}: choose another namespace"
    assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {words}\n")
    found = catalog.load_table("kafka.exchanges")
    assert found.scan().to_arrow().to_pylist() == [{"theirs": 1}]
    assert found.schema().column_names == ["theirs"]


def test_a_catalog_that_is_none_is_one_line(folder: Path) -> None:
    done = kdissect("tables", "iceberg", str(folder), "--catalog", "nowhere")
    assert (done.returncode, done.stdout) == (2, b"")
    [line] = done.stderr.decode().splitlines()
    assert line.startswith("kdissect: nowhere: ")
