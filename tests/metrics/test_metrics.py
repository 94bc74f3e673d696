"""Metrics of live traffic: what a scrape of a running proxy says, and that no traffic makes them grow without bound."""

import contextlib
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import dissector
from dissector.capture_session import Capture
from dissector.cli import metering
from dissector.cli.errors import UsageError
from dissector.core.extras import install_command
from tests.capture.live.loopback import broker, talk
from tests.conftest import PCAPS
from tests.forked import run_module
from tests.frames import request, response
from tests.probe.servers import frame, serving
from tests.proxy_server.proxies import proxy

pytest.importorskip("prometheus_client", reason="NOT TESTED with prometheus_client: it is not installed")

from prometheus_client.parser import text_string_to_metric_families

from dissector.metrics import row_meter
from dissector.metrics.dimensions import DIMENSIONS, LONGEST_LABEL, OTHER
from dissector.metrics.live_metrics import LiveMetrics, serve
from dissector.metrics.row_meter import RowMeter

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(url: str) -> Samples:
    with urllib.request.urlopen(url, timeout=10) as response:
        text = response.read().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def total(samples: Samples, name: str, **labels: str) -> float:
    """The sum of a metric's samples that have these labels."""
    return sum(
        value for (found, having), value in samples.items() if found == name and labels.items() <= dict(having).items()
    )


@contextlib.contextmanager
def counted(path: Path, most: int = 200) -> Iterator[tuple[Samples, Capture, list[str]]]:
    """What the metrics say of a whole capture, and what was said meanwhile."""
    said: list[str] = []
    metrics = LiveMetrics(said.append, most)
    with Capture([str(path)]) as capture:
        meter = RowMeter(capture, None, metrics)
        for _ in capture.read(sort=False):
            meter.look()
        while meter.look():
            pass
        url, end = serve(metrics, "127.0.0.1", 0)
        try:
            yield scraped(url), capture, said
        finally:
            end()


@pytest.mark.long
@pytest.mark.parametrize("name", ["java.pcapng", "aiokafka.pcapng", "java-0.10.2.pcapng"])
def test_counts_are_those_of_the_exchanges(name: str) -> None:
    path = PCAPS / name
    with counted(path) as (samples, capture, said), dissector.open(path) as opened:
        exchanges = [each for each in opened if each["kind"] == "exchange"]
        assert total(samples, "kdissect_rows_total") == len(capture)
        for dimension in ("api", "software", "client", "broker"):
            assert total(samples, f"kdissect_{dimension}_exchanges_total") == len(exchanges)
            bytes_sent = sum(each.request.size for each in exchanges if each.request)
            assert total(samples, f"kdissect_{dimension}_bytes_total", direction="request") == bytes_sent
        failed = sum(each.get("error") is not None for each in exchanges)
        assert total(samples, "kdissect_api_errors_total") == failed
        with_latency = [each.latency_ns for each in exchanges if each.latency_ns is not None]
        assert total(samples, "kdissect_api_latency_seconds_count") == len(with_latency)
        assert total(samples, "kdissect_api_latency_seconds_sum") == pytest.approx(sum(with_latency) / 1e9)
        parts = total(samples, "kdissect_api_latency_part_seconds_sum")
        assert parts == pytest.approx(sum(with_latency) / 1e9), "the parts are the whole"
        for topic in {each.topic for each in opened.records()}:
            in_topic = sum(1 for _ in opened.exchanges(f'topic == "{topic}"'))
            assert total(samples, "kdissect_topic_exchanges_total", topic=topic) == in_topic
        assert total(samples, "kdissect_connections_total") == len(capture.connections)
        assert total(samples, "kdissect_unread_packets") == total(samples, "kdissect_uncounted_rows") == 0
        found = sum(finding.code == "error-response" for _, finding in opened.findings())
        assert total(samples, "kdissect_findings_total", code="error-response") == found
        assert not said


