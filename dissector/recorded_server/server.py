"""Listens for clients, and answers them from a recording, one request of a connection after the other, as brokers do.

Invariants:
  * whatever a client sends ends in a response, or in a closed connection and one plain line;
  * what is held is bounded: the size of a frame, all frames that are being received, connections, lines;
  * a client that does not read gets no further responses, and costs nothing else.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dissector.core import limits
from dissector.core.addresses import LOOPBACK
from dissector.core.text import clean, counted, endpoint_name, os_reason
from dissector.protocol.message_layout import PREFIX, REQUEST_ID, key_and_version, sized
from dissector.protocol.schema.loader import api
from dissector.proxy_server.address_walk import FoundAddress
from dissector.proxy_server.exchanges import stranger
from dissector.recorded_server.answering import Answering, ClientState, RecordedAnswer
from dissector.recorded_server.exchanges import RecordedExchanges

MOST_CONNECTIONS: Final = 1_000
MOST_HELD: Final = 256 << 20
"""Bytes of frames that are being received, of all clients."""
FRAME_SECONDS: Final = 60
"""How long a frame may take from its first byte to its last one."""
MOST_LINES: Final = 1_000
QUIET_SECONDS: Final = 1.0
"""After so long without a client the next one finds the recording from its beginning."""
_PIECE: Final = 1 << 16
_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """Where to listen, and how fast to answer."""

    host: str = LOOPBACK
    port: int = 0
    advertise: str = ""
    """The host that clients are told; the one that is listened on by default."""
    speed: float | None = 1.0
    """How many times as fast as recorded long polls are answered; None for at once."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A request and what became of it."""

    connection: int
    request: bytes
    """The frame, its size prefix included."""
    answer: RecordedAnswer


class _OneAddress:
    """The address of this server in place of every broker's."""

    def __init__(self) -> None:
        self.address = LOOPBACK, 0

    def of(self, found: FoundAddress) -> tuple[str, int]:
        return self.address

    def complain(self, words: str) -> None:
        """Nothing that is rewritten here as a whole is complained of."""


class RecordedServer:
    """A server on one port, for as many clients as come."""

    def __init__(
        self,
        recording: RecordedExchanges,
        settings: ServeSettings,
        on_answer: Callable[[Answered], object] = lambda _: None,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`say` gets lines for the user, each once."""
        self._settings = settings
        self._own = _OneAddress()
        self.answering = Answering(recording, self._own)
        self._on_answer = on_answer
        self._say = say
        self._said: set[str] = set()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._last_end = 0.0
        """When the last connection ended, of the loop's clock."""
        self._held = 0
        self.connections = 0
        """How many there were."""

    async def start(self) -> tuple[str, int]:
        """Listen; return the address for clients. Raises `OSError`."""
        self._server = await asyncio.start_server(self._accept, self._settings.host, self._settings.port)
        bound: socket.socket = self._server.sockets[0]
        self._own.address = self._settings.advertise or self._settings.host, bound.getsockname()[1]
        return self._own.address

    async def stop(self) -> None:
        """Close everything."""
        assert self._server is not None
        self._server.close()
        for task in [*self._open]:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if not self._open and asyncio.get_running_loop().time() - self._last_end > QUIET_SECONDS:
            self.answering.restart()
        self._open.add(task)
        self.connections += 1
        try:
            if len(self._open) > MOST_CONNECTIONS:
                self._complain(f"more than {MOST_CONNECTIONS:,} connections: further connections are closed")
                return
            await self._talk(reader, writer, self.connections)
        except asyncio.CancelledError:
            pass  # the server stops
        except OSError:
            pass  # clients close without a word
        finally:
            self._open.discard(task)
            self._last_end = asyncio.get_running_loop().time()
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        peer = endpoint_name(*writer.get_extra_info("peername")[:2])
        state = ClientState()
        is_first = True
        while True:
            frame = await self._frame(reader, peer, is_first=is_first)
            if frame is None:
                return
            is_first = False
            if state.in_tokens and not _is_request(frame):
                writer.write(sized(b""))  # the token of a login that has succeeded is empty (KIP-43)
                continue
            state.in_tokens = False
            answer = self.answering.answer(frame, state)
            if not await self._waited(reader, answer):
                return
            self._on_answer(Answered(number, frame, answer))
            if answer.trouble:
                self._complain(clean(f"{answer.name or 'a client'}: {answer.trouble}"))
            if answer.frame is not None:
                writer.write(answer.frame)
                await writer.drain()
            if answer.closes:
                return

    async def _waited(self, reader: asyncio.StreamReader, answer: RecordedAnswer) -> bool:
        """Wait as long as an answer has to; return whether the client is still there."""
        speed = self._settings.speed
        if speed is None and not answer.is_asked_wait:
            return True
        left = answer.wait_ns / 1e9 / (speed or 1.0)
        while left > 0:
            step = min(left, 0.5)
            await asyncio.sleep(step)
            left -= step
            if reader.at_eof():
                return False
        return True

    async def _frame(self, reader: asyncio.StreamReader, peer: str, *, is_first: bool) -> bytes | None:
        """Receive a frame; None where the connection ends, or is to be closed."""
        head = await reader.read(1)
        if not head:
            return None
        held = 0
        try:
            async with asyncio.timeout(FRAME_SECONDS):
                head += await reader.readexactly(PREFIX - 1)
                size = int.from_bytes(head, "big", signed=True)
                if not 0 <= size <= limits.DEFAULT.frame_size:
                    began = head + await self._some(reader) if is_first else b""
                    words = f" {stranger(began, 'server')}" if is_first else f": {size:,} is no size of a frame"
                    self._complain(f"{peer}{words}")
                    return None
                parts = [head]
                while held < size:
                    part = await reader.read(min(size - held, _PIECE))
                    if not part:
                        self._complain(f"{peer}: ended inside a frame of {counted(size, 'byte')}")
                        return None
                    parts.append(part)
                    held += len(part)
                    self._held += len(part)
                    if self._held > MOST_HELD:
                        self._complain(f"more than {MOST_HELD >> 20} MiB of requests at once: closed a connection")
                        return None
                return b"".join(parts)
        except asyncio.IncompleteReadError:
            self._complain(f"{peer}: ended inside a size prefix")
        except TimeoutError:
            self._complain(f"{peer}: no complete frame within {FRAME_SECONDS} s")
        finally:
            self._held -= held
        return None

    @staticmethod
    async def _some(reader: asyncio.StreamReader) -> bytes:
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(reader.read(_SHOWN), 0.2)
        return b""

    def _complain(self, words: str) -> None:
        if words not in self._said and len(self._said) < MOST_LINES:
            self._said.add(words)
            self._say(words)


def _is_request(frame: bytes) -> bool:
    if len(frame) < REQUEST_ID.stop:
        return False
    key, version = key_and_version(frame)
    known = api(key)
    return known is not None and known.versions.contains(version)


def listen_words(error: OSError, settings: ServeSettings) -> str:
    """Return why a server can't listen, in one line."""
    where = endpoint_name(settings.host, settings.port)
    number = error.errno or 0
    reason = os.strerror(number).lower() if number > 0 else os_reason(error)  # asyncio has words of its own
    return f"can't listen on {where}: {reason}; choose another port with --listen"
