"""Servers that answer from recordings, as users start them, and requests to them."""

import contextlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dissector
from tests.probe.servers import frame


@dataclass
class Command:
    """A running `kdissect serve`."""

    process: subprocess.Popen[str]
    bootstrap: str
    said: list[str] = field(default_factory=list)
    """Lines on stderr, once it has ended."""
    rows: list[str] = field(default_factory=list)
    """Lines on stdout, once it has ended."""

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.bootstrap.split(":")
        return host, int(port)

    def end(self) -> int:
        """Ctrl+C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        out, errors = self.process.communicate(timeout=20)
        self.rows, self.said = out.splitlines(), errors.splitlines()
        return self.process.returncode


@contextlib.contextmanager
def serve_command(*words: str | Path) -> Iterator[Command]:
    """A process that serves a capture on a free port."""
    command = [sys.executable, "-m", "dissector", "serve", *map(str, words), "--listen", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            found = re.search(r"listening on (\S+) with", first)
            assert found is not None, first
            yield Command(process, found[1])
        finally:
            if process.poll() is None:
                process.kill()


def ask(
    address: tuple[str, int], key: int | str, version: int, body: dict[str, object], **more: Any
) -> dissector.Message:
    """Ask one thing on a connection of its own."""
    with socket.create_connection(address, 10) as client:
        return ask_on(client, key, version, body, **more)


def ask_on(
    client: socket.socket, key: int | str, version: int, body: dict[str, object], correlation_id: int = 77
) -> Any:
    client.settimeout(20)
    client.sendall(dissector.encode_request(key, version, body, correlation_id=correlation_id, client_id="tests"))
    answer = frame(client)
    sized = len(answer).to_bytes(4, "big") + answer
    return dissector.decode_response(sized, api=key, api_version=version, show_secrets=True)


def exchange(
    key: str, version: int, asked: dict[str, object], answered: dict[str, object] | None, number: int = 1
) -> tuple[bytes, bytes | None]:
    """The frames of a recorded exchange."""
    request = dissector.encode_request(key, version, asked, correlation_id=number, client_id="recorded")
    if answered is None:
        return request, None
    return request, dissector.encode_response(key, version, answered, correlation_id=number)
