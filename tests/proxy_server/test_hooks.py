"""What a hook decides happens: to the broker, to the client, in order, and in the recording."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import dpkt
import pytest

from dissector.capture.live.writer import CaptureWriter
from dissector.capture_session import Capture
from dissector.conversation.pcapng import ETHERNET
from dissector.proxy_server import BrokerAddress, ProxySettings
from dissector.proxy_server.broker_ports import BrokerPorts, Listener
from dissector.proxy_server.hooks import (
    NEED_FRAME,
    PASS,
    Action,
    Answer,
    Close,
    Connection,
    Decider,
    Drop,
    FrameHead,
    Pass,
    Replace,
)
from dissector.proxy_server.recording import PacketLog
from dissector.proxy_server.relay import ReadBuffer, Relay
from tests.frames import request, response

Decide = Callable[[FrameHead, bytes | None], Action]


def passes(head: FrameHead, frame: bytes | None) -> Action:
    return PASS


class OneHook:
    """The same deciders for all connections, as functions."""

    def __init__(self, requests: Decide = passes, responses: Decide = passes) -> None:
        self._deciders = _Decider(requests), _Decider(responses)
        self.connections: list[Connection] = []

    def deciders(self, connection: Connection) -> tuple[Decider, Decider]:
        self.connections.append(connection)
        return self._deciders


class _Decider:
    def __init__(self, decide: Decide) -> None:
        self.decide = decide


class Broker:
    """Answers each request, 12 bytes at least, with its correlation id; keeps what came."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.most = 1_000
        """Requests after which it closes the connection."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while len(self.came) < self.most:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                self.came.append(int.from_bytes(frame[4:8], "big"))
                writer.write(response(self.came[-1], b"from the broker"))
        writer.close()


class Run:
    """What the process that proxies has, in this one."""

    def __init__(self, settings: ProxySettings, hook: OneHook) -> None:
        self.settings, self.hook, self.tls = settings, hook, None
        self.said: list[str] = []
        self.relays: set[Relay] = set()
        self.buffer = ReadBuffer()
        self.connections = 0
        writer = CaptureWriter(settings, ETHERNET, lambda _: None)
        self.log = PacketLog(writer, self.said.append)
        self.nodes = BrokerPorts(settings, self._listen, self.said.append)

    tls: ssl.SSLContext | None

    def _listen(self, listener: Listener) -> None:
        loop = asyncio.get_running_loop()
        self.server = loop.create_task(loop.create_server(lambda: Relay(self, listener).client, sock=listener.socket))


class Client:
    """A connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, run: Run, broker: Broker) -> None:
        self.run, self.broker = run, broker
        self._reader, self._writer = reader, writer

    def ask(self, *ids: int) -> None:
        self._writer.write(b"".join(request(each, api_key=12, version=0, client_id=b"me") for each in ids))

    async def answers(self, count: int) -> list[tuple[int, bytes]]:
        found = []
        for _ in range(count):
            size = int.from_bytes(await asyncio.wait_for(self._reader.readexactly(4), 10), "big")
            frame = await self._reader.readexactly(size)
            found.append((int.from_bytes(frame[:4], "big"), frame[4:]))
        return found

    async def rest(self) -> bytes:
        return await asyncio.wait_for(self._reader.read(), 10)

    def comments(self) -> list[bytes]:
        """Those of packets that were recorded."""
        with Path(self.run.settings.path).open("rb") as file:
            blocks = file.read()
        return [each for each in (b"late", b"lost", b"made", b"closed", b"edited") if each in blocks]


@contextlib.asynccontextmanager
async def between(folder: Path, hook: OneHook) -> AsyncIterator[Client]:
    broker = Broker()
    server = await asyncio.start_server(broker.serve, "127.0.0.1", 0)
    address = BrokerAddress(*server.sockets[0].getsockname())
    run = Run(ProxySettings((address,), path=str(folder / "hooked.pcapng")), hook)
    run.nodes.open_bootstrap()
    reader, writer = await asyncio.open_connection("127.0.0.1", run.nodes.listeners[0].port)
    try:
        yield Client(reader, writer, run, broker)
    finally:
        writer.close()
        for relay in [*run.relays]:
            relay.abort()
        (await run.server).close()
        server.close()
        run.log.close()


FROM_BROKER = b"from the broker"


async def test_heads_say_what_a_frame_is(tmp_path: Path) -> None:
    seen: list[FrameHead] = []

    def note(head: FrameHead, frame: bytes | None) -> Action:
        seen.append(head)
        return PASS

    hook = OneHook(note, note)
    async with between(tmp_path, hook) as client:
        client.ask(7)
        assert await client.answers(1) == [(7, FROM_BROKER)]
    asked, answered = seen
    size = len(request(7, api_key=12, client_id=b"me"))
    assert asked == FrameHead(True, 12, 0, 7, "me", size, True)
    assert answered == FrameHead(False, 12, 0, 7, None, 8 + len(FROM_BROKER), False)
    assert hook.connections[0].number == 1


