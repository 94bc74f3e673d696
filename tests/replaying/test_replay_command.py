"""`kdissect replay` as users run it, against `kdissect serve` and against small servers that answer in other ways."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

import dissector
from tests.cli.test_commands import KDISSECT
from tests.conftest import PCAPS
from tests.forked import run_module
from tests.probe.servers import frame, serving
from tests.traffic import Turn, capture_of, conversation, request, response

pytestmark = pytest.mark.slow


def replay(*words: str | Path, password: str = "") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "KDISSECT_PASSWORD"}
    if password:
        environment["KDISSECT_PASSWORD"] = password
    done = run_module(KDISSECT[-1], ["replay", *map(str, words)], environment)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.long
def test_a_broker_that_answers_alike_makes_no_difference(tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    with dissector.serve(PCAPS / "java.pcapng") as server:
        reads = replay(PCAPS / "java.pcapng", server.bootstrap)
    with dissector.serve(PCAPS / "java.pcapng") as server:
        everything = replay(PCAPS / "java.pcapng", server.bootstrap, "--allow-writes", "-w", kept)
    assert (reads.returncode, everything.returncode) == (0, 0), reads.stdout + everything.stdout
    assert "left out 18 requests: they write (--allow-writes): InitProducerId 5, Produce 5" in reads.stderr
    assert "sent 60 requests on 15 connections" in everything.stderr
    assert kept.stat().st_mode & 0o777 == 0o600
    with dissector.open(kept) as capture:
        assert len(capture) == 60


@pytest.mark.long
def test_another_answer_is_a_difference() -> None:
    """librdkafka's recording has no topic of Java's."""
    with dissector.serve(PCAPS / "librdkafka.pcapng") as server:
        done = replay(PCAPS / "java.pcapng", server.bootstrap, "-f", "json")
    assert done.returncode == 1
    assert done.stdout.startswith("{")


def test_nothing_that_writes_reaches_a_broker() -> None:
    came: list[tuple[int, bytes]] = []

    def broker(connection: socket.socket) -> None:
        while True:
            asked = frame(connection)
            came.append((int.from_bytes(asked[:2], "big"), asked))
            connection.close()

    with serving(broker) as address:
        done = replay(PCAPS / "java-transactions.pcapng", address)
    assert done.returncode == 2
    assert "closed the connection" in done.stderr
    assert [key for key, _ in came] == [18]


@pytest.mark.long
def test_a_silent_broker_is_a_line_not_a_hang(tmp_path: Path) -> None:
    offers = bytes(2) + (1).to_bytes(4, "big") + bytes((0, 3, 0, 0, 0, 9))

    def broker(connection: socket.socket) -> None:
        asked = frame(connection)
        number = int.from_bytes(asked[4:8], "big")
        connection.sendall(response(number, offers))
        number = int.from_bytes(frame(connection)[4:8], "big")
        body = dissector.encode_response("Metadata", 9, {"brokers": [], "topics": []}, correlation_id=number)
        connection.sendall(body)
        frame(connection)

    path = capture_of(tmp_path, conversation([Turn(True, request(7)), Turn(False, response(7))]))
    with serving(broker) as address:
        done = replay(path, address, "--timeout", "0.5")
    assert "Traceback" not in done.stderr
    assert "sent 1 request on 1 connection" in done.stderr
    assert "no response within 0.5 s" in done.stderr or "closed the connection" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-", "localhost"), "save it to a file first"),
        (("absent.pcapng", "localhost"), "no such file"),
        ((PCAPS / "java.pcapng", "a:b:c"), "write an IPv6 address in brackets"),
        ((PCAPS / "java.pcapng", "localhost", "--ca", "x.pem"), "--ca needs --tls"),
        ((PCAPS / "java.pcapng", "localhost", "--user", "a"), "--user needs a password"),
        ((PCAPS / "java.pcapng", "localhost", "--password-file", "a"), "--password-file needs --user"),
        ((PCAPS / "java.pcapng", "127.0.0.1:1"), "connection refused"),
    ],
)
def test_what_can_not_be_done_is_one_plain_line(words: tuple[str | Path, ...], message: str) -> None:
    done = replay(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.long
def test_recorded_logins_stay_at_home_unless_asked() -> None:
    with dissector.serve(PCAPS / "java-sasl-plain.pcapng") as server:
        without = replay(PCAPS / "java-sasl-plain.pcapng", server.bootstrap)
        own = replay(PCAPS / "java-sasl-plain.pcapng", server.bootstrap, "--user", "alice", password="alice-secret")
        again = replay(PCAPS / "java-sasl-plain.pcapng", server.bootstrap, "--recorded-login")
    assert "recorded logins (--user logs in" in without.stderr
    assert (without.returncode, own.returncode, again.returncode) == (0, 0, 0)
    assert "recorded logins" in own.stderr
    assert "recorded logins" not in again.stderr
    assert not any("alice-secret" in row for row in (own.stdout, own.stderr, again.stderr, again.stdout))
