"""Live traffic from Python, on loopback: the exchanges come as they happen."""

import asyncio
import itertools
import os
import socket
import threading
from pathlib import Path

import pytest

import dissector
from tests.capture.live.loopback import broker, needs_rights, talk
from tests.traffic import request

pytestmark = [pytest.mark.slow, needs_rights]
ENOUGH = 3


@pytest.mark.long
def test_exchanges_come_as_they_happen() -> None:
    with broker() as port, dissector.live(port, filter="api == Metadata") as traffic:
        sent: list[int] = []

        def send() -> None:
            for _ in range(ENOUGH):
                talk(port, 1)
                sent.append(1)

        client = threading.Thread(target=send)
        client.start()
        found = list(itertools.islice(traffic, ENOUGH))
        client.join()
    assert len(sent) == ENOUGH
    assert {each.api for each in found} == {"Metadata"}
    assert all(each.latency_ns is not None for each in found)


@pytest.mark.long
def test_what_was_captured_comes_after_a_stop() -> None:
    with broker() as port, dissector.live(port) as traffic:
        talk(port, 1)
        seen = iter(traffic)
        first = next(seen)
        talk(port, 1)
        threading.Timer(1, traffic.stop).start()
        rest = list(seen)
    assert first.api
    assert rest
    assert traffic.dropped == 0


@pytest.mark.long
def test_an_exchange_has_the_processes_of_its_connection() -> None:
    with broker() as port, dissector.live(port) as traffic, socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(request(1))
        exchange = next(iter(traffic))
        assert exchange["pid"] == exchange["server.pid"] == os.getpid()
        assert exchange["process"]


@pytest.mark.long
def test_a_loop_of_asyncio_goes_on_meanwhile() -> None:
    async def watch(port: int) -> tuple[list[dissector.Exchange], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.05)
                ticks += 1

        found: list[dissector.Exchange] = []
        async with dissector.live(port, seconds=20) as traffic:
            ticking = asyncio.create_task(tick())
            client = asyncio.create_task(asyncio.to_thread(talk, port, 1))
            async for exchange in traffic:
                found.append(exchange)
                break
            await client
            ticking.cancel()
        return found, ticks

    with broker() as port:
        found, ticks = asyncio.run(watch(port))
    assert found
    assert ticks


@pytest.mark.long
def test_packets_are_kept_in_a_file_on_request(tmp_path: Path) -> None:
    path = tmp_path / "live.pcapng"
    with broker() as port, dissector.live(port, path=path) as traffic:
        talk(port, 1)
        live = next(iter(traffic))
        with pytest.raises(ValueError, match="give it a path"):
            live.packets()
    with dissector.open(path) as capture:
        assert capture[0].api == live.api
        assert capture[0].packets()
