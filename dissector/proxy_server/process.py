"""The process that proxies: `python -m dissector.proxy_server.process SETTINGS`, where `SETTINGS` is JSON.

It relays and records whatever the analyzing process does, which follows the file. Like the process that captures it
ends cleanly when standard input ends, gets comments on lines of standard input, and its messages are in
`capture.live.events`. Lines that are commands (`capture.live.commands`) are carried out by `control.py`.

Invariant: it never waits for the analyzing process (`outbox.py`).
"""

import asyncio
import contextlib
import gc
import os
import resource
import signal
import ssl
import sys
from typing import TYPE_CHECKING, Any, Final

from dissector.capture.errors import CaptureError
from dissector.capture.live import events
from dissector.capture.live.commands import MOST_BYTES, is_command
from dissector.capture.live.output_files import TEMPORARY, OutputFiles
from dissector.capture.live.writer import CaptureWriter
from dissector.conversation.pcapng import ETHERNET
from dissector.core.text import os_reason
from dissector.proxy_server.broker_ports import BrokerPorts, Listener
from dissector.proxy_server.hooks import Hook
from dissector.proxy_server.listening_tls import Handshake, ListeningTls
from dissector.proxy_server.outbox import Outbox
from dissector.proxy_server.recording import PacketLog
from dissector.proxy_server.relay import ReadBuffer, Relay
from dissector.proxy_server.settings import ProxySettings
from dissector.proxy_server.upstream import TlsError, tls_context

if TYPE_CHECKING:
    from dissector.proxy_server.control import Control
    from dissector.proxy_server.faults import FaultHook
    from dissector.proxy_server.intercept.holding import HeldFrames

ENGINE: Final = "asyncio"
STATISTICS_SECONDS: Final = 1.0
CLOSING_SECONDS: Final = 1.0
"""How long sides may take to read what was sent to them, when the proxy ends."""
HELD_SECONDS: Final = 0.05
"""Changes of what is held that come within so long are one event."""
_MOST_READ: Final = 1 << 16