async def test_a_request_that_is_late_holds_back_those_behind_it_and_none_before(tmp_path: Path) -> None:
    def late(head: FrameHead, frame: bytes | None) -> Action:
        return Pass(0.3, "late") if head.correlation_id == 2 else PASS

    async with between(tmp_path, OneHook(late)) as client:
        begun = time.monotonic()
        client.ask(1, 2, 3)
        assert await client.answers(1) == [(1, FROM_BROKER)]
        assert time.monotonic() - begun < 0.3
        assert [number for number, _ in await client.answers(2)] == [2, 3]
        assert time.monotonic() - begun >= 0.3
        assert client.comments() == [b"late"]


async def test_a_response_that_is_late_comes_even_if_the_broker_has_closed(tmp_path: Path) -> None:
    def late(head: FrameHead, frame: bytes | None) -> Action:
        return NEED_FRAME if frame is None else Pass(0.2, "late")

    async with between(tmp_path, OneHook(responses=late)) as client:
        client.broker.most = 2
        client.ask(1, 2)
        assert [number for number, _ in await client.answers(2)] == [1, 2]
        assert await client.rest() == b""


async def test_an_answer_comes_in_its_turn_and_the_broker_never_sees_the_request(tmp_path: Path) -> None:
    def made(head: FrameHead, frame: bytes | None) -> Action:
        return Answer(response(head.correlation_id, b"not me"), "made") if head.correlation_id in (1, 3, 4) else PASS

    async with between(tmp_path, OneHook(made)) as client:
        client.ask(1, 2, 3, 4, 5)
        assert await client.answers(5) == [
            (1, b"not me"), (2, FROM_BROKER), (3, b"not me"), (4, b"not me"), (5, FROM_BROKER)
        ]  # fmt: skip
        assert client.broker.came == [2, 5]
        assert client.comments() == [b"made"]
        with Capture([client.run.settings.path]) as capture:
            for _ in capture.read():
                pass
            assert [each.code for each in capture.problems] == [], "each request is recorded before its response"


async def test_an_answer_may_take_the_place_of_what_the_broker_did(tmp_path: Path) -> None:
    def made(head: FrameHead, frame: bytes | None) -> Action:
        if head.correlation_id != 2:
            return PASS
        return NEED_FRAME if frame is None else Answer(response(2, b"not me"), "made", forward=True, delay=0.1)

    async with between(tmp_path, OneHook(made)) as client:
        client.ask(1, 2, 3)
        assert await client.answers(3) == [(1, FROM_BROKER), (2, b"not me"), (3, FROM_BROKER)]
        assert client.broker.came == [1, 2, 3]


async def test_what_is_dropped_is_never_answered_nor_what_follows(tmp_path: Path) -> None:
    for of_client, came in ((True, [1, 2]), (False, [1, 2, 3, 4, 5])):

        def lost(head: FrameHead, frame: bytes | None, of_client: bool = of_client) -> Action:
            return Drop("lost") if head.correlation_id == 3 and head.from_client == of_client else PASS

        async with between(tmp_path, OneHook(lost, lost)) as client:
            client.ask(1, 2, 3, 4, 5)
            assert [number for number, _ in await client.answers(2)] == [1, 2], "earlier ones are answered"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.answers(1), 0.2)
            assert client.broker.came == came
            assert client.comments() == [b"lost"]


async def test_a_connection_is_closed_before_a_request_or_after_it(tmp_path: Path) -> None:
    for forward, came in ((False, [1]), (True, [1, 2])):

        def closed(head: FrameHead, frame: bytes | None, forward: bool = forward) -> Action:
            return Close("closed", forward=forward) if head.correlation_id == 2 else PASS

        async with between(tmp_path, OneHook(closed)) as client:
            client.ask(1)
            await client.answers(1)
            client.ask(2)
            assert await client.rest() == b""
            await asyncio.sleep(0.1)
            assert client.broker.came == came
            assert client.comments() == [b"closed"]


async def test_a_frame_is_replaced_and_the_recording_has_the_clients_view(tmp_path: Path) -> None:
    def edited(head: FrameHead, frame: bytes | None) -> Action:
        return NEED_FRAME if frame is None else Replace(response(head.correlation_id, b"edited bytes"), "edited")

    async with between(tmp_path, OneHook(responses=edited)) as client:
        client.ask(1)
        assert await client.answers(1) == [(1, b"edited bytes")]
        with Path(client.run.settings.path).open("rb") as file:
            packets = b"".join(data for _, data in dpkt.pcapng.Reader(file))
        assert b"edited bytes" in packets
        assert FROM_BROKER not in packets
