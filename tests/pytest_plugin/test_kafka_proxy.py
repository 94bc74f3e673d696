"""The fixture `kafka_proxy` in pytest runs of their own: no rights are needed, and clients connect to what it names."""

import re
import socket
import stat
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dissector
from tests.capture.live.loopback import broker
from tests.probe.servers import mock_cluster
from tests.pytest_plugin.runs import Run, run, run_anew

pytestmark = pytest.mark.slow
TALK = """
import pytest
from tests.capture.live.loopback import talk

BROKER = "127.0.0.1:{port}"


def talked(kafka_proxy, count=1):
    with kafka_proxy(BROKER) as wire:
        talk(int(wire.bootstrap.rpartition(":")[2]), count)
    return wire
"""
FAILING = """
def test_marked(kafka_proxy):
    wire = talked(kafka_proxy, 3)
    assert wire.one("correlation_id == 1").correlation_id == 2


def test_inside(kafka_proxy):
    with kafka_proxy(BROKER) as wire:
        talk(int(wire.bootstrap.rpartition(":")[2]), 1)
        raise OSError("the client gave up")


def test_too_early(kafka_proxy):
    kafka_proxy(BROKER).bootstrap


def test_twice(kafka_proxy):
    wire = talked(kafka_proxy)
    with wire:
        pass


def test_of_packets(kafka_capture):
    kafka_capture().bootstrap


def test_no_address(kafka_proxy):
    kafka_proxy("broker.example:what")


def test_refused(kafka_proxy):
    with kafka_proxy(BROKER, ca="/none.pem"):
        pass


def test_not_begun(kafka_proxy):
    kafka_proxy(BROKER).one()


def test_typing_error(kafka_proxy):
    with kafka_proxy(BROKER) as wire:
        wire.fault("api == Produce: error NOT_A_LEADER")


def test_fault_afterwards(kafka_proxy):
    talked(kafka_proxy).fault("close")


def test_fault_of_packets(kafka_capture):
    kafka_capture().fault("close")
"""


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Run]:
    """The folder, the broker and the report of a run in which all tests fail."""
    folder = tmp_path_factory.mktemp("failing")
    with broker() as port:
        return folder, f"127.0.0.1:{port}", run(folder, TALK.format(port=port) + FAILING)


def test_a_test_asks_for_the_exchanges_of_its_client(tmp_path: Path) -> None:
    with broker() as port:
        done = run(tmp_path, TALK.format(port=port) + """
def test_all(kafka_proxy):
    wire = talked(kafka_proxy, 3)
    assert wire.count() == wire.count("api == Metadata") == len(wire.exchanges()) == 3
    assert {each.server for each in wire.exchanges()} == {BROKER}
    wire.none("api == Produce")
    assert wire.dropped == 0


def test_two_at_a_time(kafka_proxy, kafka_capture):
    with kafka_proxy(BROKER) as first, kafka_proxy(BROKER) as second:
        assert first.bootstrap != second.bootstrap
        talk(int(second.bootstrap.rpartition(":")[2]), 2)
    assert (first.count(), second.count()) == (0, 2)


def test_held_to_a_baseline(kafka_proxy):
    talked(kafka_proxy).matches("talk.toml")
""", "--save-baselines")  # fmt: skip
    assert (done.code, done.counts) == (0, "3 passed"), done.out
    assert "Metadata" in (tmp_path / "talk.toml").read_text()
    assert not (tmp_path / "kafka-captures").exists()


@pytest.mark.long
def test_a_real_client_is_held_to_what_it_says(tmp_path: Path) -> None:
    with mock_cluster(2) as [address, _]:
        done = run(tmp_path, f"""
from confluent_kafka import Producer


def test(kafka_proxy):
    with kafka_proxy("{address}") as wire:
        producer = Producer({{"bootstrap.servers": wire.bootstrap, "acks": 1}})
        for number in range(4):
            producer.produce("orders", b"apples %d" % number, partition=number)
        assert producer.flush(10) == 0
    assert len(wire.records("api == Produce")) == 4
    wire.none("error && api == Produce")
    assert wire.exchanges("api == Produce")[0]["acks"] == 1
""")  # fmt: skip
    assert (done.code, done.counts) == (0, "1 passed"), done.out


