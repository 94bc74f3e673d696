"""The plugin in pytest runs of their own, as its users have it."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dissector
from dissector.pytest_plugin.failures import kept_name
from tests.capture.live.loopback import broker, needs_rights
from tests.needs import as_another_user
from tests.probe.servers import mock_cluster
from tests.pytest_plugin.runs import ROOT, WITHOUT, Run, run, run_anew

pytestmark = pytest.mark.slow
TALK = """
import time

import pytest
from tests.capture.live.loopback import talk

PORT = {port}


def talked(kafka_capture, count=1):
    with kafka_capture(port=PORT) as wire:
        talk(PORT, count)
    return wire
"""


@needs_rights
def test_a_test_asks_for_the_exchanges_of_its_client(tmp_path: Path) -> None:
    with broker() as port:
        done = run(tmp_path, TALK.format(port=port) + """
def test_all(kafka_capture):
    wire = talked(kafka_capture, 3)
    assert wire.count() == wire.count("api == Metadata") == len(wire.exchanges()) == 3
    assert wire.one("number == 2")["correlation_id"] == 1
    assert [each["correlation_id"] for each in wire.exchanges("number > 1")] == [1, 2]
    assert wire.records() == []
    assert wire.capture.stats(by="api")[0]["api"] == "Metadata"
    wire.none("api == Produce")
    assert wire.dropped == 0


def test_two_in_turn(kafka_capture):
    assert [talked(kafka_capture, count).count() for count in (1, 2)] == [1, 2]


def test_a_packet_that_is_sent_at_once(kafka_capture):
    began = time.perf_counter()
    with kafka_capture(port=PORT) as wire:
        ready = time.perf_counter() - began
        talk(PORT, 1)
    assert wire.one("number == 1")["api"] == "Metadata"
    print(f"ready after {ready:.2f} s")  # and not held to it, for machines differ
""", "-s")  # fmt: skip
    assert (done.code, done.counts) == (0, "3 passed"), done.out
    assert "ready after " in done.out
    assert not (tmp_path / "kafka-captures").exists()


@pytest.mark.long
@needs_rights
def test_a_real_client_is_held_to_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka", reason="NOT TESTED against librdkafka: confluent-kafka can't be imported")
    with mock_cluster(1) as [address]:
        done = run(tmp_path, f"""
from confluent_kafka import Producer


def test(kafka_capture):
    with kafka_capture(port={address.rpartition(":")[2]}) as wire:
        producer = Producer({{"bootstrap.servers": "{address}", "acks": 1, "linger.ms": 50}})
        for number in range(3):
            producer.produce("orders", b"apples %d" % number, key=b"k", headers={{"n": b"1"}}, partition=0)
        assert producer.flush(10) == 0
    assert [record.value for record in wire.records("api == Produce")] == [b"apples 0", b"apples 1", b"apples 2"]
    assert {{record.topic for record in wire.records()}} == {{"orders"}}
    wire.none("error && api == Produce")
    assert wire.one("api == Produce")["acks"] == -1
""")  # fmt: skip
    assert (done.code, done.counts) == (1, "1 failed"), done.out
    assert "assert 1 == -1" in done.out
    [marked] = [row for row in done.rows if row.startswith(">")]
    assert " Produce v" in marked


SAYINGS = {
    'one("api == Metadata")': ("2 exchanges match api == Metadata; one was expected", "  "),
    'one("api == Fetch")': ("0 exchanges match api == Fetch; one was expected", "  "),
    "one()": ("there are 2 exchanges; one was expected", "  "),
    'none("number == 2")': ("1 exchange matches number == 2; none was expected", " >"),
    'one("number == 1").response.size == 0': ("assert ", "> "),
    'one("nmber == 1")': ("FilterError", "  "),
    'matches("talk.toml")': ("there is no talk.toml: run pytest --save-baselines to write it", "  "),
}
"""What is asked of two exchanges; what the report says, and how it marks both."""
FAILING = """
def test_versions(kafka_capture):
    wire = talked(kafka_capture, 3)
    for exchange in wire.exchanges("api == Metadata"):
        assert exchange["correlation_id"] < 1


