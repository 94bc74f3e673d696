"""What a proxy holds and keeps: its memory, its file when it is killed, its ends when a side does not read."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dissector.capture.live.writer import CaptureWriter
from dissector.capture_session import Capture
from dissector.conversation.pcapng import ETHERNET
from dissector.conversation.turns import End
from dissector.proxy_server import BrokerAddress, ProxySettings
from dissector.proxy_server.recording import PacketLog, RecordedConnection
from tests.frames import request, response
from tests.probe.servers import Handler, frame, serving
from tests.proxy_server.proxies import RunningProxy, proxy

MIB = 1 << 20
LARGE = 100 * MIB


def peak_memory(running: RunningProxy) -> int:
    """Bytes that the process that proxies had at most."""
    status = Path(f"/proc/{running.recording.pid}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def memory(running: RunningProxy) -> int:
    status = Path(f"/proc/{running.recording.pid}/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


def drain(connection: socket.socket, size: int) -> None:
    while size:
        size -= len(connection.recv(min(size, MIB)))


@pytest.mark.long
def test_a_frame_of_100_megabytes_passes_in_both_directions_in_little_memory(tmp_path: Path) -> None:
    def broker(connection: socket.socket) -> None:
        connection.settimeout(60)
        drain(connection, len(request(1, api_key=1, version=18)) + LARGE)
        connection.sendall(struct.pack(">ii", 4 + LARGE, 1))
        for _ in range(100):
            connection.sendall(bytes(MIB))

    with serving(broker) as address, proxy(tmp_path, address) as between:
        before = memory(between)
        with socket.create_connection(between.address, 10) as client:
            client.settimeout(60)
            head = request(1, api_key=1, version=18)
            client.sendall(struct.pack(">i", len(head) - 4 + LARGE) + head[4:])
            for _ in range(100):
                client.sendall(bytes(MIB))
            drain(client, 8 + LARGE)
        assert peak_memory(between) - before < 40 * MIB


@pytest.mark.long
def test_a_client_that_does_not_read_stops_the_broker(tmp_path: Path) -> None:
    sent = []

    def broker(connection: socket.socket) -> None:
        connection.settimeout(1)
        with contextlib.suppress(TimeoutError):
            for number in range(2_000):
                connection.sendall(response(number, bytes(100_000)))
                sent.append(number)

    with serving(broker) as address, proxy(tmp_path, address) as between:
        before = memory(between)
        with socket.create_connection(between.address, 10) as client:
            client.sendall(request(1))
            time.sleep(2.5)
            assert 0 < len(sent) < 1_000
            assert peak_memory(between) - before < 40 * MIB


def test_a_broker_that_trickles_does_not_hold_back_what_it_sent(tmp_path: Path) -> None:
    whole = response(1, b"0123456789" * 3)
    step = threading.Event()

    def broker(connection: socket.socket) -> None:
        frame(connection)
        connection.sendall(whole[:20])
        step.wait(10)
        connection.sendall(whole[20:])

    with (
        serving(broker) as address,
        proxy(tmp_path, address) as between,
        socket.create_connection(between.address, 10) as client,
    ):
        client.settimeout(10)
        client.sendall(request(1, api_key=12, version=0))
        assert client.recv(999) == whole[:20]
        step.set()
        assert client.recv(999) == whole[20:]


@pytest.mark.long
def test_many_connections_at_once(tmp_path: Path) -> None:
    def broker(connection: socket.socket) -> None:
        copy = connection.dup()
        threading.Thread(target=lambda: _quietly(echoing, copy), daemon=True).start()

    with serving(broker) as address, proxy(tmp_path, address) as between:
        clients = [socket.create_connection(between.address, 20) for _ in range(300)]
        for number, client in enumerate(clients):
            client.sendall(request(number, api_key=12, version=0))
        for number, client in enumerate(clients):
            client.settimeout(30)
            assert frame(client) == response(number, b"12345678")[4:]
        for client in clients:
            client.close()
        with between.capture() as capture:
            assert len(capture) == 300


def _quietly(answer: Handler, connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        answer(connection)


def echoing(connection: socket.socket) -> None:
    while True:
        found = frame(connection)
        connection.sendall(response(int.from_bytes(found[4:8], "big"), b"12345678"))


def test_a_proxy_that_is_killed_closes_its_clients_and_leaves_a_whole_file(tmp_path: Path) -> None:
    with serving(echoing) as address, proxy(tmp_path, address) as between:
        with socket.create_connection(between.address, 10) as client:
            client.settimeout(10)
            for number in range(50):
                client.sendall(request(number, api_key=12, version=0))
                frame(client)
            os.kill(between.recording.pid, signal.SIGKILL)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(99) == b""
        between.recording.join()
        with Capture([str(between.path)]) as capture:
            for _ in capture.read():
                pass
            assert len(capture) == 50
            assert not capture.problems
            assert capture.index.is_complete(np.arange(50)).all()


@pytest.mark.long
def test_it_ends_with_the_command_that_started_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept.pcapng"
    with serving(echoing) as address:
        command = [sys.executable, "-m", "dissector", "proxy", address, "--text", "-w", str(kept)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            assert running.stderr is not None
            words = ""
            while "listening on" not in words:
                words = running.stderr.readline()
            host, _, port = words.split("listening on ")[1].split(" ")[0].rpartition(":")
            with socket.create_connection((host, int(port)), 10) as client:
                client.settimeout(10)
                for number in range(20):
                    client.sendall(request(number, api_key=12, version=0))
                    frame(client)
                running.send_signal(signal.SIGTERM)
                out, err = running.communicate(timeout=30)
        assert running.returncode == 0
        assert out.count("Heartbeat") == 20
        assert "1 connection, 20 exchanges" in err
        assert "Traceback" not in err


def test_connections_that_have_ended_are_gone(tmp_path: Path) -> None:
    """The client says that it is done, and then the broker: nothing of them is left open."""

    def broker(connection: socket.socket) -> None:
        connection.sendall(response(int.from_bytes(frame(connection)[4:8], "big")))
        assert connection.recv(1) == b""

    with serving(broker) as address, proxy(tmp_path, address) as running:
        files = Path(f"/proc/{running.recording.pid}/fd")
        before = len([*files.iterdir()])
        for number in range(20):
            with socket.create_connection(running.address, 10) as client:
                client.sendall(request(number))
                assert client.recv(999) == response(number)
        deadline = time.monotonic() + 20
        while len([*files.iterdir()]) > before:
            assert time.monotonic() < deadline, f"{len([*files.iterdir()])} open files, {before} at the beginning"
            time.sleep(0.02)


def test_what_ends_behind_the_recording_is_no_error(tmp_path: Path) -> None:
    """A side that did not read is reset when the proxy ends, and says that it is closed after the file is complete."""
    path = tmp_path / "made.pcapng"
    writer = CaptureWriter(ProxySettings((BrokerAddress("b", 1),), path=str(path)), ETHERNET, lambda _: None)
    log = PacketLog(writer, pytest.fail)
    recorded = RecordedConnection(log, End("127.0.0.1", 1), End("127.0.0.1", 2), 1)
    recorded.data(2, b"kept", from_client=True)
    log.close()
    size = path.stat().st_size
    recorded.data(3, b"late", from_client=True)
    recorded.data(3, bytes(MIB), from_client=False)
    recorded.end(from_client=True)
    assert path.stat().st_size == size
