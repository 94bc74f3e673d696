"""Tables of earlier versions, and tables with columns of users: read, appended to, compacted, replaced, upgraded."""

import atexit
import functools
import shutil
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import ArrayType, PrimitiveType

import dissector
from dissector.capture import CaptureError
from dissector.cli.formats import Format
from dissector.cli.render.printing import RowRenderer
from dissector.cli.tables import rendered
from dissector.filter import parse
from dissector.pipeline.ingest_here import ingest_here
from dissector.pipeline.partition_rows import WriteOptions
from dissector.tables import reader
from dissector.tables.arrow_types import arrow_schema
from dissector.tables.delta_log import create_tables
from dissector.tables.schemas import BY_NAME
from dissector.tables.snapshot import seen_tables
from dissector.tables.storage import StorageError
from dissector.tables.views import questions
from tests.cli.test_commands import kdissect
from tests.conftest import PCAPS, some_of
from tests.pipeline.contents import contents
from tests.tables.copied import copy_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dissector.tables.reader import Tables

pytestmark = pytest.mark.slow

ROOT = PCAPS.parent
FIRST, SECOND = "pcaps/trouble-duplicate-correlation-id.pcapng", "pcaps/trouble-sequence-gap.pcapng"
NEXT = "pcaps/trouble-error-storm.pcapng"
RELEASES = {each.name.removesuffix(".tar.xz"): each for each in Path(__file__).parent.glob("releases/*.tar.xz")}
Open = Callable[[str], "Tables"]


OLDEST = min(RELEASES)
"""That which lacks most: in `make test` the tests of single commands have only this one."""
just_the_oldest = pytest.mark.parametrize("release", some_of(sorted(RELEASES), OLDEST), indirect=True)