@pytest.fixture
def client(kafka_capture):
    with kafka_capture(port=PORT):
        talk(PORT, 1)
        raise OSError("the client gave up")


def test_setup(client):
    pass


def test_asked_too_early(kafka_capture):
    with kafka_capture(port=PORT) as wire:
        talk(PORT, 1)
        wire.one()


def test_refused(kafka_capture):
    with kafka_capture(interface="nowhere0"):
        pass
"""


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, Run]:
    """The folder, the port and the report of a run in which all tests fail."""
    folder = tmp_path_factory.mktemp("failing")
    sayings = "".join(
        f"\n\ndef test_saying_{number}(kafka_capture):\n    wire = talked(kafka_capture, 2)\n    assert wire.{call}\n"
        for number, call in enumerate(SAYINGS)
    )
    with broker() as port:
        return folder, port, run(folder, TALK.format(port=port) + FAILING + sayings)


@pytest.mark.long
@needs_rights
def test_all_of_them_fail(failing: tuple[Path, int, Run]) -> None:
    _, _, done = failing
    assert (done.code, done.counts) == (1, f"{len(SAYINGS) + 3} failed, 1 error"), done.out


@pytest.mark.long
@needs_rights
def test_the_report_marks_what_was_looked_at_and_names_the_capture(failing: tuple[Path, int, Run]) -> None:
    folder, port, done = failing
    report = done.of("test_versions")
    assert [row[0] for row in report.rows] == [" ", ">", " "]
    assert f"Kafka traffic of port {port}" in report.out
    [kept] = [line.removeprefix("kept: kdissect ") for line in report.out.splitlines() if line.startswith("kept: ")]
    assert Path(kept) == folder / "kafka-captures" / "test_it.py.test_versions.pcapng"
    with dissector.open(kept, ports=[port]) as capture:
        assert [each.correlation_id for each in capture] == [0, 1, 2]


@pytest.mark.long
@needs_rights
@pytest.mark.parametrize("call", SAYINGS)
def test_an_assertion_says_what_there_is(failing: tuple[Path, int, Run], call: str) -> None:
    words, marks = SAYINGS[call]
    report = failing[2].of(f"test_saying_{[*SAYINGS].index(call)}")
    assert words in report.out
    assert "".join(row[0] for row in report.rows) == marks
    assert "wire.py" not in report.out or "FilterError" in words, "no frame of the plugin's own"


@pytest.mark.long
@needs_rights
def test_an_error_while_capturing_is_reported_with_the_exchanges(failing: tuple[Path, int, Run]) -> None:
    _, _, done = failing
    assert "the client gave up" in done.of("test_setup").out
    assert "ask for exchanges after the with statement" in done.of("test_asked_too_early").out
    assert len(done.of("test_setup").rows) == len(done.of("test_asked_too_early").rows) == 1


@pytest.mark.exhaustive
@needs_rights
def test_captures_are_kept_beside_the_report_under_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist", reason="NOT TESTED with xdist: it is not installed")
    with broker() as port:
        done = run_anew(tmp_path, TALK.format(port=port) + """
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_many(kafka_capture, count):
    assert talked(kafka_capture, count).count("client_id == 'nobody'") == count
""", "-n", "2", f"--junitxml={tmp_path}/reports/junit.xml")  # fmt: skip
    assert (done.code, done.counts) == (1, "4 failed"), done.out
    names = [kept_name(f"test_it.py::test_many[{count}]", 1) for count in range(1, 5)]
    assert sorted(each.name for each in (tmp_path / "reports").iterdir()) == sorted([*names, "junit.xml"])
    for count, name in enumerate(names, 1):
        with dissector.open(tmp_path / "reports" / name, ports=[port]) as capture:
            assert len(capture) >= count  # the port is shared: also what others said meanwhile
    report = ElementTree.parse(tmp_path / "reports" / "junit.xml")
    kept = {each.get("value") for each in report.iter("property") if each.get("name") == "kafka_capture"}
    assert kept == {str(tmp_path / "reports" / name) for name in names}


@pytest.mark.exhaustive
@needs_rights
def test_settings_name_a_folder_for_the_captures_and_skip_where_capturing_is_refused(tmp_path: Path) -> None:
    settings = ["-o", "kafka_capture_folder=kept/here", "-o", "kafka_capture_refused=skip"]
    with broker() as port:
        done = run(tmp_path, TALK.format(port=port) + """
