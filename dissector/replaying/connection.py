"""One connection to a broker: requests go out in order, each response comes to the request that it answers.

Invariants:
  * whatever the broker sends ends in a response, or in a closed connection and one plain line;
  * a response is bounded in size, and by the time that the caller waits.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from dissector.conversation.turns import End
from dissector.core import limits
from dissector.core.addresses import BrokerAddress
from dissector.protocol.frame import frame_bytes, request_header
from dissector.protocol.message import Values, read
from dissector.protocol.message_layout import PREFIX, REQUEST_ID, RESPONSE_ID, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.errors import error_name
from dissector.proxy_server.settings import UpstreamTls
from dissector.proxy_server.upstream import connect
from dissector.replaying.logins import Dialogue, Login, LoginError

CLIENT_ID: Final = "kdissect-replay"
_BUFFER: Final = 1 << 20


class NoAnswerError(Exception):
    """The broker has closed the connection, or it was closed as its answer made no sense."""


@dataclass(slots=True)
class _SentRequest:
    correlation_id: int
    future: "asyncio.Future[bytes]"


class SentFrame(NamedTuple):
    """A request that was sent."""

    correlation_id: int
    frame: bytes
    future: "asyncio.Future[bytes]"
    """Becomes the response's frame; empty where none is to come."""


class ReplayConnection:
    """An open connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, broker: BrokerAddress, ids: Iterator[int]
    ) -> None:
        """`ids` are the correlation ids, which all connections of a replay share."""
        self.broker = broker
        self._reader, self._writer = reader, writer
        self._waiting: deque[_SentRequest] = deque()
        self._ids = ids
        self.is_closed = False
        local, peer = writer.get_extra_info("sockname"), writer.get_extra_info("peername")
        self.client, self.server = End(*local[:2]), End(*peer[:2])
        self._receiving = asyncio.get_running_loop().create_task(self._receive())

    @classmethod
    async def open(
        cls, broker: BrokerAddress, tls: UpstreamTls | None, context: ssl.SSLContext | None, login: Login | None,
        ids: Iterator[int],
    ) -> "ReplayConnection":  # fmt: skip
        """Connect, and log in. Raises `ConnectError`, `LoginError`."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_BUFFER)
        protocol = asyncio.StreamReaderProtocol(reader)
        connected = await connect(broker, lambda: protocol, tls, context)
        made = cls(reader, asyncio.StreamWriter(connected.transport, protocol, reader, loop), broker, ids)
        if login is not None:
            try:
                await made._log_in(login)
            except (LoginError, NoAnswerError, TimeoutError) as error:
                made.close()
                words = f"login of {login.user} with {login.mechanism}: {error or 'no answer'}"
                raise LoginError(f"{broker}: {words}") from None
        return made

    def send(self, frame: bytes, *, waits: bool) -> "SentFrame":
        """Send a request with a correlation id of its own; return it, and what becomes its response. Raises
        `NoAnswerError`."""
        if self.is_closed:
            raise NoAnswerError("the connection is closed")
        correlation_id = next(self._ids)
        sent = with_correlation_id(frame, correlation_id)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if waits:
            self._waiting.append(_SentRequest(correlation_id, future))
        else:
            future.set_result(b"")
        self._writer.write(sent)
        return SentFrame(correlation_id, sent, future)

    async def drain(self) -> None:
        """Wait until the broker takes what was sent; an error shows where a response is waited for."""
        try:
            await self._writer.drain()
        except OSError:
            self._end("closed the connection")

    async def ask(self, key: int, version: int, body: Values, seconds: float) -> Values:
        """Ask for something that is not recorded; return the body of the response. Raises `NoAnswerError`,
        `TimeoutError`."""
        layout = request_layout(key, version)
        header = request_header(layout, key, version, {"correlation_id": 0, "client_id": CLIENT_ID})
        frame = await asyncio.wait_for(self.send(frame_bytes(layout, header, body), waits=True).future, seconds)
        decoded = read(frame, response_layout(key, version, frame))
        return decoded.body

    def close(self) -> None:
        """Close it."""
        self._end("closed")
        self._receiving.cancel()

    async def _log_in(self, login: Login, seconds: float = 30) -> None:
        shaken = await self.ask(ApiKey.SASL_HANDSHAKE, 1, {"mechanism": login.mechanism}, seconds)
        if shaken.get("error_code"):
            offered = ", ".join(map(str, shaken.get("mechanisms") or ()))
            raise LoginError(f"{error_name(shaken['error_code'])}: it has {offered or 'none'}")
        dialogue = Dialogue(login)
        token = dialogue.begin()
        while True:
            was_done = dialogue.is_done
            answered = await self.ask(ApiKey.SASL_AUTHENTICATE, 0, {"auth_bytes": token}, seconds)
            if answered.get("error_code"):
                raise LoginError(answered.get("error_message") or error_name(answered["error_code"]))
            theirs = answered.get("auth_bytes") or b""
            if was_done:
                dialogue.check(theirs)
                return
            token = dialogue.go_on(theirs)

    async def _receive(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(PREFIX)
                size = int.from_bytes(head, "big", signed=True)
                if not 4 <= size <= limits.DEFAULT.frame_size:
                    self._end(f"announces an answer of {size:,} bytes: not Kafka, or TLS on a plain connection")
                    return
                frame = head + await self._reader.readexactly(size)
                waiting = self._waiting[0] if self._waiting else None
                if waiting is None or frame[RESPONSE_ID] != waiting.correlation_id.to_bytes(4, "big"):
                    self._end("answers what was not asked")
                    return
                self._waiting.popleft()
                if not waiting.future.done():
                    waiting.future.set_result(frame)
        except (asyncio.IncompleteReadError, OSError):
            self._end("closed the connection")

    def _end(self, why: str) -> None:
        self.is_closed = True
        for each in self._waiting:
            if not each.future.done():
                each.future.set_exception(NoAnswerError(why))
                each.future.exception()  # nobody may be waiting for it
        self._waiting.clear()
        self._writer.close()


def with_correlation_id(request: bytes, correlation_id: int) -> bytes:
    """Return the frame of a request with another correlation id."""
    return request[: REQUEST_ID.start] + correlation_id.to_bytes(4, "big") + request[REQUEST_ID.stop :]
