"""One connection of a client, and the connection to a broker that is made for it.

Bytes that come are recorded at once, with the time at which they came, and sent on. A side that does not read pauses
the other one. What one side ends, the other sees end in the same way: a half-closed connection, a reset.

All connections read into one buffer: bytes are gone from it, on their way and in the recording, before the next read.
Large pieces are recorded and sent from where they are; whoever keeps some of them keeps a copy.
"""

import asyncio
import socket
import ssl
import struct
import time
from typing import Final, Protocol

from dissector.conversation.turns import End
from dissector.core.addresses import BrokerAddress
from dissector.core.text import endpoint_name
from dissector.proxy_server.broker_ports import BrokerPorts, Listener
from dissector.proxy_server.decided_streams import DecidedRequestStream, DecidedResponseStream, Ends
from dissector.proxy_server.exchanges import DecidedPending, NotKafkaError, RequestStream, ResponseStream
from dissector.proxy_server.frame_stream import FrameStream
from dissector.proxy_server.hooks import Connection, Hook
from dissector.proxy_server.ordinary import PendingRequests
from dissector.proxy_server.recording import PacketLog, RecordedConnection
from dissector.proxy_server.settings import ProxySettings
from dissector.proxy_server.upstream import ConnectError, connect

HIGH_WATER: Final = 256 << 10
"""Bytes that wait for a side to read them before the other is paused."""
READ_BYTES: Final = 256 << 10
"""Bytes that are read at once."""
COPIED_BYTES: Final = 16 << 10
"""Bytes of a piece that is copied rather than used where it is: its parts are looked at one by one."""
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER, with which a socket that is closed sends RST."""


class ReadBuffer:
    """What all connections of a run read into."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(READ_BYTES))

    def leave(self) -> None:
        """Read into another one: somebody still needs what was read into this one."""
        self.view = memoryview(bytearray(READ_BYTES))


class RelayRun(Protocol):
    """What all connections of a run share."""

    settings: ProxySettings
    nodes: BrokerPorts
    log: PacketLog
    tls: ssl.SSLContext | None
    relays: set["Relay"]
    buffer: ReadBuffer
    hook: Hook | None
    """Decides about frames; None if nothing does."""
    connections: int
    """How many there were."""


