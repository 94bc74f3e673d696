"""Sessions of the program openssl, which Python's module can't make: key updates and renegotiations."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.needs import needs
from tests.tls.sessions import certificate
from tests.tls.test_stage import decrypted, streams
from tests.traffic import Turn, conversation

QUIET = 0.2
PATIENCE = 10
"""Seconds to wait for an answer: on a busy machine it comes late."""


@pytest.fixture(autouse=True)
def _openssl() -> None:
    needs("openssl")


class Relay:
    """Passes a connection on, and keeps what each side says."""

    def __init__(self, port: int) -> None:
        self.turns: list[Turn] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._threads = [threading.Thread(target=self._run, args=(port,), daemon=True)]
        self._threads[0].start()

    def _run(self, port: int) -> None:
        client, _ = self._server.accept()
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            back = threading.Thread(target=self._copy, args=(server, client, False), daemon=True)
            back.start()
            self._copy(client, server, True)
            back.join(5)

    def _copy(self, source: socket.socket, sink: socket.socket, from_client: bool) -> None:
        with suppress(OSError):  # who is killed resets its connection
            while data := source.recv(1 << 16):
                self.turns.append(Turn(from_client, data))
                sink.sendall(data)

    def wait(self, turns: int) -> None:
        """Wait until both have said so much together, and are quiet: a flight may come in several turns, and data in
        the midst of a renegotiation ends it."""
        until = time.monotonic() + PATIENCE
        before, since = -1, time.monotonic()
        while (before < turns or time.monotonic() < since + QUIET) and time.monotonic() < until:
            if len(self.turns) != before:
                before, since = len(self.turns), time.monotonic()
            time.sleep(0.01)


@contextmanager
def server(*options: str) -> Iterator[int]:
    """A server that sends each line back in reverse."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        "openssl",
        "s_server",
        "-accept",
        f"127.0.0.1:{port}",
        "-cert",
        certificate("rsa").path,
        "-rev",
        *options,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        while b"ACCEPT" not in process.stdout.readline():
            pass
        try:
            yield port
        finally:
            process.kill()


def talk(relay: Relay, log: Path, words: list[tuple[bytes, int]], *options: str) -> None:
    """Say words, each when as much went by after the one before as should."""
    own = ["-connect", f"127.0.0.1:{relay.port}", "-keylogfile", str(log)]
    command, null = ["openssl", "s_client", *own, *options], subprocess.DEVNULL
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=null, stderr=null) as client:
        assert client.stdin is not None
        try:
            relay.wait(4)
            for word, turns in words:
                before = len(relay.turns)
                client.stdin.write(word)
                client.stdin.flush()
                relay.wait(before + turns)
        finally:
            client.kill()


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "options", "of_server"),
    [((b"K\n", 1), ["-tls1_3"], []), ((b"R\n", 4), ["-tls1_2"], ["-client_renegotiation"])],
    ids=["key update", "renegotiation"],
)
def test_keys_may_change(command: tuple[bytes, int], options: list[str], of_server: list[str], tmp_path: Path) -> None:
    log = tmp_path / "keys.log"
    with server(*of_server) as port:
        relay = Relay(port)
        talk(relay, log, [(b"first\n", 2), command, (b"second\n", 2), command, (b"third\n", 2)], *options)
    plain = streams(decrypted(conversation(relay.turns), log.read_bytes()))
    assert plain == {0: b"first\nsecond\nthird\n", 1: b"tsrif\ndnoces\ndriht\n"}
