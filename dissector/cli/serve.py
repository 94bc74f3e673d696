"""`kdissect serve`: answers clients from a capture until Ctrl+C, and says what had no answer."""

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dissector.capture.errors import CaptureError
from dissector.cli.errors import UsageError, print_error
from dissector.cli.options import CaptureOptions
from dissector.cli.render.progress import read_with_progress
from dissector.core.addresses import listen_address
from dissector.core.text import clean, counted, endpoint_name
from dissector.exchange.info_column import info
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.message_layout import key_and_version, request_layout
from dissector.proxy_server import AddressError
from dissector.proxy_server.settings import ANY_ADDRESSES, FIRST_PORT
from dissector.recorded_server import Answered, RecordedExchanges, RecordedServer, ServeSettings, recording_of
from dissector.recorded_server.server import listen_words

_TRIES: Final = 1_000
"""Ports that are tried above a taken one."""
_MOST_ROWS: Final = 8
_MOST_KINDS: Final = 1_000
"""Kinds of requests without an answer that are counted."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_settings(listen: str, advertise: str, speed: float, *, waits: bool) -> ServeSettings:
    """Return the settings of options. Raises `UsageError`."""
    try:
        host, port = listen_address(listen)
    except AddressError as error:
        raise UsageError(str(error)) from None
    if host in ANY_ADDRESSES and not advertise:
        raise UsageError(f"--listen {listen} needs --advertise HOST: the name by which clients reach this machine")
    if ":" in advertise or "/" in advertise:
        raise UsageError(f"--advertise {advertise}: a host name or an IPv4 address is expected, without a port")
    return ServeSettings(host, -1 if port is None else port, advertise, speed if waits else None)


def serve(
    files: Sequence[str], settings: ServeSettings, duration: float | None, options: CaptureOptions, *, text: bool
) -> int:
    """Serve captures; return the exit code."""
    with replace(options, show_secrets=True).open(files) as capture:  # clients get what was recorded
        read_with_progress(capture)
        recording = recording_of(capture)
        names = ", ".join(capture.names)
    if not recording.exchanges:
        return print_error(f"{names}: contains no complete Kafka exchange: nothing can be answered")
    return asyncio.run(_ServeRun(recording, settings, names, shows=text).run(duration))


class _ServeRun:
    """One run: what was answered is counted, and printed if it is wanted."""

    def __init__(self, recording: RecordedExchanges, settings: ServeSettings, names: str, *, shows: bool) -> None:
        self._recording = recording
        self._settings = settings
        self._names = names
        self._shows = shows
        self._answered = 0
        self._rows: set[int] = set()
        self._troubles: Counter[str] = Counter()
        self._ended = asyncio.Event()

    async def run(self, duration: float | None) -> int:
        """Serve until a signal, or for so many seconds. Raises `CaptureError` if no port is free."""
        server = await self._started()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._ended.set)
        if duration is not None:
            loop.call_later(duration, self._ended.set)
        await self._ended.wait()
        await server.stop()
        self._summary(server.connections)
        return 0

    async def _started(self) -> RecordedServer:
        first = self._settings.port
        ports = range(FIRST_PORT, FIRST_PORT + _TRIES) if first < 0 else (first,)
        failure = ""
        for port in ports:
            settings = replace(self._settings, port=port)
            server = RecordedServer(self._recording, settings, self._on_answer, _say)
            try:
                address = await server.start()
            except OSError as error:
                failure = listen_words(error, settings)
                continue
            exchanges = counted(len(self._recording.exchanges), "exchange")
            _say(f"listening on {endpoint_name(*address)} with {exchanges} of {clean(self._names)}; "
                 "point bootstrap.servers there")  # fmt: skip
            if self._recording.left_out:
                _say(f"{counted(self._recording.left_out, 'row')} can't be used: incomplete, or not an exchange")
            return server
        raise CaptureError(failure)

    def _on_answer(self, answered: Answered) -> None:
        answer = answered.answer
        self._answered += not answer.trouble
        self._rows.update(answer.rows)
        if answer.trouble:
            kind = f"{answer.name or 'no request'}: {answer.trouble}"
            self._troubles[kind if len(self._troubles) < _MOST_KINDS else "others"] += 1
        if self._shows:
            try:
                print(_line(answered), flush=True)
            except OSError:  # the reader of the lines has gone
                self._shows = False
                self._ended.set()

    def _summary(self, connections: int) -> None:
        used = f"{len(self._rows):,} of {counted(len(self._recording.exchanges), 'exchange')}"
        _say(f"answered {counted(self._answered, 'request')} of {counted(connections, 'connection')} from {used}")
        for kind, count in self._troubles.most_common():
            _say(f"  {count:,} x {clean(kind)}")


def _line(answered: Answered) -> str:
    """Return the row of a request: connection, request, and where its answer comes from."""
    answer, frame = answered.answer, answered.request
    words = ""
    if answer.name and not answer.name.startswith("API "):
        layout = request_layout(*key_and_version(frame), frame)
        message = ExchangeMessage.of_frame(0, len(frame), frame, len(frame), layout, EMPTY_CONTEXT, show_secrets=False)
        words = info(message, None, [], {})
    shown = ", ".join(map(str, answer.rows[:_MOST_ROWS])) + ", …" * (len(answer.rows) > _MOST_ROWS)
    source = f"{'rows' if len(answer.rows) > 1 else 'row'} {shown}" if answer.rows else ""
    if not (source or answer.trouble):
        source = "nothing further" if answer.is_asked_wait else "made" if answer.frame is not None else "no response"
    origin = "; ".join(filter(None, (source, answer.trouble)))
    return clean(f"{answered.connection:>4}  {answer.name or 'not Kafka':<28} {words}  <- {origin}")


def _say(words: str) -> None:
    print(f"kdissect: {words}", file=sys.stderr, flush=True)
