"""The proxy beside a plain asyncio relay, and socat where it is installed: `python -m tools.benchmarks.proxy`.

A client and a server of our own speak through each of them in turn, in one run: responses of 1 MB, small exchanges in
batches, small exchanges one after the other. CPU is that of the process in between alone, user and system; latencies
are the client's. The proxy records to a file; the relays record nothing.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import Process
from pathlib import Path
from typing import Final, NamedTuple

from dissector.capture.live import Recording
from dissector.proxy_server import BrokerAddress, ProxySettings
from tests.frames import request

BATCH: Final = 20
LARGE: Final = 1 << 20
SMALL: Final = 40
FETCH: Final = (1, 12)
FETCH_WITH_ENDPOINTS: Final = (1, 18)
"""A version whose responses are held, as they may end with addresses."""
HEARTBEAT: Final = (12, 4)
Address = tuple[str, int]


def asking(correlation_id: int, size: int, api: tuple[int, int]) -> bytes:
    """A request that asks for a response of `size` bytes behind its header."""
    return request(correlation_id, api_key=api[0], version=api[1], client_id=struct.pack(">I", size), body=bytes(20))


FRAME: Final = len(asking(0, 0, HEARTBEAT))


def serve(listener: socket.socket) -> None:
    """Answer connections one after the other."""
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, contextlib.suppress(ConnectionError):
            answer(connection)


def answer(connection: socket.socket) -> None:
    """Answer whole batches at once."""
    rest = b""
    bodies = {size: b"r" * (size - 3) + bytes(3) for size in (SMALL, LARGE)}  # as Fetch without addresses ends
    while data := connection.recv(1 << 18):
        data = rest + data
        whole = len(data) // FRAME * FRAME
        rest, out = data[whole:], []
        for at in range(0, whole, FRAME):
            size = int.from_bytes(data[at + 14 : at + 18], "big")
            out.append(struct.pack(">i", 4 + size) + data[at + 8 : at + 12] + bodies[size])
        connection.sendall(b"".join(out))


class _Plain(asyncio.Protocol):
    """A relay that knows nothing."""

    def __init__(self, peer: "_Plain | None", server: Address) -> None:
        self.peer, self._server = peer, server
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=256 << 10)
        if self.peer is None:
            transport.pause_reading()
            self._task = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        _, self.peer = await asyncio.get_running_loop().create_connection(
            lambda: _Plain(self, self._server), *self._server
        )
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        assert self.peer is not None
        self.peer.transport.write(data)

    def pause_writing(self) -> None:
        assert self.peer is not None
        self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        assert self.peer is not None
        self.peer.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.peer is not None:
            self.peer.transport.close()


def relay(listener: socket.socket, server: Address) -> None:
    """Run a plain relay."""

    async def run() -> None:
        accepting = await asyncio.get_running_loop().create_server(lambda: _Plain(None, server), sock=listener)
        await accepting.serve_forever()

    asyncio.run(run())


class Between(NamedTuple):
    """What stands between client and server."""

    name: str
    address: Address
    pid: int


@contextlib.contextmanager
def plain(server: Address) -> Iterator[Between]:
    listener = socket.create_server(("127.0.0.1", 0))
    process = Process(target=relay, args=(listener, server), daemon=True)
    process.start()
    assert process.pid is not None
    yield Between("asyncio relay", listener.getsockname(), process.pid)
    process.terminate()
    process.join()


@contextlib.contextmanager
def ours(server: Address) -> Iterator[Between]:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "kept.pcapng")
        with Recording(ProxySettings((BrokerAddress(*server),), path=path)) as recording:
            found = BrokerAddress.parse(recording.listening[0][0])
            yield Between("kdissect proxy", (found.host, found.port), recording.pid)


@contextlib.contextmanager
def socat(server: Address) -> Iterator[Between]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["socat", f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr", f"TCP:{server[0]}:{server[1]}"]
    with subprocess.Popen(command) as process:
        time.sleep(0.3)
        yield Between("socat", ("127.0.0.1", port), process.pid)
        process.terminate()


def cpu(pid: int) -> float:
    """Seconds of CPU, user and system, that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def receive(connection: socket.socket, size: int) -> None:
    buffer = bytearray(1 << 20)
    while size:
        size -= connection.recv_into(buffer, min(size, len(buffer)))


def large(connection: socket.socket, count: int, api: tuple[int, int]) -> list[float]:
    for number in range(count):
        connection.sendall(asking(number, LARGE, api))
        receive(connection, LARGE + 8)
    return []


def batches(connection: socket.socket, count: int) -> list[float]:
    for first in range(0, count, BATCH):
        connection.sendall(b"".join(asking(first + n, SMALL, HEARTBEAT) for n in range(BATCH)))
        receive(connection, BATCH * (SMALL + 8))
    return []


def one_by_one(connection: socket.socket, count: int) -> list[float]:
    taken = []
    for number in range(count):
        begun = time.perf_counter()
        connection.sendall(asking(number, SMALL, HEARTBEAT))
        receive(connection, SMALL + 8)
        taken.append(time.perf_counter() - begun)
    return taken


def measure(between: Between, work: Callable[[socket.socket], list[float]]) -> tuple[float, list[float]]:
    """The CPU that the process in between took, and the client's latencies."""
    with socket.create_connection(between.address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        before = cpu(between.pid)
        latencies = work(connection)
        return cpu(between.pid) - before, latencies


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=1_000)
    options.add_argument("--exchanges", type=int, default=100_000)
    wanted = options.parse_args()
    megabytes, exchanges = wanted.megabytes, wanted.exchanges
    works: dict[str, tuple[Callable[[socket.socket], list[float]], float, str]] = {
        "Fetch v12, 1 MB": (lambda it: large(it, megabytes, FETCH), megabytes / 1_000, "s/GB"),
        "Fetch v18, 1 MB": (lambda it: large(it, megabytes, FETCH_WITH_ENDPOINTS), megabytes / 1_000, "s/GB"),
        f"small, {BATCH} at once": (lambda it: batches(it, exchanges), exchanges / 1e6, "s/million"),
        "small, one by one": (lambda it: one_by_one(it, exchanges // 4), exchanges / 4e6, "s/million"),
    }
    listener = socket.create_server(("127.0.0.1", 0))
    server = Process(target=serve, args=(listener,), daemon=True)
    server.start()
    kinds = [plain, ours, *([socat] if shutil.which("socat") else [])]
    for name, (work, scale, unit) in works.items():
        base = None
        for kind in kinds:
            with kind(listener.getsockname()) as between:
                seconds, latencies = measure(between, work)
            base = base or seconds
            latencies.sort()
            parts = (50, 99) if latencies else ()
            at = {part: latencies[int(len(latencies) * part / 100)] * 1e6 for part in parts}
            words = "".join(f"  p{part} {value:.0f} µs" for part, value in at.items())
            print(f"{name:<20} {between.name:<15} {seconds / scale:7.2f} {unit:<10} {seconds / base:5.2f}x{words}")
            sys.stdout.flush()
    server.terminate()


if __name__ == "__main__":
    main()