class ConnectionSide(asyncio.BufferedProtocol):
    """One of the two connections."""

    def __init__(self, relay: "Relay", *, is_client: bool) -> None:
        self.relay = relay
        self.is_client = is_client
        self.transport: asyncio.Transport | None = None
        self.stream: FrameStream | None = None
        """Takes what comes from this side."""
        self.has_ended = False
        """Whether this side sends no more."""
        self._pauses = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER)
        if self.is_client:
            self.relay.begin()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.relay.buffer.view

    def buffer_updated(self, nbytes: int) -> None:
        buffer = self.relay.buffer
        data = buffer.view[:nbytes]
        if nbytes <= COPIED_BYTES or self.relay.is_decided:
            self.relay.received(self, bytes(data))
            return
        self.relay.received(self, data)
        if self.relay.other(self).has_unsent:  # which may be bytes of the buffer
            buffer.leave()

    def eof_received(self) -> bool:
        # TLS has no half-closed connections in asyncio, which warns of whoever asks for one
        goes_on = self.relay.ended(self)
        return goes_on and self.transport is not None and self.transport.get_extra_info("ssl_object") is None

    def connection_lost(self, exc: Exception | None) -> None:
        self.relay.lost(self, exc)

    def pause_writing(self) -> None:
        self.relay.other(self).pause()

    def resume_writing(self) -> None:
        self.relay.other(self).resume()

    def pause(self) -> None:
        """Read no more until `resume`, as often as this was called."""
        self._pauses += 1
        if self._pauses == 1 and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        """Undo one `pause`."""
        self._pauses -= 1
        if self._pauses == 0 and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    @property
    def has_unsent(self) -> bool:
        """Whether something waits to be sent to this side."""
        return self.transport is not None and self.transport.get_write_buffer_size() > 0

    def send(self, data: bytes | memoryview) -> None:
        """Send to this side, unless it has gone."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def abort(self) -> None:
        """End it with a reset."""
        if self.transport is None:
            return
        found: socket.socket | None = self.transport.get_extra_info("socket")
        if found is not None and not self.transport.is_closing():
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()


class Relay:
    """Both sides."""

    def __init__(self, run: RelayRun, listener: Listener) -> None:
        self._run = run
        self._listener = listener
        self.buffer = run.buffer
        self.is_decided = False
        """Whether a hook decides about this connection's frames."""
        self.client = ConnectionSide(self, is_client=True)
        self.broker = ConnectionSide(self, is_client=False)
        self._recorded: RecordedConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._is_over = False
        self._number = 0
        self._early = b""

    def begin_tls(self, transport: asyncio.Transport, early: bytes) -> None:
        """The client has connected by TLS, and sent bytes already."""
        self._early = early
        transport.set_protocol(self.client)
        self.client.connection_made(transport)

    def begin(self) -> None:
        """The client has connected: connect to the broker."""
        self._run.connections += 1
        self._number = self._run.connections
        self._run.relays.add(self)
        self.client.pause()
        self._connecting = asyncio.get_running_loop().create_task(self._connect(time.time_ns()))

    async def _connect(self, time_ns: int) -> None:
        broker, settings = self._listener.broker, self._run.settings
        try:
            transport, address = await connect(broker, lambda: self.broker, settings.tls, self._run.tls)
        except ConnectError as error:
            self._run.nodes.complain(str(error))
            if error.address is not None:
                self._begin_recording(time_ns, error.address)
                self._record_reset(self.broker)
            self._over(reset=True)
            return
        if self._is_over:
            transport.abort()
            return
        if broker == self._listener.broker:
            self._listener.names.add(broker._replace(host=address[0]))
        recorded = self._begin_recording(time_ns, address)
        recorded.accepted(time.time_ns())
        self._make_streams(recorded, broker)
        if self._early:
            self.received(self.client, self._early)
            self._early = b""
        self.client.resume()

    def _make_streams(self, recorded: RecordedConnection, broker: BrokerAddress) -> None:
        nodes, hook = self._run.nodes, self._run.hook
        if hook is None:
            pending = PendingRequests()
            self.client.stream = RequestStream(self.broker.send, pending, nodes.complain)
            self.broker.stream = ResponseStream(self.client.send, pending, nodes)
            return
        name = endpoint_name(*recorded.client)
        self.is_decided, decided_pending = True, DecidedPending()
        requests, responses = hook.deciders(Connection(self._number, name, str(broker), self._listener.node))
        decided = DecidedResponseStream(
            self.client.send, decided_pending, nodes, responses, self._ends(recorded, self.broker)
        )
        self.broker.stream = decided
        self.client.stream = DecidedRequestStream(
            self.broker.send, decided_pending, nodes.complain, requests, self._ends(recorded, self.client), decided
        )

    def _ends(self, recorded: RecordedConnection, side: ConnectionSide) -> Ends:
        is_client = side.is_client
        return Ends(
            lambda data, comment: recorded.data(time.time_ns(), data, comment, from_client=is_client),
            lambda comment: recorded.note(comment, from_client=is_client),
            lambda reset: self._over(reset=reset),
            side.pause,
            side.resume,
        )

    def received(self, side: ConnectionSide, data: bytes | memoryview) -> None:
        """Record what a side sent, and send it on."""
        if self._recorded is None or side.stream is None:
            return
        if not self.is_decided:
            self._recorded.data(time.time_ns(), data, from_client=side.is_client)
        try:
            side.stream.feed(data)
        except NotKafkaError as error:
            self._run.nodes.complain(f"a client on {self._recorded.client.host} {error}")
            self._over(reset=False)

    def other(self, side: ConnectionSide) -> ConnectionSide:
        """Return the other side."""
        return self.broker if side.is_client else self.client

    def ended(self, side: ConnectionSide) -> bool:
        """A side sends no more; return whether it still wants to read."""
        if side.stream is not None:
            if side.stream.waits:
                side.stream.on_idle.append(lambda: self.ended(side))
                return True
            side.stream.end()
        if self._recorded is not None:
            self._recorded.end(from_client=side.is_client)
        side.has_ended = True
        other = self.other(side).transport
        if self.other(side).has_ended or other is None or other.is_closing() or not other.can_write_eof():
            self._over(reset=False)  # what has ended on both sides nobody else closes
            return False
        other.write_eof()
        return True

    def lost(self, side: ConnectionSide, error: Exception | None) -> None:
        """A side is closed."""
        if isinstance(error, ConnectionResetError):
            self._record_reset(side)
            self._over(reset=True)
        elif side.stream is not None and side.stream.waits and not self._is_over:
            side.stream.on_idle.append(lambda: self._over(reset=False))
        else:
            self._over(reset=False)

    def close(self) -> None:
        """End both sides: the proxy ends."""
        self._over(reset=False)

    def abort(self) -> None:
        """End both sides without a wait for what they have not read."""
        self.client.abort()
        self.broker.abort()

    def _begin_recording(self, time_ns: int, address: tuple[str, int]) -> RecordedConnection:
        assert self.client.transport is not None
        host, port = self.client.transport.get_extra_info("peername")[:2]
        client = End(str(host).partition("%")[0], int(port))
        self._recorded = RecordedConnection(self._run.log, client, End(*address), time_ns)
        return self._recorded

    def _record_reset(self, side: ConnectionSide) -> None:
        if self._recorded is not None:
            self._recorded.reset(from_client=side.is_client)

    def _over(self, *, reset: bool) -> None:
        """Close both sides; what was sent to them still goes out, unless one was reset."""
        if not self._is_over:
            self._is_over = True
            for side in (self.client, self.broker):
                if side.stream is not None:
                    side.stream.abandon()
            if self._recorded is not None:
                for side in (self.client, self.broker):
                    self._recorded.end(from_client=side.is_client)
                self._recorded.close()
            for side in (self.client, self.broker):
                if side.transport is None:
                    continue
                if reset:
                    side.abort()
                else:
                    side.transport.close()
        if all(side.transport is None or side.transport.is_closing() for side in (self.client, self.broker)):
            self._run.relays.discard(self)
