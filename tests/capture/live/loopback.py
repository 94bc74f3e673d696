"""Kafka on loopback for tests to capture: a server that answers by correlation id, a client that asks one at a time."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frames import request, response
from tests.probe.servers import frame, serving

CAP_NET_RAW = 13


def can_capture() -> bool:
    """Whether this process may open raw sockets."""
    status = Path("/proc/self/status")
    if not status.exists():
        return os.geteuid() == 0
    [line] = [line for line in status.read_text().splitlines() if line.startswith("CapEff:")]
    return bool(int(line.split()[1], 16) >> CAP_NET_RAW & 1)


needs_rights = pytest.mark.skipif(not can_capture(), reason="NOT TESTED live: this user may not capture (CAP_NET_RAW)")


def _answer(connection: socket.socket) -> None:
    while True:
        request_frame = frame(connection)
        connection.sendall(response(int.from_bytes(request_frame[4:8], "big")))


@contextlib.contextmanager
def broker() -> Iterator[int]:
    """A server; its port."""
    with serving(_answer) as address:
        yield int(address.rpartition(":")[2])


def talk(port: int, count: int, *, host: str = "127.0.0.1", first: int = 0) -> None:
    """So many exchanges, one after the other, on a connection of their own."""
    with socket.create_connection((host, port), timeout=10) as client:
        for number in range(first, first + count):
            client.sendall(request(number))
            assert int.from_bytes(frame(client)[:4], "big") == number


def talking(port: int, count: int) -> threading.Thread:
    """The same, beside what the test does."""
    thread = threading.Thread(target=talk, args=(port, count), daemon=True)
    thread.start()
    return thread
