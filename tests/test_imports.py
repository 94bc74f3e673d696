"""Nothing heavy is imported before it is needed, and the engine never imports the screen."""

import subprocess
import sys
from pathlib import Path

import pytest

from dissector.cli.every_command import app
from dissector.cli.main import program_for
from tests.cases import cases
from tests.conftest import PCAPS


def imported(code: str) -> set[str]:
    """Top-level modules after running `code` in a fresh process."""
    script = f"{code}\nimport sys; print(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.long
@pytest.mark.slow
def test_the_engine_imports_neither_textual_nor_pyspark() -> None:
    modules = imported("import dissector; dissector.open; import dissector.cli.show")
    assert "numpy" in modules
    assert not modules & {"textual", "pyspark", "typer"}


@pytest.mark.slow
def test_no_module_reads_the_tables_of_apis_as_it_is_imported() -> None:
    """A release that a user imports until they are needed is among them."""
    run = "import dissector.cli.every_command, tui.app, tui.screens.main_screen\n"
    run += "from dissector.protocol.schema import loader\nassert not loader._index.cache_info().currsize"
    assert "textual" in imported(run)


@pytest.mark.slow
def test_what_workers_of_spark_are_forked_of_has_no_pandas_and_no_threads_of_deltalake() -> None:
    pytest.importorskip("pyspark", reason="NOT TESTED with pyspark: it is not installed")
    modules = imported("import dissector.pipeline.worker_daemon")
    assert {"pyarrow", "pyspark"} <= modules
    assert not modules & {"pandas", "deltalake", "duckdb"}


@pytest.mark.long
@pytest.mark.slow
def test_an_ingest_imports_neither_pandas_nor_duckdb_and_both_can_be_had_behind_it(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="NOT TESTED with deltalake: it is not installed")
    words = ["kdissect", "ingest", str(PCAPS / "librdkafka.pcapng"), "--out", str(tmp_path)]
    run = f"import contextlib, sys; sys.argv = {words!r}\nfrom dissector.cli.main import main\n"
    run += "with contextlib.suppress(SystemExit):\n    main()"
    assert "deltalake" in (modules := imported(run))
    assert not modules & {"pandas", "duckdb", "pyspark"}
    pytest.importorskip("pandas", reason="NOT TESTED with pandas: it is not installed")
    assert "pandas" in imported("from dissector.tables.arrow_types import keep_pandas_out, pa; keep_pandas_out();"
                                " assert list(pa.table({'a': [1]}).to_pandas()['a']) == [1]")  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
def test_exchanges_and_records_need_no_data_frames_and_no_packets_of_others() -> None:
    path = PCAPS / "java.pcapng"
    code = f"import dissector; c = dissector.open({str(path)!r}); list(c.records('api == Produce')); c[0]['api']"
    assert not imported(f"{code}; c.stats()") & {
        "pyarrow",
        "pandas",
        "polars",
        "scapy",
        "dpkt",
        "pyspark",
        "deltalake",
        "duckdb",
    }


@pytest.mark.slow
def test_show_imports_nothing_that_few_captures_need() -> None:
    modules = imported("import dissector.cli.show")
    assert not modules & {
        "google",
        "opentelemetry",
        "rich",
        "ssl",
        "asyncio",
        "subprocess",
        "multiprocessing",
        "socket",
    }


@pytest.mark.long
@pytest.mark.slow
def test_first_rows_on_the_screen_need_no_filters_and_no_client_of_http() -> None:
    """And no masked arrays, which numpy imports when they are asked for."""
    run = "import dissector.cli.screen as screen; screen.run\nfrom dissector.capture_session import Capture\n"
    run += f"with Capture([{str(PCAPS / 'java.pcapng')!r}]) as capture:\n    list(capture.read())\n"
    run += "    assert capture.index.apis(0, len(capture))\nimport sys; assert 'numpy.ma' not in sys.modules\n"
    assert "textual" in (modules := imported(run))
    assert not modules & {"lark", "http"}


@pytest.mark.long
@pytest.mark.slow
def test_a_filter_imports_regular_expressions_only_if_it_has_one() -> None:
    """And what clients push as metrics is decoded without a library of OpenTelemetry's."""
    code = "from dissector.filter import parse; parse({!r}); import dissector.protocol.embedded.telemetry"
    assert not imported(code.format("api == Fetch && latency > 50ms")) & {"re2", "google", "opentelemetry"}
    assert "re2" in imported(code.format("client_id matches '^x'"))


@pytest.mark.slow
def test_columns_of_the_index_are_printed_without_a_table() -> None:
    names = "api,api_version,client_id,latency_ns,request.size"
    script = f"""
import sys
from pathlib import Path
from dissector.protocol.schema import loader, resources
read, kept = resources.read_json, []
loader.read_json = lambda path: kept.append(path) or read(path)
from dissector.cli.formats import Format
from dissector.cli.show import show
show([{str(PCAPS / "java.pcapng")!r}], Format.TEXT, None, {names!r})
print(kept, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") > 10
    assert done.stderr.strip() == "['tables/index.json']"


@pytest.mark.long
@pytest.mark.slow
@cases(
    ("name", "options"),
    [
        ("java", ["--fields", "api_key"]),
        ("java", []),
        ("java", ["-f", "json"]),
        ("trouble-slow", ["-Y", "finding"]),
        ("two-brokers", []),
    ],
)
def test_printing_a_capture_imports_no_masked_arrays_and_no_secrets(name: str, options: list[str]) -> None:
    words = ["-m", "dissector.cli.main", "show", str(PCAPS / f"{name}.pcapng"), *options]
    done = subprocess.run([sys.executable, "-X", "importtime", *words], capture_output=True, text=True, check=True)
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "numpy" in modules
    assert not modules & {"numpy.ma", "secrets"}


def test_help_imports_nothing_heavy() -> None:
    called = "import contextlib, sys; sys.argv = ['kdissect', '--help']; from dissector.cli.main import main"
    modules = imported(f"{called}\nwith contextlib.suppress(SystemExit): main()")
    assert not modules & {"numpy", "textual", "orjson", "cramjam", "pyspark"}


def test_the_public_names_are_there() -> None:
    import dissector

    assert {name for name in dissector.__all__ if callable(getattr(dissector, name))} == {*dissector.__all__} - {
        "primitives", "__version__"
    }  # fmt: skip
    assert dissector.primitives.array(dissector.primitives.INT8).write([1]) == b"\0\0\0\1\1"


@pytest.mark.slow
@cases(
    ("command", "others"),
    [
        ("show", {"comparing_commands", "writing_commands", "tables_commands"}),
        ("check", {"writing_commands", "tables_commands"}),
    ],
)
def test_a_command_that_is_named_imports_no_module_of_those_behind_it(command: str, others: set[str]) -> None:
    main = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    main += f"; sys.argv = ['kdissect', {command!r}, {str(PCAPS / 'java.pcapng')!r}]"
    main += "; from dissector.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", main], capture_output=True, text=True)
    modules = set(done.stderr.split())
    assert "dissector.cli.reading_commands" in modules
    assert not modules & {f"dissector.cli.{each}" for each in others}


def test_all_commands_are_there_where_none_is_named() -> None:
    known = {each.name for each in program_for("").registered_commands}
    assert known == {each.name for each in program_for("x.pcap").registered_commands}
    assert known == {each.name for each in app.registered_commands}
    for name in known - {"man", None}:
        assert [each.name for each in program_for(str(name)).registered_commands] == [name]
    assert {each.name for each in program_for("man").registered_commands} == known
    assert {each.name for each in app.registered_groups} == {"tables", "schema"}
