"""`kdissect live` as a user meets it, on loopback and on an interface of a network namespace."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from tests.capture.live.loopback import broker, needs_rights, talk
from tests.cases import cases
from tests.cli.test_commands import KDISSECT, kdissect
from tests.forked import PipedProgram
from tests.needs import needs
from tests.probe.servers import frame, mock_cluster
from tests.traffic import request

pytestmark = pytest.mark.slow
LONGEST = 60
"""Seconds after which a test that hangs is ended."""


@contextlib.contextmanager
def live(*words: str, ready: str = "capturing on") -> Iterator[PipedProgram]:
    """`kdissect live`, from when it captures on."""
    with PipedProgram(KDISSECT[-1], "live", *words) as process:
        timer = threading.Timer(LONGEST, process.kill)
        timer.start()
        try:
            line = process.stderr.readline()
            assert ready in line, line
            yield process
        finally:
            timer.cancel()


def lines(process: PipedProgram, count: int) -> list[str]:
    return [process.stdout.readline() for _ in range(count)]


def end(process: PipedProgram, number: int = signal.SIGINT) -> tuple[str, str]:
    """What is still printed, and the summary."""
    process.send_signal(number)
    return rest(process)


def rest(process: PipedProgram) -> tuple[str, str]:
    """What is still printed, and the summary, of one that ends by itself."""
    out, err = process.stdout.read(), process.stderr.read()
    process.wait(LONGEST)
    return out, err


@needs_rights
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_rows_come_while_it_runs_and_a_signal_ends_it_in_order(number: int, tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"
    with broker() as port, live("-p", str(port), "-w", str(path)) as process:
        for first in (0, 4):
            talk(port, 4, first=first)
            assert first or lines(process, 1)[0].startswith("   No.")
            assert [line.split()[5] for line in lines(process, 4)] == [str(first + n) for n in range(4)]
        out, err = end(process, number)
        assert (process.returncode, out) == (0, "")
    assert " 0 dropped by the kernel, 8 exchanges, " in err
    with Capture([str(path)]) as capture:
        assert sum(1 for _ in capture.exchanges()) == 8
        assert f"{capture.packets} packets captured, 0 dropped" in err


@pytest.mark.long
@needs_rights
def test_a_client_of_librdkafka_is_seen_as_the_file_shows_it_again(tmp_path: Path) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="NOT TESTED live with librdkafka: it is missing")
    path = tmp_path / "kept.pcapng"
    with (
        mock_cluster(1) as [address],
        live("-p", address.rpartition(":")[2], "-w", str(path), "--format", "json") as seen,
    ):
        producer = confluent_kafka.Producer({"bootstrap.servers": address, "client.id": "watched", "linger.ms": 0})
        for number in range(20):
            producer.produce("orders", b"order %d" % number)
            producer.flush(10)
        found: list[dict[str, object]] = []
        while sum(line["api"] == "Produce" for line in found) < 20:
            found.append(json.loads(lines(seen, 1)[0]))
        out, _ = end(seen)
        found += map(json.loads, out.splitlines())
    again = [json.loads(line) for line in kdissect("show", str(path), "-f", "json").stdout.splitlines()]

    def comparable(line: dict[str, object]) -> str:
        # Numbers are given as rows come; cross-message findings are not all known when the first row is printed.
        return json.dumps({key: line[key] for key in sorted(line.keys() - {"number", "findings"})}, sort_keys=True)

    assert sorted(map(comparable, found)) == sorted(map(comparable, again))
    assert {line["client_id"] for line in found} >= {"watched"}


@pytest.mark.long
@needs_rights
def test_a_limit_and_a_duration_end_it() -> None:
    with broker() as port:
        with live("-p", str(port), "--limit", "3") as process:
            talk(port, 10)
            assert len(lines(process, 4)) == 4
            assert process.wait(LONGEST) == 0
        with live("-p", str(port), "--duration", "0.5") as process:
            _, err = rest(process)
            assert process.returncode == 0
            assert "0 packets captured, 0 dropped by the kernel, 0 exchanges, " in err


@pytest.mark.long
@needs_rights
def test_silence_is_reported_with_the_interface_and_port() -> None:
    with broker() as port:
        unused = port
    with live("-p", str(unused)) as process:
        line = process.stderr.readline()
        assert f"no packet on lo, port {unused}, for 3 s; nothing on this machine listens there (-p for another" in line
        end(process)
    with broker() as port, live("-p", str(port)) as process:
        assert "a server listens there, and no client talks to it" in process.stderr.readline()


@pytest.mark.long
@needs_rights
def test_a_reader_that_goes_away_ends_it() -> None:
    with broker() as port, live("-p", str(port)) as process:
        process.stdout.close()
        while process.poll() is None:
            talk(port, 5)
        assert process.returncode == 0


@pytest.mark.long
@cases(
    ("words", "message"),
    [
        (["-i", "nowhere0"], "unknown interface 'nowhere0'; known are "),
        (["-p", "9092", "--capture-filter", "tcp"], "--capture-filter replaces -p"),
        (["-b", "files:2"], "-b needs -w"),
        (["-w", "x", "-b", "files:2"], "-b files:COUNT also needs -b filesize:KB or -b duration:SECONDS"),
        (["-w", "x", "-b", "filesize:-1"], "expected filesize:KB, duration:SECONDS or files:COUNT"),
        (["-w", "-"], "-w needs a file"),
    ],
)
def test_bad_use_is_one_plain_line(words: list[str], message: str) -> None:
    done = kdissect("live", *words)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1


def test_the_interfaces_are_listed() -> None:
    listed = kdissect("live", "-D")
    assert listed.returncode == 0
    assert any(line.startswith("lo ") and "loopback" in line for line in listed.stdout.decode().splitlines())


@contextlib.contextmanager
def namespace() -> Iterator[tuple[str, str]]:
    """A network namespace behind a pair of interfaces: the name of both, and of the one on this side."""
    needs("ip")
    name = f"kd{os.getpid()}"
    here, there = f"{name}a", f"{name}b"

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["ip", *words], capture_output=True, text=True, check=False)

    if (made := run("netns", "add", name)).returncode:
        pytest.skip(f"NOT TESTED on an interface: {made.stderr.strip()}")
    try:
        if (made := run("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)).returncode:
            pytest.skip(f"NOT TESTED on an interface: {made.stderr.strip()}")
        run("address", "add", "198.51.100.1/30", "dev", here)
        run("link", "set", here, "up")
        run("-n", name, "address", "add", "198.51.100.2/30", "dev", there)
        run("-n", name, "link", "set", there, "up")
        yield name, here
    finally:
        run("netns", "del", name)
        run("link", "del", here)


SERVER = """
import socket, struct
with socket.create_server(("198.51.100.2", 9092)) as listener:
    print("listening", flush=True)
    connection, _ = listener.accept()
    stream = connection.makefile("rb")
    while head := stream.read(4):
        request = stream.read(int.from_bytes(head, "big"))
        connection.sendall(struct.pack(">i", 12) + request[4:8] + bytes(8))
