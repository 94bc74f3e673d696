"""The plugin in pytest runs of their own, as its users have it."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dissector
from dissector.pytest_plugin.failures import kept_name
from tests.capture.live.loopback import broker, needs_rights
from tests.probe.servers import mock_cluster

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
TALK = """
import pytest
from tests.capture.live.loopback import talk

PORT = {port}


def talked(kafka_capture, count=1):
    with kafka_capture(port=PORT) as wire:
        talk(PORT, count)
    return wire
"""


def run(folder: Path, text: str, *words: str, name: str = "test_it.py") -> "Run":
    (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:asyncio", "-rs", *words, name]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYTEST_ADDOPTS": "",
        "COLUMNS": "200",
        "HOME": str(folder),
    }
    for variable in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_CURRENT_TEST"):
        environment.pop(variable, None)
    (folder / "pytest.ini").touch()
    return Run(subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment))


class Run:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out = done.returncode, done.stdout + done.stderr

    @property
    def rows(self) -> list[str]:
        """The lines of exchanges in the reports, each with its mark."""
        return [line for line in self.out.splitlines() if line[2:4] == "<#"]

    @property
    def counts(self) -> str:
        [found] = [line for line in self.out.splitlines() if re.search(r"\d (passed|failed|skipped).* in \d", line)]
        return found.rpartition(" in ")[0].strip("= ")


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
""")  # fmt: skip
    assert (done.code, done.counts) == (0, "2 passed"), done.out
    assert not (tmp_path / "kafka-captures").exists()


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


@needs_rights
def test_the_report_marks_what_was_looked_at_and_names_the_capture(tmp_path: Path) -> None:
    with broker() as port:
        done = run(tmp_path, TALK.format(port=port) + """
def test_versions(kafka_capture):
    wire = talked(kafka_capture, 3)
    for exchange in wire.exchanges("api == Metadata"):
        assert exchange["correlation_id"] < 1
""")  # fmt: skip
    assert (done.code, done.counts) == (1, "1 failed")
    assert [row[0] for row in done.rows] == [" ", ">", " "]
    assert f"Kafka traffic of port {port}" in done.out
    [kept] = [line.removeprefix("kept: kdissect ") for line in done.out.splitlines() if line.startswith("kept: ")]
    assert Path(kept) == tmp_path / "kafka-captures" / "test_it.py.test_versions.pcapng"
    with dissector.open(kept, ports=[port]) as capture:
        assert [each.correlation_id for each in capture] == [0, 1, 2]


@needs_rights
@pytest.mark.parametrize(
    ("call", "words", "marks"),
    [
        ('one("api == Metadata")', "2 exchanges match api == Metadata; one was expected", "  "),
        ('one("api == Fetch")', "0 exchanges match api == Fetch; one was expected", "  "),
        ("one()", "there are 2 exchanges; one was expected", "  "),
        ('none("number == 2")', "1 exchange matches number == 2; none was expected", " >"),
        ('one("number == 1").response.size == 0', "assert ", "> "),
        ('one("nmber == 1")', "FilterError", "  "),
    ],
)
def test_an_assertion_says_what_there_is(tmp_path: Path, call: str, words: str, marks: str) -> None:
    with broker() as port:
        done = run(tmp_path, f"{TALK.format(port=port)}\ndef test(kafka_capture):\n"
                             f"    wire = talked(kafka_capture, 2)\n    assert wire.{call}\n")  # fmt: skip
    assert (done.code, done.counts) == (1, "1 failed"), done.out
    assert words in done.out
    assert "".join(row[0] for row in done.rows) == marks
    assert "wire.py" not in done.out or "FilterError" in words, "no frame of the plugin's own"


@needs_rights
def test_captures_are_kept_beside_the_report_under_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist", reason="NOT TESTED with xdist: it is not installed")
    with broker() as port:
        done = run(tmp_path, TALK.format(port=port) + """
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8])
def test_many(kafka_capture, count):
    assert talked(kafka_capture, count).count("client_id == 'nobody'") == count
""", "-n", "4", f"--junitxml={tmp_path}/reports/junit.xml")  # fmt: skip
    assert (done.code, done.counts) == (1, "8 failed"), done.out
    names = [kept_name(f"test_it.py::test_many[{count}]", 1) for count in range(1, 9)]
    assert sorted(each.name for each in (tmp_path / "reports").iterdir()) == sorted([*names, "junit.xml"])
    for count, name in enumerate(names, 1):
        with dissector.open(tmp_path / "reports" / name, ports=[port]) as capture:
            assert len(capture) >= count  # the port is shared: also what others said meanwhile
    report = ElementTree.parse(tmp_path / "reports" / "junit.xml")
    kept = {each.get("value") for each in report.iter("property") if each.get("name") == "kafka_capture"}
    assert kept == {str(tmp_path / "reports" / name) for name in names}


