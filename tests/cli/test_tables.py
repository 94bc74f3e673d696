"""Whether a folder holds tables, and which options fit them: checked before Spark starts, which few need."""

import subprocess
import sys
from pathlib import Path

import pytest

from dissector.cli.errors import UsageError
from dissector.cli.options import THIS_MACHINE, Cluster
from dissector.cli.tables import are_tables
from dissector.samples import FOLDER
from tests.cases import cases
from tests.cli.test_commands import JAVA, kdissect


@pytest.fixture
def folder(tmp_path: Path) -> str:
    pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")
    from tests.tables.copied import copy_tables

    return str(copy_tables(tmp_path / "tables"))


def test_a_folder_with_captures_and_any_url_are_tables(folder: str) -> None:
    for word in (folder, f"file://{folder}", "hdfs://namenode/tables", "s3a://bucket/tables"):
        assert are_tables([word])
    assert not are_tables([JAVA, JAVA])


@pytest.mark.long
@pytest.mark.slow
def test_a_program_that_read_tables_ends_without_a_word(folder: str) -> None:
    """The other tests run commands in a fork, which does not end as a program does."""
    done = subprocess.run([sys.executable, "-m", "dissector", "show", folder], capture_output=True, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_program_that_read_tables_and_showed_a_long_message_ends_without_a_word() -> None:
    pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")
    code = "import sys, duckdb; from tui.threads import freeze_objects as freeze; freeze();"
    code += "sys.argv = ['kdissect', '--version']; from dissector.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.long
@pytest.mark.slow
def test_rows_that_the_screen_cannot_show_are_counted(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    from dissector.cli.table_captures import show_on_screen
    from dissector.pipeline.ingest_here import ingest_here
    from dissector.pipeline.partition_rows import WriteOptions

    ingest_here([JAVA, str(FOLDER / "mistake.pcapng")], folder, WriteOptions(frames=True))
    assert show_on_screen(folder, None, lambda capture: 0) == 0
    assert capsys.readouterr().err == f"kdissect: {folder}: 3 rows without a message left out: show prints them\n"
    assert show_on_screen(folder, "kind == tls", lambda capture: 0) == 1
    assert capsys.readouterr().err == f"kdissect: {folder}: no row that matches has a message: show prints them\n"


@cases("command", ["show", "stats", "open", "diff"])
def test_spark_reads_no_tables(folder: str, command: str) -> None:
    """DuckDB does, wherever they are."""
    done = kdissect(command, folder, "--master", "local[2]")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--master" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ("show", "{}", "--port", "9092"),
            "{}: --response, --port, --decode-as, --keylog and --show-secrets are for captures",
        ),
        (("show", "{}", JAVA), "{}: name one folder of tables and nothing else"),
        (
            ("diff", "{}", "{}"),
            "with tables, name two or more sides as TABLES:NAME",
        ),
        (("diff", "{}:a", JAVA), "with tables, name two or more sides as TABLES:NAME"),
        (("show", "{}/captures"), "{}/captures: a folder without captures or tables"),
        (("check", "{}"), "{}: a folder of tables, not of captures; the commands show, stats, diff and open read both"),
        (("records", "{}"), "{}: a folder of tables, not of captures"),
    ],
)
def test_what_does_not_go_together_is_one_line(folder: str, words: tuple[str, ...], why: str) -> None:
    done = kdissect(*(word.format(folder) for word in words))
    assert (done.returncode, done.stdout) == (2, b"")
    [line] = done.stderr.decode().splitlines()
    assert line.startswith(f"kdissect: {why.format(folder)}")


@cases("command", ["show", "stats", "open"])
def test_a_name_that_can_t_be_looked_up_is_one_line(command: str) -> None:
    name = "a" * 3_000
    done = kdissect(command, name)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"kdissect: {name}: file name too long\n"


def test_a_bad_filter_is_reported_before_anything_starts(folder: str) -> None:
    done = kdissect("show", folder, "-Y", "latencyy > 1")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"kdissect: -Y: ")


def test_without_java_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")
    done = kdissect("ingest", JAVA, "--out", str(tmp_path / "tables"), "--master", "local[2]")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"kdissect: Spark needs Java, and none was found: install")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--conf", "spark.x"), "--conf spark.x: not NAME=VALUE"),
        (("--conf", "=1"), "--conf =1: not NAME=VALUE"),
        (("--master", "foo"), "foo: not a master: use local[N], spark://HOST:PORT, yarn or k8s://URL"),
        (("--remote", "sc://127.0.0.1:1"), "sc://127.0.0.1:1: no answer: connection refused"),
    ],
)
def test_a_cluster_that_is_none_is_one_line(tmp_path: Path, option: tuple[str, ...], why: str) -> None:
    pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")
    done = kdissect("ingest", JAVA, "--out", str(tmp_path / "tables"), *option)
    assert (done.returncode, done.stdout) == (2, b"")
    [line] = done.stderr.decode().splitlines()
    assert line.startswith(f"kdissect: {why}")


def test_settings_are_names_and_values() -> None:
    assert Cluster(conf=["a=b=c", "d="]).settings == {"a": "b=c", "d": ""}
    assert not THIS_MACHINE.is_set
    with pytest.raises(UsageError, match="not NAME=VALUE"):
        Cluster(conf=["a"])


def test_problems_of_a_run_are_told_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """And those of one capture beside it; a run of one capture has its own only."""
    pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")
    from dissector.cli import table_upkeep
    from dissector.cli.formats import StatsFormat
    from dissector.tables.snapshot import Snapshot

    of_run, own = {"message": "keys are missing"}, {"message": "cut"}
    plain = {"capture": "c", "begin_ns": 0, "bytes": 1, "packets": 1, "options": ""}
    rows = [
        plain | {"path": path, "epoch": epoch, "problems": problems}
        for path, epoch, problems in (("a", 1, [of_run]), ("b", 1, [of_run, own]), ("c", 2, [own]), ("d", 3, None))
    ]
    monkeypatch.setattr(table_upkeep, "_seen", lambda _: Snapshot(rows, {}, {}))
    assert table_upkeep.list_captures("tables", StatsFormat.TEXT) == 0
    told = capsys.readouterr()
    assert [line.split("  ")[-1] for line in told.out.splitlines()] == ["a", "1 problem", "1 problem", "d"]
    assert told.err == "of 2 captures that were read together: keys are missing\n"