@pytest.mark.long
def test_the_report_has_the_exchanges_and_names_the_recording(failing: tuple[Path, str, Run]) -> None:
    folder, address, done = failing
    assert (done.code, done.counts) == (1, "11 failed"), done.out
    report = done.of("test_marked")
    assert [row[0] for row in report.rows] == [" ", ">", " "]
    assert f"Kafka traffic of the proxy for {address}" in report.out
    kept = folder / "kafka-captures" / "test_it.py.test_marked.pcapng"
    assert f"kept: kdissect {kept}" in report.out
    assert stat.S_IMODE(kept.stat().st_mode) & 0o077 == 0
    with dissector.open(kept) as capture:
        assert [each.correlation_id for each in capture] == [0, 1, 2]
    assert len(done.of("test_inside").rows) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("test_too_early", "the proxy does not listen yet: use bootstrap inside the with statement"),
        ("test_twice", "the capture was already used: ask kafka_proxy for another one"),
        ("test_not_begun", "nothing was captured: with kafka_proxy(…) as wire: begins it"),
        ("test_of_packets", "kafka_capture captures packets and has no address: use kafka_proxy"),
        ("test_no_address", "broker.example:what: 'what' is not a port from 1 to 65535"),
        ("test_fault_afterwards", "the proxy is not running: arm faults inside the with statement"),
        ("test_fault_of_packets", "kafka_capture captures packets and can't change them: use kafka_proxy"),
        ("test_refused", "kafka_proxy: --ca /none.pem: no such file or directory"),
    ],
)
def test_what_is_refused_is_one_line(failing: tuple[Path, str, Run], test: str, words: str) -> None:
    report = failing[2].of(test).out
    assert words in report
    assert "not read: " not in report


@pytest.mark.long
def test_a_fault_that_can_not_be_read_is_one_frame(failing: tuple[Path, str, Run]) -> None:
    report = failing[2].of("test_typing_error").out
    assert "column 23: unknown error 'NOT_A_LEADER'" in report
    assert len(re.findall(r"^[\w/.-]+\.py:\d+: ", report, re.MULTILINE)) == 1
    assert "test_it.py" in report


@pytest.mark.long
def test_faults_are_armed_in_the_middle_of_a_test(tmp_path: Path) -> None:
    with mock_cluster(1) as [address]:
        done = run(tmp_path, f"""
from confluent_kafka import Producer

NOT_LEADER = "api == Produce && topic == orders: error NOT_LEADER_OR_FOLLOWER"


def produce(producer, value):
    producer.produce("orders", value)
    assert producer.flush(10) == 0


def test(kafka_proxy):
    with kafka_proxy("{address}") as wire:
        settings = {{"bootstrap.servers": wire.bootstrap, "retry.backoff.ms": 10, "acks": 1}}
        producer = Producer(settings)
        produce(producer, b"before")
        with wire.fault(NOT_LEADER + ", first 1", name="moved") as moved:
            assert (moved.fired, moved.asked) == (0, 0)
            produce(producer, b"moved")
            assert (moved.fired, moved.matched, moved.unable) == (1, 1, 0)
            moved.arm()
            produce(producer, b"it was armed: its triggers go on")
            assert moved.fired == 1
            moved.disarm()
            moved.arm()
            produce(producer, b"moved again")
            assert moved.fired == 2
        asked = moved.asked
        produce(producer, b"after")
        assert moved.asked == asked
        later = wire.fault("api == Heartbeat: drop")
    assert (moved.fired, moved.asked) == (2, asked)
    assert later.fired == 0
    moved.disarm()
    assert wire.count('finding == "injected" && api == Produce') == 2
    assert len(wire.exchanges("api == Produce")) == 7


def test_another_in_this_process(kafka_proxy):
    with kafka_proxy("{address}") as one, kafka_proxy("{address}") as other:
        fault = one.fault("close")
        try:
            one.fault("drop", "a b")
        except ValueError as error:
            assert "is not a name" in str(error)
        else:
            raise AssertionError
        produce(Producer({{"bootstrap.servers": other.bootstrap}}), b"by the other")
        assert fault.asked == 0
""")  # fmt: skip
    assert (done.code, done.counts) == (0, "2 passed"), done.out


@pytest.mark.long
def test_a_broker_that_is_not_there_is_a_warning_and_the_reason_for_no_exchange(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        done = run(tmp_path, f"""
import socket


def test(kafka_proxy):
    with kafka_proxy("{address}") as wire:
        host, _, port = wire.bootstrap.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), 10) as client:
                assert client.recv(9) == b""
        except ConnectionResetError:
            pass
    assert wire.count() == 0
    wire.one()
""")  # fmt: skip
    assert (done.code, done.counts) == (1, "1 failed, 1 warning"), done.out
    assert f"there are 0 exchanges; one was expected\nE       {address}: connection refused\n" in done.out
    assert f"UserWarning: kafka_proxy: {address}: connection refused" in done.out
    assert "listening on" not in done.out


@pytest.mark.exhaustive
def test_recordings_are_kept_beside_the_report_under_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist", reason="NOT TESTED with xdist: it is not installed")
    with broker() as port:
        done = run_anew(tmp_path, TALK.format(port=port) + """
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_many(kafka_proxy, count):
    assert talked(kafka_proxy, count).count() == 0
""", "-n", "2", f"--junitxml={tmp_path}/reports/junit.xml")  # fmt: skip
    assert (done.code, done.counts) == (1, "4 failed"), done.out
    report = ElementTree.parse(tmp_path / "reports" / "junit.xml")
    kept = [each.get("value") or "" for each in report.iter("property") if each.get("name") == "kafka_proxy"]
    counts = []
    for name in kept:
        with dissector.open(name) as capture:
            counts.append(len(capture))
    assert sorted(counts) == [1, 2, 3, 4], "each has its own exchanges, and no others"
