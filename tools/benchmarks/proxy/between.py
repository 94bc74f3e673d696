"""What stands between client and server: the proxy, and what it is held against, each a process of its own."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from multiprocessing import Process
from pathlib import Path
from typing import IO, Final, NamedTuple

from dissector.capture.live import Recording
from dissector.capture.live.settings import RingSettings
from dissector.proxy_server import BrokerAddress, ProxySettings

Address = tuple[str, int]
_RING: Final = RingSettings(kilobytes=16_000, files=3)
"""The proxy records to a ring, whose memory is used again: on a virtual machine, memory that is touched for the first
time costs up to ten times what the copy into it does."""


class Between(NamedTuple):
    """A process, and where it listens."""

    name: str
    address: Address
    pid: int

    def cpu(self) -> float:
        """Seconds of CPU, user and system, that it has used; in steps of a nanosecond where the kernel counts so."""
        return float(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def memory(self) -> int:
        """Bytes of memory that it holds at most since it began."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


class _Files:
    """Where a relay writes what passes, as bytes: files as large as those of the proxy's ring, and as many."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._count = 0
        self._file: IO[bytes] | None = None
        self._left = 0

    def write(self, data: bytes) -> None:
        if self._left <= 0:
            if self._file is not None:
                self._file.close()
            (self._folder / str(self._count - _RING.files)).unlink(missing_ok=True)
            self._file = (self._folder / str(self._count)).open("wb", buffering=0)
            self._count += 1
            self._left = _RING.kilobytes * 1_000
        assert self._file is not None
        self._left -= self._file.write(data)


class _Plain(asyncio.Protocol):
    """A relay that knows nothing."""

    def __init__(self, peer: "_Plain | None", server: Address, files: _Files | None) -> None:
        self.peer, self._server, self._files = peer, server, files
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
            lambda: _Plain(self, self._server, self._files), *self._server
        )
        self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        assert self.peer is not None
        if self._files is not None:
            self._files.write(data)
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


def _relay(listener: socket.socket, server: Address, folder: str) -> None:
    async def run() -> None:
        files = _Files(folder) if folder else None
        loop = asyncio.get_running_loop()
        await (await loop.create_server(lambda: _Plain(None, server, files), sock=listener)).serve_forever()

    asyncio.run(run())


@contextlib.contextmanager
def plain(server: Address, folder: str = "") -> Iterator[Between]:
    """A plain asyncio relay."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    process = Process(target=_relay, args=(listener, server, folder), daemon=True)
    process.start()
    assert process.pid is not None
    yield Between("asyncio relay, to a file" if folder else "asyncio relay", listener.getsockname(), process.pid)
    process.terminate()
    process.join()


@contextlib.contextmanager
def writing(server: Address) -> Iterator[Between]:
    """A plain asyncio relay that writes all bytes to files."""
    with tempfile.TemporaryDirectory() as folder, plain(server, folder) as found:
        yield found


@contextlib.contextmanager
def ours(server: Address) -> Iterator[Between]:
    """The proxy."""
    with tempfile.TemporaryDirectory() as folder:
        settings = ProxySettings((BrokerAddress(*server),), path=str(Path(folder) / "kept.pcapng"), ring=_RING)
        with Recording(settings) as recording:
            threading.Thread(target=_let_go, args=(recording,), daemon=True).start()
            found = BrokerAddress.parse(recording.listening[0][0])
            yield Between("kdissect proxy", (found.host, found.port), recording.pid)


def _let_go(recording: Recording) -> None:
    """Close each file of the ring when the next one is there, as a reader does."""
    while recording.next_path() is not None:
        pass


@contextlib.contextmanager
def socat(server: Address) -> Iterator[Between]:
    """socat, with as much memory for a piece as the others have; one process, one connection."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["socat", "-b", "262144", f"TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr", f"TCP:{server[0]}:{server[1]}"]
    with subprocess.Popen(command) as process:
        time.sleep(0.3)
        yield Between("socat", ("127.0.0.1", port), process.pid)
        process.terminate()


@contextlib.contextmanager
def nothing(server: Address) -> Iterator[Between]:
    """The client speaks with the server."""
    yield Between("nothing", server, os.getpid())


Kind = Callable[[Address], AbstractContextManager[Between]]
KINDS: Final[tuple[Kind, ...]] = (plain, writing, ours, *([socat] if shutil.which("socat") else []))