"""


@needs_rights
def test_an_interface_that_is_not_loopback() -> None:
    with namespace() as (name, here):
        server = subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True
        )
        try:
            assert lines(server, 1) == ["listening\n"]
            with live("-i", here) as process:
                talk(9092, 5, host="198.51.100.2")
                assert len(lines(process, 6)) == 6
                _, err = end(process)
                assert " 0 dropped by the kernel, 5 exchanges" in err
        finally:
            server.kill()
            server.communicate()


@needs_rights
def test_an_interface_that_is_down_or_goes_away_is_reported() -> None:
    with namespace() as (_, here):
        subprocess.run(["ip", "link", "set", here, "down"], check=True)
        with live("-i", here) as process:
            assert "is down: no packets until it is up" in process.stderr.readline()
            subprocess.run(["ip", "link", "del", here], check=True)
            _, err = rest(process)
            assert process.returncode == 2
            assert f"interface {here} is gone; capturing ended" in err


@pytest.mark.long
@needs_rights
def test_kafka_on_any_port_of_loopback_with_the_processes_that_speak(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"
    with broker() as port, live("-w", str(path), "-Y", f"tcp.port == {port}", ready="any TCP port") as process:
        talk(port, 3)
        assert "Metadata" in "".join(lines(process, 3))
        threading.Event().wait(0.5)
        end(process)
    done = kdissect("show", str(path), "-Y", f"tcp.port == {port}", "--fields", "tcp.dstport")
    assert done.stdout.split() == [str(port).encode()] * 3


@pytest.mark.long
@needs_rights
def test_a_connection_that_stays_has_its_process(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcapng"
    with broker() as port, live("-p", str(port), "-w", str(path)) as process:
        with socket.create_connection(("127.0.0.1", port)) as client:
            for number in count():
                client.sendall(request(number))
                frame(client)
                if path.read_bytes().count(b"process {") == 2:
                    break
        end(process)
    done = kdissect("show", str(path), "--fields", "pid,server.pid", "--limit", "1")
    assert done.stdout.decode().split() == [str(os.getpid())] * 2
