"""The process that proxies: `python -m dissector.proxy_server.process SETTINGS`, where `SETTINGS` is JSON.

It relays and records whatever the analyzing process does, which follows the file. Like the process that captures it
ends cleanly when standard input ends, gets comments on lines of standard input, and its messages are in
`capture.live.events`.
"""

import asyncio
import contextlib
import os
import resource
import signal
import ssl
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from dissector.capture.errors import CaptureError
from dissector.capture.fault_counts import FaultCount
from dissector.capture.live import events
from dissector.capture.live.events import send_event
from dissector.capture.live.output_files import TEMPORARY, OutputFiles
from dissector.capture.live.writer import CaptureWriter
from dissector.conversation.pcapng import ETHERNET
from dissector.core.text import os_reason
from dissector.proxy_server.broker_ports import BrokerPorts, Listener
from dissector.proxy_server.hooks import Hook
from dissector.proxy_server.listening_tls import Handshake, ListeningTls
from dissector.proxy_server.recording import PacketLog
from dissector.proxy_server.relay import Relay
from dissector.proxy_server.settings import ProxySettings
from dissector.proxy_server.upstream import TlsError, tls_context

ENGINE: Final = "asyncio"
STATISTICS_SECONDS: Final = 1.0
CLOSING_SECONDS: Final = 1.0
"""How long sides may take to read what was sent to them, when the proxy ends."""
_MOST_LINE: Final = 1 << 16


class ProxyRun:
    """One run of the proxy: its listeners, its connections, its file."""

    def __init__(
        self,
        settings: ProxySettings,
        log: PacketLog,
        tls: ssl.SSLContext | None,
        hook: Hook | None = None,
        listening_tls: ListeningTls | None = None,
        fault_counts: Callable[[], Sequence[FaultCount]] = tuple,
    ) -> None:
        self.settings = settings
        self.log = log
        self.tls = tls
        self.hook = hook
        self.listening_tls = listening_tls
        self._fault_counts = fault_counts
        self._reported: Sequence[FaultCount] = ()
        self.relays: set[Relay] = set()
        self.connections = 0
        self.nodes = BrokerPorts(settings, self._listen, _say)
        self._handshakes: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Task[asyncio.Server]] = []
        self._ended = asyncio.Event()
        self._begun = b""
        self._is_started = False

    async def run(self) -> None:
        """Proxy until standard input ends. Raises `CaptureError` if a port is taken."""
        try:
            self.nodes.open_bootstrap()
        except OSError as error:
            where = f"{self.settings.host}:{self.settings.port}" if self.settings.port else self.settings.host
            raise CaptureError(f"can't listen on {where}: {os_reason(error)}; --listen takes another port") from None
        send_event(events.STARTED, engine=ENGINE, raised=False)
        self._is_started = True
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._failed)
        loop.add_reader(events.CHANNEL, self._read_channel)
        loop.call_later(STATISTICS_SECONDS, self._report)
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
        send_event(events.LISTENING, address=address, broker=str(listener.broker), words=words)

    def _accept(self, listener: Listener) -> asyncio.Protocol:
        """Return what takes a new connection of a client."""
        relay = Relay(self, listener)
        if self.listening_tls is None:
            return relay.client
        return Handshake(self.listening_tls, relay.begin_tls, self.nodes.complain, self._handshakes)

    def _read_channel(self) -> None:
        data = os.read(events.CHANNEL, _MOST_LINE)
        if not data:
            asyncio.get_running_loop().remove_reader(events.CHANNEL)
            self._ended.set()
            return
        *lines, self._begun = (self._begun + data).split(b"\n")
        if lines:
            self.log.note([line.decode(errors="replace") for line in lines])

    def _report(self) -> None:
        self.log.statistics()
        send_event(events.STATISTICS, captured=self.log.packets, dropped=0)
        self._report_faults()
        asyncio.get_running_loop().call_later(STATISTICS_SECONDS, self._report)

    def _report_faults(self) -> None:
        """Say what became of the rules, if that is new."""
        counts = self._fault_counts()
        if counts != self._reported:
            self._reported = counts
            send_event(events.FAULTS, counts=counts)

    async def _close(self) -> None:
        for task in self._servers:
            (await task).close()
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
        send_event(events.STATISTICS, captured=self.log.packets, dropped=0)
        self._report_faults()


def _say(words: str) -> None:
    send_event(events.NOTE, words=words)


def proxy(settings: ProxySettings) -> None:
    """Proxy until standard input ends. Raises `CaptureError`."""
    try:
        tls = tls_context(settings.tls) if settings.tls is not None else None
        listening_tls = ListeningTls(settings) if settings.listen_tls is not None else None
    except TlsError as error:
        raise CaptureError(str(error)) from None
    name = settings.path or TEMPORARY
    try:
        files = OutputFiles(settings)
        writer = CaptureWriter(settings, ETHERNET, lambda file: send_event(events.FILE, file=file), files)
    except OSError as error:
        raise CaptureError(f"{name}: {os_reason(error)}") from None

    def failed(reason: str) -> None:
        words = f"{name}: {reason}; recording ended, and the proxy goes on"
        send_event(events.NOTE, words=words)
        send_event(events.FAILED, words=words)

    async def run() -> None:
        log = PacketLog(writer, failed)
        if not settings.faults:
            await ProxyRun(settings, log, tls, listening_tls=listening_tls).run()
            return
        from dissector.proxy_server.faults import FaultHook, read_rule  # without rules no filter is parsed

        hook = FaultHook([read_rule(text, name) for name, text in settings.faults])
        await ProxyRun(settings, log, tls, hook, listening_tls, lambda: hook.counts).run()

    asyncio.run(run())
    send_event(events.ENDED)


def main() -> int:
    """Run the process; return its exit code, 0 if it ended as it was told to."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # each connection takes two
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the terminal sends them to the analyzing process, too, which stops us
    try:
        proxy(ProxySettings.from_json(sys.argv[1]))
    except CaptureError as error:
        send_event(events.FAILED, words=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