class ProxyRun:
    """One run of the proxy: its listeners, its connections, its file."""

    def __init__(
        self,
        settings: ProxySettings,
        log: PacketLog,
        tls: ssl.SSLContext | None,
        outbox: Outbox,
        listening_tls: ListeningTls | None = None,
    ) -> None:
        self.settings = settings
        self.log = log
        self.tls = tls
        self.listening_tls = listening_tls
        self._outbox = outbox
        self.hook: Hook | None = None
        self._faults: FaultHook | None = None
        self._held: HeldFrames | None = None
        self._control: Control | None = None
        self._reported: tuple[object, ...] = ((), ())
        self._tells_held = False
        """Whether what is held will be told soon."""
        self.relays: set[Relay] = set()
        self.buffer = ReadBuffer()
        self.connections = 0
        self.nodes = BrokerPorts(settings, self._listen, self._say)
        self._handshakes: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Task[asyncio.Server]] = []
        self._ended = asyncio.Event()
        self._begun = bytearray()
        self._is_started = False
        if settings.faults or settings.is_controlled:
            self._look_inside()

    def _look_inside(self) -> None:
        """Decide about frames, and take commands: what a run without them has no need to import."""
        from dissector.proxy_server.control import Control
        from dissector.proxy_server.faults import FaultHook, read_rule
        from dissector.proxy_server.intercept.holding import HeldFrames

        settings = self.settings
        self._held = HeldFrames(settings.hold_seconds, self._held_changed, self._say)
        rules = [read_rule(text, name) for name, text in settings.faults]
        self.hook = self._faults = FaultHook(rules, holder=self._held, learns=settings.is_controlled)
        self._control = Control(self._faults, self._held, self._outbox)

    async def run(self) -> None:
        """Proxy until standard input ends. Raises `CaptureError` if a port is taken."""
        try:
            self.nodes.open_bootstrap()
        except OSError as error:
            where = f"{self.settings.host}:{self.settings.port}" if self.settings.port else self.settings.host
            raise CaptureError(
                f"can't listen on {where}: {os_reason(error)}; choose another port with --listen"
            ) from None
        self._outbox.send(events.STARTED, engine=ENGINE, raised=False)
        self._is_started = True
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        loop.add_reader(events.CHANNEL, self._read_channel)
        loop.call_later(STATISTICS_SECONDS, self._report)
        gc.freeze()  # what is there now stays; to look through it takes longer than to relay what comes meanwhile
        await self._ended.wait()
        await self._close()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Say what went wrong with one connection, once: the others go on."""
        error = context.get("exception")
        reason = os_reason(error) if isinstance(error, OSError) else type(error).__name__
        self.nodes.complain(f"{context['message']}: {reason}")

    def _listen(self, listener: Listener) -> None:
        """Accept connections from a new listener."""
        loop = asyncio.get_running_loop()
        made = loop.create_server(lambda: self._accept(listener), sock=listener.socket)
        self._servers.append(loop.create_task(made))
        address = self.nodes.address(listener)
        words = f"listening on {address}{' with TLS' * (self.listening_tls is not None)} for {listener.broker}"
        if not self._is_started:
            trust = self.listening_tls.trust if self.listening_tls is not None else ""
            words += "; point bootstrap.servers there" + (f", and trust {trust} (kdissect proxy ca)" if trust else "")
        self._outbox.send(events.LISTENING, address=address, broker=str(listener.broker), words=words)

    def _accept(self, listener: Listener) -> asyncio.BaseProtocol:
        """Return what takes a new connection of a client."""
        relay = Relay(self, listener)
        if self.listening_tls is None:
            return relay.client
        return Handshake(self.listening_tls, relay.begin_tls, self.nodes.complain, self._handshakes)

    def _read_channel(self) -> None:
        data = os.read(events.CHANNEL, _MOST_READ)
        if not data:
            asyncio.get_running_loop().remove_reader(events.CHANNEL)
            self._ended.set()
            return
        self._begun += data
        if b"\n" not in data:
            if len(self._begun) > MOST_BYTES:
                self._begun.clear()  # what is left of it is no command
            return
        *lines, rest = bytes(self._begun).split(b"\n")
        self._begun = bytearray(rest)
        comments = []
        for line in lines:
            if not is_command(line):
                comments.append(line.decode(errors="replace"))
            elif self._control is not None:
                self._control.carry_out(line)
        if comments:
            self.log.note(comments)

    def _report(self) -> None:
        self.log.statistics()
        self._outbox.send(events.STATISTICS, captured=self.log.packets, dropped=0)
        self._report_faults()
        asyncio.get_running_loop().call_later(STATISTICS_SECONDS, self._report)

    def _report_faults(self) -> None:
        """Say what became of the rules, if that is new."""
        if self._faults is None:
            return
        found = tuple(self._faults.counts), tuple(self._faults.fired)
        if found != self._reported:
            self._reported = found
            self._outbox.send(events.FAULTS, counts=found[0], fired=found[1])

    def _held_changed(self) -> None:
        """Say soon what is held: several changes are one event."""
        if not self._tells_held:
            self._tells_held = True
            asyncio.get_running_loop().call_later(HELD_SECONDS, self._tell_held)

    def _tell_held(self) -> None:
        self._tells_held = False
        if self._held is not None:
            self._outbox.send(events.HELD, state=self._held.state)

    def _say(self, words: str) -> None:
        self._outbox.send(events.NOTE, words=words)

    async def _close(self) -> None:
        for task in self._servers:
            (await task).close()
        if self._held is not None:
            self._held.release_all("then sent on: nobody was there any more")
        for handshake in [*self._handshakes]:
            handshake.cancel()
        for relay in [*self.relays]:
            relay.close()
        deadline = asyncio.get_running_loop().time() + CLOSING_SECONDS
        while self.relays and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for relay in [*self.relays]:
            relay.abort()
        self.log.statistics()
        self.log.close()
        self._outbox.send(events.STATISTICS, captured=self.log.packets, dropped=0)
        self._report_faults()


def proxy(settings: ProxySettings, outbox: Outbox) -> None:
    """Proxy until standard input ends. Raises `CaptureError`."""
    try:
        tls = tls_context(settings.tls) if settings.tls is not None else None
        listening_tls = ListeningTls(settings) if settings.listen_tls is not None else None
    except TlsError as error:
        raise CaptureError(str(error)) from None
    name = settings.path or TEMPORARY
    try:
        files = OutputFiles(settings)
        writer = CaptureWriter(settings, ETHERNET, lambda file: outbox.send(events.FILE, file=file), files)
    except OSError as error:
        raise CaptureError(f"{name}: {os_reason(error)}") from None

    def failed(reason: str) -> None:
        words = f"{name}: {reason}; recording ended, and the proxy goes on"
        outbox.send(events.NOTE, words=words)
        outbox.send(events.FAILED, words=words)

    async def run() -> None:
        await ProxyRun(settings, PacketLog(writer, failed), tls, outbox, listening_tls).run()

    asyncio.run(run())
    outbox.send(events.ENDED)


def main() -> int:
    """Run the process; return its exit code, 0 if it ended as it was told to."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # each connection takes two
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the terminal sends them to the analyzing process, too, which stops us
    outbox = Outbox(events.channel())
    try:
        proxy(ProxySettings.from_json(sys.argv[1]), outbox)
    except CaptureError as error:
        outbox.send(events.FAILED, words=str(error))
        return 1
    finally:
        outbox.drain(CLOSING_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
