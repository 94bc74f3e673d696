"""The scripts in `examples/` run, and say what is in the captures."""

import ast
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import dissector
from tests.capture.live.loopback import broker, needs_rights, talk
from tests.cases import cases
from tests.conftest import PCAPS
from tests.forked import NOT_REWRITTEN, run_module
from tests.probe.servers import mock_cluster

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
JAVA = str(PCAPS / "java.pcapng")
MOST_LINES = 20


def ran(name: str, *words: str, data: str = "", code: int = 0) -> str:
    done = run_module(f"examples.{name}", words, os.environ | {"MPLBACKEND": "agg"}, data=data.encode())
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode()


@cases("script", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_are_short_and_tell_how_they_are_called(script: Path) -> None:
    text = script.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert script.name in text.split('"""')[1]


def test_bytes_by_topic_are_those_of_the_records() -> None:
    with dissector.open(JAVA) as capture:
        size = sum(len(each.key or b"") + len(each.value or b"") for each in capture.records("api == Produce"))
    assert ran("produce_bytes_by_topic", JAVA).split() == [f"{size:,}", "java-orders"]


@pytest.mark.long
def test_the_slowest_fetches_are_plotted(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="NOT TESTED with matplotlib: it is not installed")
    with dissector.open(JAVA) as capture:
        slowest = max(capture.exchanges("api == Fetch"), key=lambda each: each.latency_ns or 0)
    _, first, *_ = ran("slowest_fetches", JAVA, str(tmp_path / "slowest.png")).splitlines()
    assert first.split()[0] == str(slowest.number)
    assert (tmp_path / "slowest.png").read_bytes().startswith(b"\x89PNG")


def test_the_dance_of_a_group_is_told_in_order() -> None:
    steps = [line.split()[3] for line in ran("group_dance", JAVA).splitlines()]
    assert steps == ["JoinGroup", "JoinGroup", "SyncGroup", "LeaveGroup"]


def test_hex_of_a_report_is_explained() -> None:
    assert "dev" in ran("hex_from_a_report", data="0000000d 0012 0000 00000007 0003 646576")
    response = "0000000a 00000007 0023 00000000"
    assert "body.error_code" in ran("hex_from_a_report", "18", "0", data=response)


@pytest.mark.long
def test_packets_of_scapys_are_read_and_given_back() -> None:
    pytest.importorskip("scapy", reason="NOT TESTED with scapy: it is not installed")
    lines = ran("scapy_and_back", JAVA).splitlines()
    with dissector.open(JAVA) as capture:
        errors = list(capture.exchanges("error"))
    assert [line for line in lines if line.startswith("<")] == [f"{each} {each['error']}" for each in errors]
    packets = sum(len(each.packets()) for each in _again(errors))
    assert sum(" Ether / IP / TCP / Kafka " in line for line in lines) == packets


def _again(exchanges: list[dissector.Exchange]) -> list[dissector.Exchange]:
    capture = dissector.open(JAVA)
    return [capture[each.number - 1] for each in exchanges]


def test_records_are_counted_by_schema() -> None:
    with dissector.open(JAVA) as capture:
        records = len(list(capture.records("api == Produce")))
    assert ran("records_by_schema", JAVA, "api == Produce").split() == [str(records), "java-orders", "schema", "none"]


@pytest.mark.long
def test_two_clients_are_compared() -> None:
    one, same, other = (str(PCAPS / f"compare-{name}.pcapng") for name in ("java-1", "java-2", "librdkafka-1"))
    assert "No differences" in ran("compare_two_clients", one, same)
    assert "differences" in ran("compare_two_clients", one, other, code=1)


@pytest.mark.long
def test_errors_in_tables_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="NOT TESTED with DuckDB: it is not installed")
    from dissector.pipeline.ingest_here import ingest_here
    from dissector.pipeline.partition_rows import WriteOptions

    ingest_here([JAVA], str(tmp_path / "tables"), WriteOptions())
    shown = ran("tables_with_duckdb", str(tmp_path / "tables"))
    assert "MEMBER_ID_REQUIRED" in shown
    assert "GROUP_ID_NOT_FOUND" in shown


@pytest.mark.long
@needs_rights
def test_live_requests_are_counted_by_client() -> None:
    """Whoever talks does so until it is seen: the example does not say when it has begun to capture."""
    seen = threading.Event()

    def talk_until_seen(port: int) -> None:
        while not seen.wait(0.1):
            talk(port, 3)

    with broker() as port:
        command = [sys.executable, "-u", str(EXAMPLES / "live_counter.py"), str(port), "600"]
        environment = os.environ | {"PYTHONPATH": str(EXAMPLES.parent)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            threading.Thread(target=talk_until_seen, args=(port,), daemon=True).start()
            assert process.stdout is not None
            shown = [process.stdout.readline() for _ in range(3)]
            seen.set()
            process.terminate()
    assert [line.split()[-1] for line in shown] == ["1", "2", "3"]


@needs_rights
def test_a_test_of_a_client_passes() -> None:
    pytest.importorskip("confluent_kafka", reason="NOT TESTED against librdkafka: confluent-kafka can't be imported")
    with mock_cluster(1) as [address]:
        words = ["-q", str(EXAMPLES / "test_a_producer.py")]
        done = run_module("pytest", words, os.environ | {"BROKER": address, "PYTEST_ADDOPTS": NOT_REWRITTEN})
    assert done.returncode == 0, done.stdout.decode()


@pytest.mark.long
def test_the_code_of_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of each cell is shown as a notebook shows it."""
    pytest.importorskip("matplotlib", reason="NOT TESTED with matplotlib: it is not installed")
    monkeypatch.setenv("CAPTURE", JAVA)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads((EXAMPLES / "one_capture.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    shown = []
    for cell in cells:
        if cell["cell_type"] == "code":
            *before, last = ast.parse("".join(cell["source"])).body
            assert isinstance(last, ast.Expr)
            exec(compile(ast.Module(before, []), "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert all(shown)
    assert "ApiVersions" in shown[0]
    assert "body.topics[0].partitions[0].partition" in shown[1], "the slowest is a fetch"
    assert "java-orders" in shown[4]
    assert "error-response" in shown[-1]
