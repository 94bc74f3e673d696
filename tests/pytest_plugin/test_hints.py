"""What a test is told when its capture is empty, and when its own words are wrong: one frame, and that the test's."""

import pytest

from tests.capture.live.loopback import broker, needs_rights
from tests.pytest_plugin.runs import Run, run

pytestmark = [pytest.mark.slow, pytest.mark.long]
CAPTURES = """
import socket

import pytest
from tests.capture.live.loopback import talk

BROKER, SILENT, CLOSED = {broker}, {silent}, {closed}


def captured(kafka_capture, port, count=0):
    with kafka_capture(port=port) as wire:
        if count:
            talk(BROKER, count)
    return wire


def test_any_port(kafka_capture):
    wire = captured(kafka_capture, "any", 2)
    assert wire.count(f'server == "127.0.0.1:{{BROKER}}"') == 2
    assert str(wire.settings.words) == "port any"


def test_hint_names_the_port_of_kafka(kafka_capture):
    captured(kafka_capture, SILENT, 2).one("api == Metadata")


def test_hint_names_a_port_where_nothing_listens(kafka_capture):
    captured(kafka_capture, CLOSED).one()


def test_report_names_a_port_that_nobody_talks_to(kafka_capture):
    assert captured(kafka_capture, SILENT).count() == 1


def test_no_hint_where_packets_were_seen(kafka_capture):
    with kafka_capture(port=SILENT) as wire:
        socket.create_connection(("127.0.0.1", SILENT)).close()
    wire.one()
"""
PROXIED = """
import pytest
from tests.capture.live.loopback import talk


@pytest.fixture
def wire(kafka_proxy):
    with kafka_proxy("127.0.0.1:{broker}") as wire:
        talk(int(wire.bootstrap.rpartition(":")[2]), 1)
    return wire


def test_nobody_connected(kafka_proxy):
    with kafka_proxy("127.0.0.1:{broker}") as wire:
        pass
    wire.one()
"""
MISTAKES = {
    "wire.one('api == Fecth')": "unknown API 'Fecth'",
    "wire.none('nmber == 1')": "number",
    "wire.count('api ==')": "FilterError",
    "wire.exchanges('api == ')": "FilterError",
    "wire.records('topc == x')": "FilterError",
    "wire.capture.exchanges('api == Fecth')": "unknown API 'Fecth'",
    "list(wire.capture.findings('api == Fecth'))": "unknown API 'Fecth'",
    "wire.capture.stats(filter='api == Fecth')": "unknown API 'Fecth'",
    "wire.one()['ack']": "KeyError",
    "wire.one()['acks']": "KeyError",
    "wire.one().lateny_ns": "AttributeError",
    "wire.capture[7]": "row 7 of 1",
}
PORTS = ("0", "65536", "'9092'", "'all'", "[9092, 'any']", "[]", "9092.5", "None")


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, int, int, int]:
    """A report, a port of a broker, one of a broker that nobody talks to, and one where nothing listens."""
    with broker() as closed:
        pass
    with broker() as port, broker() as silent:
        text = CAPTURES.format(broker=port, silent=silent, closed=closed)
        return run(tmp_path_factory.mktemp("captures"), text), port, silent, closed


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Run:
    tests = [f"\n\ndef test_mistake_{number}(wire):\n    {call}\n" for number, call in enumerate(MISTAKES)]
    tests += [
        f"\n\ndef test_port_{number}(kafka_capture):\n    kafka_capture(port={port})\n"
        for number, port in enumerate(PORTS)
    ]
    with broker() as port:
        return run(tmp_path_factory.mktemp("proxied"), PROXIED.format(broker=port) + "".join(tests))


@needs_rights
def test_any_port_is_captured(captures: tuple[Run, int, int, int]) -> None:
    assert captures[0].counts == "4 failed, 1 passed", captures[0].out


@needs_rights
def test_an_empty_capture_says_why(captures: tuple[Run, int, int, int]) -> None:
    report, port, silent, closed = captures
    elsewhere = report.of("test_hint_names_the_port_of_kafka").out
    assert f"no packet on lo, port {silent}; Kafka was seen on port" in elsewhere
    assert str(port) in elsewhere.partition("was seen on port")[2].splitlines()[0]
    nothing = report.of("test_hint_names_a_port_where_nothing_listens").out
    assert f"no packet on lo, port {closed}; " in nothing
    nobody = report.of("test_report_names_a_port_that_nobody_talks_to").out
    assert f"no packet on lo, port {silent}; " in nobody
    assert "no packet" not in report.of("test_no_hint_where_packets_were_seen").out


def test_a_proxy_that_nobody_used_says_so(proxied: Run) -> None:
    report = proxied.of("test_nobody_connected").out
    assert "0 exchanges; one was expected" in report
    assert "no client connected to the proxy: is bootstrap.servers 127.0.0.1:" in report


@pytest.mark.parametrize("call", MISTAKES)
def test_a_mistake_is_one_frame(proxied: Run, call: str) -> None:
    report = proxied.of(f"test_mistake_{[*MISTAKES].index(call)}").out
    assert MISTAKES[call] in report
    assert f">       {call}" in report or f">   {call}" in report
    assert "dissector/" not in report, "no frame of ours"


@pytest.mark.parametrize("port", PORTS)
def test_what_is_no_port_is_refused_in_one_frame(proxied: Run, port: str) -> None:
    report = proxied.of(f"test_port_{PORTS.index(port)}").out
    assert f"ValueError: kafka_capture(port={port}): " in report
    assert "pytest_plugin/" not in report