@pytest.mark.long
def test_what_many_labels_are_is_bounded_and_said_once() -> None:
    with counted(PCAPS / "java.pcapng", 2) as (samples, _, said), dissector.open(PCAPS / "java.pcapng") as opened:
        exchanges = sum(each["kind"] == "exchange" for each in opened)
        labels = {having for (name, having) in samples if name == "kdissect_api_exchanges_total"}
        assert len(labels) == 3
        assert total(samples, "kdissect_api_exchanges_total") == exchanges, "none is lost"
        others = total(samples, "kdissect_api_exchanges_total", api=OTHER, version=OTHER)
        assert 0 < others < exchanges
        assert total(samples, "kdissect_other_labels_total", dimension="api") == others
        assert said.count(f"metrics: more than 2 label sets by api: others are counted as {OTHER}") == 1
        assert len(said) == len({*said})


def client_names(port: int, names: list[str]) -> None:
    """A request for each client id, each on the same connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        for number, name in enumerate(names):
            client.sendall(request(number, client_id=name.encode()))
            frame(client)


def of_clients(samples: Samples) -> set[str]:
    return {dict(having)["client_id"] for name, having in samples if name == "kdissect_client_errors_total"}


@pytest.mark.long
def test_memory_stays_bounded_for_many_labels(tmp_path: Path) -> None:
    """Twice the label sets make no more series, and none is longer than a topic's name."""
    sizes = []
    for count in (300, 600):
        folder = tmp_path / str(count)
        folder.mkdir()
        names = [f"{'x' * 500 * (number % 7 == 0)}client-{number}" for number in range(count)]
        with broker() as port, proxy(folder, f"127.0.0.1:{port}", port=0) as between:
            client_names(between.address[1], names)
            between.stop()
            with counted(between.path) as (samples, _, said):
                clients = of_clients(samples)
                assert len(clients) == 201
                assert OTHER in clients
                assert max(map(len, clients)) <= LONGEST_LABEL
                assert total(samples, "kdissect_client_exchanges_total") == count
                assert [each for each in said if "by client" in each] == said
                sizes.append(sum("client_id" in dict(having) for _, having in samples))  # others: findings of load
    assert sizes[0] == sizes[1]


def test_topics_of_one_request_are_bounded(tmp_path: Path) -> None:
    topics = b"".join(struct.pack(">h7s", 7, b"t%06d" % number) for number in range(300))
    with broker() as port, proxy(tmp_path, f"127.0.0.1:{port}", port=0) as between:
        with socket.create_connection(between.address, 10) as client:
            client.sendall(request(0, body=struct.pack(">i", 300) + topics))
            frame(client)
        between.stop()
        with counted(between.path) as (samples, _, _):
            counted_topics = {having for name, having in samples if name == "kdissect_topic_exchanges_total"}
            assert len(counted_topics) == 201
            assert total(samples, "kdissect_other_labels_total", dimension="topic") == 100


@pytest.mark.long
def test_errors_that_kafka_does_not_have_are_bounded(tmp_path: Path) -> None:
    def answer(connection: socket.socket) -> None:
        for number in range(300):
            frame(connection)
            connection.sendall(response(number, struct.pack(">h", 1_000 + number)))  # Heartbeat v0

    with serving(answer) as address, proxy(tmp_path, address, port=0) as between:
        with socket.create_connection(between.address, 10) as client:
            for number in range(300):
                client.sendall(request(number, api_key=12, version=0, body=b"\0\1g\0\0\0\0\0\1m"))
                frame(client)
        between.stop()
        with counted(between.path) as (samples, _, _):
            assert total(samples, "kdissect_errors_total") == 300
            assert total(samples, "kdissect_errors_total", error=OTHER) == 100
            assert total(samples, "kdissect_group_errors_total", group="g", api="Heartbeat") == 300