@needs_rights
def test_a_folder_of_the_settings_keeps_the_captures(tmp_path: Path) -> None:
    with broker() as port:
        text = TALK.format(port=port) + "\ndef test(kafka_capture):\n    assert not talked(kafka_capture).count()\n"
        run(tmp_path, text, "-o", "kafka_capture_folder=kept/here")
    assert [each.name for each in (tmp_path / "kept" / "here").iterdir()] == ["test_it.py.test.pcapng"]


@needs_rights
def test_an_error_while_capturing_is_reported_with_the_exchanges(tmp_path: Path) -> None:
    with broker() as port:
        done = run(tmp_path, TALK.format(port=port) + """
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
""")  # fmt: skip
    assert (done.code, done.counts) == (1, "1 failed, 1 error"), done.out
    assert "the client gave up" in done.out
    assert "ask for exchanges after the with statement" in done.out
    assert len(done.rows) == 2


@needs_rights
def test_capturing_has_begun_within_a_second(tmp_path: Path) -> None:
    """A packet that is sent at once is in the capture; the time is printed, for machines differ."""
    with broker() as port:
        done = run(tmp_path, TALK.format(port=port) + """
import time


def test(kafka_capture):
    began = time.perf_counter()
    with kafka_capture(port=PORT) as wire:
        ready = time.perf_counter() - began
        talk(PORT, 1)
    assert wire.one("number == 1")["api"] == "Metadata"
    print(f"ready after {ready:.2f} s")
""", "-s")  # fmt: skip
    assert (done.code, done.counts) == (0, "1 passed"), done.out
    assert "ready after " in done.out


@pytest.mark.parametrize(("setting", "counts"), [("fail", "1 failed"), ("skip", "1 skipped")])
def test_where_capturing_is_refused_a_test_fails_or_is_skipped(tmp_path: Path, setting: str, counts: str) -> None:
    """No interface of that name is refused with or without privileges."""
    text = "def test(kafka_capture):\n    with kafka_capture(interface='nowhere0'):\n        pass\n"
    done = run(tmp_path, text, "-o", f"kafka_capture_refused={setting}")
    assert done.counts == counts
    assert "kafka_capture: no interface 'nowhere0'" in done.out
    assert "Traceback" not in done.out


@needs_rights
@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED on an interface: this user can't become another one")
def test_who_may_not_capture_is_told_what_to_do(tmp_path: Path) -> None:
    """In a process that gave its capabilities up."""
    text = "def test(kafka_capture):\n    with kafka_capture():\n        pass\n"
    (tmp_path / "test_it.py").write_text(text)
    drop = ["setpriv", "--bounding-set=-net_raw,-net_admin", "--inh-caps=-net_raw,-net_admin"]
    command = [*drop, sys.executable, "-m", "pytest", "-p", "no:asyncio", "-q", str(tmp_path)]
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


def test_runs_without_the_fixture_do_not_import_the_engine(tmp_path: Path) -> None:
    text = "import sys\n\ndef test():\n    assert not {'numpy', 'dissector.api', 'dissector.core'} & {*sys.modules}\n"
    assert run(tmp_path, text, "-p", "no:xdist").counts == "1 passed"


@needs_rights
def test_a_baseline_is_written_then_held(tmp_path: Path) -> None:
    text = TALK + "\n\ndef test_versions(kafka_capture):\n    talked(kafka_capture).matches('talk.toml')\n"
    with broker() as port:
        text = text.format(port=port)
        missing = run(tmp_path, text)
        assert (missing.code, missing.counts) == (1, "1 failed")
        assert "there is no talk.toml: pytest --save-baselines writes it" in missing.out
        assert run(tmp_path, text, "--save-baselines").code == 0
        assert run(tmp_path, text).code == 0
        path = tmp_path / "talk.toml"
        path.write_text(path.read_text().replace('Metadata = "v0"', 'Metadata = "v12"'))
        changed = run(tmp_path, text)
    assert changed.code == 1
    assert "1 line of talk.toml changed" in changed.out
    assert "versions.Metadata: v12 → v0 (exchange 1)" in changed.out
