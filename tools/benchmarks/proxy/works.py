"""What the client of the benchmark does on one connection, and what is measured meanwhile."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from tools.benchmarks.proxy.between import Between
from tools.benchmarks.proxy.server import FRAME, HEARTBEAT, LARGE, SMALL, asking

BATCH: Final = 20
Work = Callable[[socket.socket], list[float]]
"""Returns latencies in seconds, if it measures any."""


class Measured(NamedTuple):
    """What one work took."""

    cpu: float
    """Of the process in between, in seconds."""
    clock: float
    latencies: list[float]


def measure(between: Between, work: Work) -> Measured:
    """Do it."""
    with socket.create_connection(between.address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _ask_once(connection)
        cpu, clock = between.cpu(), time.perf_counter()
        latencies = work(connection)
        return Measured(between.cpu() - cpu, time.perf_counter() - clock, latencies)


def receive(connection: socket.socket, size: int) -> None:
    """Read so many bytes."""
    buffer = bytearray(1 << 20)
    while size:
        got = connection.recv_into(buffer, min(size, len(buffer)))
        if not got:
            raise ConnectionError
        size -= got


def _ask_once(connection: socket.socket) -> None:
    connection.sendall(asking(0, SMALL, HEARTBEAT))
    receive(connection, SMALL + 8)


def large(count: int, api: tuple[int, int]) -> Work:
    """Responses of 1 MB, one after the other."""

    def work(connection: socket.socket) -> list[float]:
        for number in range(count):
            connection.sendall(asking(number, LARGE, api))
            receive(connection, LARGE + 8)
        return []

    return work


def batches(count: int, api: tuple[int, int] = HEARTBEAT) -> Work:
    """Small exchanges, several at once."""

    def work(connection: socket.socket) -> list[float]:
        for first in range(0, count, BATCH):
            connection.sendall(b"".join(asking(first + n, SMALL, api) for n in range(BATCH)))
            receive(connection, BATCH * (SMALL + 8))
        return []

    return work


def paced(count: int, rate: float) -> Work:
    """Small exchanges that begin at a rate, whenever their predecessors are answered; what each took from the time at
    which it had to begin."""

    def work(connection: socket.socket) -> list[float]:
        begun = time.perf_counter() + 0.01
        taken: list[float] = []

        def read() -> None:
            rest, buffer = 0, bytearray(1 << 16)
            while len(taken) < count:
                rest += connection.recv_into(buffer)
                now = time.perf_counter()
                while rest >= SMALL + 8:
                    rest -= SMALL + 8
                    taken.append(now - begun - len(taken) / rate)

        reader = threading.Thread(target=read)
        reader.start()
        sent = 0
        while sent < count:
            due = min(count, int((time.perf_counter() - begun) * rate) + 1)
            if due > sent:
                connection.sendall(b"".join(asking(n, SMALL, HEARTBEAT) for n in range(sent, due)))
                sent = due
            time.sleep(max(0.0, begun + sent / rate - time.perf_counter()))
        reader.join()
        return taken

    return work


async def many(between: Between, connections: int, each: int) -> Measured:
    """As many connections at once, each with small exchanges one after the other."""
    cpu, clock = between.cpu(), time.perf_counter()
    latencies: list[float] = []

    async def one() -> None:
        reader, writer = await asyncio.open_connection(*between.address)
        for number in range(each):
            begun = time.perf_counter()
            writer.write(asking(number, SMALL, HEARTBEAT))
            await reader.readexactly(SMALL + 8)
            latencies.append(time.perf_counter() - begun)
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return Measured(between.cpu() - cpu, time.perf_counter() - clock, latencies)


def unread(between: Between, seconds: float) -> int:
    """A client that asks for responses of 1 MB and reads none of them; returns how many bytes of requests went out."""
    sent = 0
    with socket.create_connection(between.address) as connection, contextlib.suppress(BlockingIOError):
        connection.setblocking(False)
        for number in range(2_000):
            sent += connection.send(asking(number, LARGE, HEARTBEAT))
        time.sleep(seconds)
    return sent // FRAME