def test_labels_that_are_hostile_are_text(tmp_path: Path) -> None:
    names = ['a"b', "back\\slash", "line\nbreak", "\x1b[31mred", "é", OTHER]
    with broker() as port, proxy(tmp_path, f"127.0.0.1:{port}", port=0) as between:
        client_names(between.address[1], names)
        between.stop()
        with counted(between.path) as (samples, _, _):
            clients = of_clients(samples)
    assert len(clients) == len(names)
    assert {'a"b', "back\\slash", "é"} <= clients
    assert not any(ord(letter) < 32 for name in clients for letter in name)


@pytest.mark.long
def test_each_dimension_has_each_measure() -> None:
    with counted(PCAPS / "java.pcapng") as (samples, _, _):
        names = {name for name, _ in samples}
    for dimension in DIMENSIONS:
        measures = ("exchanges_total", "bytes_total", "errors_total", "latency_seconds_bucket")
        assert {f"kdissect_{dimension.name}_{measure}" for measure in measures} <= names
        assert f"kdissect_{dimension.name}_latency_part_seconds_bucket" in names


def looks() -> list[int]:
    """How many rows of a capture each look counts."""
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read(sort=False):
            pass
        meter = RowMeter(capture, None, LiveMetrics(lambda _: None))
        counts = []
        while some := meter.look():
            counts.append(some)
        assert sum(counts) == len(capture)
    return counts


def test_a_look_counts_a_step_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(looks()) == 1
    monkeypatch.setattr(row_meter, "STEP", 7)
    assert max(looks()) == 7


def test_a_look_counts_few_rows_of_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_meter, "STEP_BYTES", 1)
    assert set(looks()) == {1}


def test_what_is_closed_reads_no_rows_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The capture is closed next: its bytes are gone, whether all rows are counted or not."""
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        for _ in capture.read(sort=False):
            pass
        monkeypatch.setattr(row_meter, "SECONDS", 60)
        with RowMeter(capture, None, LiveMetrics(lambda _: None)) as meter:
            pass
        assert meter.look() == 0


@pytest.mark.long
def test_a_running_proxy_is_scraped(tmp_path: Path) -> None:
    """As users run it: rows go to a file, and the metrics are of all of them, whatever `-Y` prints."""
    command = [sys.executable, "-m", "dissector", "proxy", "--listen", "0", "--metrics", "0", "-Y", "api == Fetch"]
    with broker() as port:
        process = subprocess.Popen(
            [*command, f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"NO_COLOR": "1"},
        )  # fmt: skip
        assert process.stderr is not None
        try:
            said = ""
            while "listening on" not in said:
                assert select.select([process.stderr], [], [], 30)[0], said
                said += process.stderr.readline()
            url = re.search(r"metrics on (http://127\.0\.0\.1:\d+/metrics)\n", said)
            listening = re.search(r"listening on 127\.0\.0\.1:(\d+) ", said)
            assert url, said
            assert listening, said
            talk(int(listening[1]), 5)
            deadline = time.monotonic() + 20
            while total(samples := scraped(url[1]), "kdissect_api_exchanges_total", api="Metadata", version="0") < 5:
                assert time.monotonic() < deadline, samples
                time.sleep(0.1)
            assert total(samples, "kdissect_broker_exchanges_total", broker=f"127.0.0.1:{port}") == 5
            assert total(samples, "kdissect_connections_total") == 1
            assert total(samples, "kdissect_packets_total") > 10
            assert total(samples, "kdissect_packets_dropped_total") == 0
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0
            process.stderr.close()


@pytest.mark.long
def test_a_port_that_is_taken_or_is_none_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for value, line in (
            (str(port), f"--metrics 127.0.0.1:{port}: address already in use"),
            ("what", "--metrics what: the port is missing"),
        ):
            words = ["proxy", "b:1", "--listen", "0", "--text", "--metrics", value]
            done = run_module("dissector", words, dict(os.environ))
            assert (done.returncode, done.stderr.decode()) == (2, f"kdissect: {line}\n")


def test_without_the_library_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*sys.modules]:
        if name.partition(".")[0] == "prometheus_client" or name.startswith("dissector.metrics."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(UsageError, match=re.escape(install_command("metrics"))):
        metering.metering("9404")