def test(kafka_capture):
    assert not talked(kafka_capture).count()


def test_refused(kafka_capture):
    with kafka_capture(interface="nowhere0"):
        pass
""", *settings)  # fmt: skip
    assert done.counts == "1 failed, 1 skipped"
    assert_refusal(done.out)
    assert [each.name for each in (tmp_path / "kept" / "here").iterdir()] == ["test_it.py.test.pcapng"]


@pytest.mark.long
def test_where_capturing_is_refused_a_test_fails(failing: tuple[Path, int, Run]) -> None:
    assert_refusal(failing[2].of("test_refused").out)


def assert_refusal(out: str) -> None:
    """No interface of that name is refused with or without privileges."""
    assert "kafka_capture: unknown interface 'nowhere0'" in out
    assert "Traceback" not in out


@pytest.mark.exhaustive
@needs_rights
@as_another_user
def test_who_may_not_capture_is_told_what_to_do(tmp_path: Path) -> None:
    """In a process that gave its capabilities up."""
    text = "def test(kafka_capture):\n    with kafka_capture():\n        pass\n"
    (tmp_path / "test_it.py").write_text(text)
    drop = ["setpriv", "--bounding-set=-net_raw,-net_admin", "--inh-caps=-net_raw,-net_admin"]
    command = [*drop, sys.executable, "-m", "pytest", *WITHOUT, "-q", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": str(Path(sys.executable).parent)}
    environment["PATH"] += ":/usr/bin:/bin"
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    assert done.returncode == 1, done.stdout
    [line] = [line for line in done.stdout.splitlines() if line.startswith("kafka_capture: ")]
    assert "setcap" in line or "sudo" in line


def test_names_of_files_are_of_one_test_each() -> None:
    tests = [
        "a/test_x.py::test_y",
        "test_x.py::test_y[a/b]",
        "test_x.py::test_y[a-b]",
        "test_x.py::test_y[" + "é" * 999,
    ]
    names = [kept_name(test, number) for test in tests for number in (1, 2)]
    assert names[0] == "a.test_x.py.test_y.pcapng"
    assert len({*names}) == len(names)
    assert all(name.isascii() and "/" not in name and len(name) < 200 for name in names)


@pytest.mark.long
def test_runs_without_the_fixture_do_not_import_the_engine(tmp_path: Path) -> None:
    text = "import sys\n\ndef test():\n    assert not {'numpy', 'dissector.api', 'dissector.core'} & {*sys.modules}\n"
    assert run_anew(tmp_path, text, "-p", "no:xdist").counts == "1 passed"


@pytest.mark.long
@needs_rights
def test_a_baseline_is_written_then_held(tmp_path: Path) -> None:
    text = TALK + "\n\ndef test_versions(kafka_capture):\n    talked(kafka_capture).matches('{name}.toml')\n"
    with broker() as port:
        assert run(tmp_path, text.format(port=port, name="talk"), "--save-baselines").code == 0
        written = (tmp_path / "talk.toml").read_text()
        (tmp_path / "changed.toml").write_text(written.replace('Metadata = "v0"', 'Metadata = "v12"'))
        (tmp_path / "test_changed.py").write_text(text.format(port=port, name="changed"))
        (tmp_path / "test_typing_error.py").write_text(
            text.format(port=port, name="talk").replace("')", "', ignore=['ack'])")
        )
        junit = f"--junitxml={tmp_path}/junit.xml"
        done = run(tmp_path, text.format(port=port, name="talk"), "test_changed.py", "test_typing_error.py", junit)
    assert (done.code, done.counts) == (1, "2 failed, 1 passed"), done.out
    assert "'ack' is not a line of a baseline; did you mean acks" in done.out
    assert "api/" not in done.out, "no frame of ours"
    failures = [each.text or "" for each in ElementTree.parse(tmp_path / "junit.xml").iter("failure")]
    assert [text.count(f"Kafka traffic of port {port}") for text in failures] == [1, 1]
    assert "1 line of changed.toml changed" in done.out
    assert "versions.Metadata: v12 → v0 (exchange 1)" in done.out