@pytest.fixture(params=some_of(sorted(RELEASES), OLDEST))
def release(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tables of one of the earlier versions. Paths of captures in them are relative to the repository."""
    monkeypatch.chdir(ROOT)
    with tarfile.open(RELEASES[request.param]) as archive:
        archive.extractall(tmp_path, filter="data")
    return str(tmp_path / "tables")


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tables of this version, to each of which a user has added columns, with values in the rows that are there."""
    monkeypatch.chdir(ROOT)
    return str(shutil.copytree(_extended(), tmp_path / "extended"))


@functools.cache
def _extended() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy_tables(folder, FIRST, SECOND)
    fields = [Field("site", PrimitiveType("string")), Field("number", PrimitiveType("decimal(10,2)")),
              Field("order by", PrimitiveType("short")), Field("tags", ArrayType(PrimitiveType("string")))]  # fmt: skip
    for name in BY_NAME:
        table = DeltaTable(f"{folder}/{name}")
        table.alter.add_columns(fields)
        table.update(updates={"site": "'Rome'"})
    return folder


def ingested(folder: Path | str, *captures: str, again: bool = False) -> str:
    for each in captures:
        assert ingest_here([each], str(folder), WriteOptions(), again=again).read == 1
    return str(folder)


def column(folder: str, table: str, name: str) -> list[tuple[str, Any]]:
    """Values of a column, by capture, as another reader of Delta Lake sees them."""
    rows = DeltaTable(f"{folder}/{table}").to_pyarrow_table(columns=["capture", name]).to_pylist()
    return sorted(((row["capture"], row[name]) for row in rows), key=str)


def printed(tables: "Tables", text: str | None = None) -> list[bytes]:
    row_filter = None if text is None else parse(text)
    found = rendered(tables, RowRenderer.of(Format.TEXT, "number,conn,api,client,server"), row_filter)
    return [bytes(line) for _, lines in found for line in lines]


def _without_numbers(rows: list[bytes]) -> list[bytes]:
    return [row.split(b"\t", 2)[2] for row in rows]


@pytest.mark.long
def test_all_rows_of_an_earlier_version_are_read(release: str, opened: Open, tmp_path: Path) -> None:
    earlier = opened(release)
    found = {text: printed(earlier, text) for text in (None, "api == Metadata", "wait > 0s", "error", "finding")}
    assert len(found[None]) == 14
    assert earlier.counted(parse("tls.sni")) == 0
    today = opened(str(copy_tables(tmp_path / "today", FIRST, SECOND)))
    for text, rows in found.items():
        expected = printed(today, text)
        assert rows == expected if text in (None, "api == Metadata") else set(rows) <= set(expected)


@pytest.mark.long
@just_the_oldest
@pytest.mark.parametrize("most", [0, 1 << 10])
def test_numbers_without_a_column_are_read_from_bodies(
    release: str, most: int, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MOST_UNDECIDED", most)
    earlier = opened(release)
    found = {text: len(printed(earlier, text)) for text in ("request.acks == -1", "!(request.acks == -1)")}
    assert found == {"request.acks == -1": 2, "!(request.acks == -1)": 12}


@pytest.mark.exhaustive
@just_the_oldest
def test_each_command_reads_them(release: str) -> None:
    for command in (["show", "-f", "json"], ["stats"], ["tables", "list"], ["tables", "views"]):
        done = kdissect(*command, release)
        assert (done.returncode, done.stdout != b"") == (0, True), (command, done.stderr)


@pytest.mark.long
@just_the_oldest
def test_an_ingest_adds_columns_and_rows_and_leaves_rows_that_are_there(release: str, opened: Open) -> None:
    before = printed(opened(release))
    old = {capture for capture, _ in column(release, "captures", "digest")}
    ingested(release, NEXT)
    for name, table in BY_NAME.items():
        there = {field.name for field in DeltaTable(f"{release}/{name}").schema().fields}
        assert there >= set(arrow_schema(table).names), name
    after = printed(opened(release))
    assert len(after) > len(before)
    assert Counter(_without_numbers(before)) <= Counter(_without_numbers(after))
    transfers = column(release, "exchanges", "request_transfer_ns")
    assert {capture for capture, value in transfers if value is None} >= old
    assert any(value is not None for capture, value in transfers if capture not in old)


@pytest.mark.exhaustive
@just_the_oldest
def test_they_are_replaced_compacted_and_forgotten(release: str, tmp_path: Path) -> None:
    """What was replaced is equal to what this version makes of the captures at once."""
    done = kdissect("tables", "replace", release, Path(FIRST).name)
    assert done.returncode == 0, done.stderr
    done = kdissect("tables", "compact", release)
    assert done.returncode == 0, done.stderr
    done = kdissect("tables", "replace", release, Path(SECOND).name)
    assert done.returncode == 0, done.stderr
    assert contents(release) == contents(ingested(tmp_path / "today", f"{ROOT}/{FIRST}", f"{ROOT}/{SECOND}"))
    done = kdissect("tables", "forget", release, Path(FIRST).stem)
    assert done.returncode == 0, done.stderr
    assert contents(release) == contents(ingested(tmp_path / "second", f"{ROOT}/{SECOND}"))
    done = kdissect("tables", "verify", release)
    assert done.stderr.decode() == f"{release}: 1 capture, nothing is missing\n"


@pytest.mark.exhaustive
@just_the_oldest
@pytest.mark.parametrize("command", [["compact"], ["vacuum"], ["forget", Path(FIRST).name]])
def test_upkeep_takes_them_as_they_are(release: str, command: list[str], opened: Open) -> None:
    rows = printed(opened(release))
    done = kdissect("tables", command[0], release, *command[1:])
    assert done.returncode == 0, done.stderr
    assert len(printed(opened(release))) == len(rows) - (4 if command[0] == "forget" else 0)


@pytest.mark.long
@just_the_oldest
def test_upgrade_adds_what_is_missing_and_says_what(release: str, opened: Open) -> None:
    rows = printed(opened(release))
    done = kdissect("tables", "upgrade", release)
    added = "request_transfer_ns, wait_ns, response_transfer_ns, response_packet added\n"
    assert f"{release}: exchanges: " in done.stderr.decode()
    assert added in done.stderr.decode()
    assert printed(opened(release)) == rows
    done = kdissect("tables", "upgrade", release)
    assert (done.returncode, done.stderr.decode()) == (0, f"{release}: no column is missing\n")


@pytest.mark.exhaustive
def test_every_question_is_answered_from_them(release: str) -> None:
    database = duckdb.connect()
    for statement in dissector.table_views(release):
        database.execute(statement)
    for question in questions():
        database.table(question.name).fetchall()
    assert database.sql("SELECT count(*), count(opened) FROM connections").fetchall() in ([(4, 0)], [(4, 4)])


@pytest.mark.spark
def test_spark_answers_every_question_from_them(release: str, extended: str, spark: "SparkSession") -> None:
    for folder in (release, extended):
        for statement in dissector.table_views(folder, "spark"):
            spark.sql(statement)
        for question in questions():
            spark.table(question.name).toArrow()
        assert spark.table("exchanges").count() == 14
    assert {row["site"] for row in spark.table("exchanges").select("site").collect()} == {"Rome"}


@pytest.mark.exhaustive
def test_columns_of_users_change_nothing_of_what_is_read(extended: str, opened: Open, tmp_path: Path) -> None:
    texts = (None, "api == Metadata", "error")
    theirs = opened(extended)
    found = [printed(theirs, text) for text in texts]
    today = opened(str(copy_tables(tmp_path / "today", FIRST, SECOND)))
    assert found == [printed(today, text) for text in texts]
    assert found[0]


@pytest.mark.exhaustive
def test_columns_of_users_stay_and_are_null_in_new_rows(extended: str) -> None:
    old = {capture for capture, _ in column(extended, "captures", "digest")}
    ingested(extended, NEXT)
    for name in BY_NAME:
        assert all((site == "Rome") == (capture in old) for capture, site in column(extended, name, "site")), name
    before = {name: column(extended, name, "site") for name in BY_NAME}
    assert kdissect("tables", "compact", extended).returncode == 0
    assert {name: column(extended, name, "site") for name in BY_NAME} == before
    assert kdissect("tables", "replace", extended, Path(FIRST).name).returncode == 0
    for name in BY_NAME:
        [gone] = {capture for capture, site in column(extended, "captures", "site") if site is None and capture in old}
        expected = [(capture, None if capture == gone else site) for capture, site in before[name]]
        assert column(extended, name, "site") == sorted(expected, key=str), name
        names = [field.name for field in DeltaTable(f"{extended}/{name}").schema().fields]
        assert names[-4:] == ["site", "number", "order by", "tags"]
    assert kdissect("tables", "upgrade", extended).stderr.decode().endswith(": no column is missing\n")


@pytest.mark.long
def test_views_have_columns_of_users(extended: str) -> None:
    database = duckdb.connect()
    for statement in dissector.table_views(extended):
        database.execute(statement)
    rows = database.sql('SELECT DISTINCT site, "order by" FROM exchanges').fetchall()
    assert rows == [("Rome", None)]


@pytest.mark.long
def test_a_commit_of_captures_does_not_write_the_schema_again(extended: str) -> None:
    ingested(extended, NEXT)
    last = max(Path(extended, "captures", "_delta_log").glob("*.json"))
    assert '"metaData"' not in last.read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("wait_ns", pa.string(), "its column wait_ns STRING would be wait_ns BIGINT"),
        ("api_key", pa.int64(), "its column api_key BIGINT would be api_key INT"),
        ("errors", pa.list_(pa.int32()), "its column errors ARRAY<INT> would be errors ARRAY<STRING>"),
        ("Api", pa.string(), "its column Api STRING would be api STRING"),
    ],
)
def test_a_column_of_another_type_is_one_line(tmp_path: Path, name: str, kind: pa.DataType, words: str) -> None:
    create_tables(str(tmp_path))
    ours = arrow_schema(BY_NAME["exchanges"])
    fields = [pa.field(name, kind) if each.name == name.lower() else each for each in ours]
    write_deltalake(f"{tmp_path}/exchanges", pa.schema(fields).empty_table(), mode="overwrite", schema_mode="overwrite")
    line = f"{tmp_path}/exchanges: {words}: ingest the captures into another folder"
    with pytest.raises(StorageError) as refused:
        create_tables(str(tmp_path))
    assert str(refused.value) == line
    with pytest.raises(CaptureError) as unread:
        seen_tables(str(tmp_path))
    assert str(unread.value) == line
