"""`kdissect live`: what clients and brokers say while they say it, on the screen or as rows on stdout.

What is captured is never waited for in silence: stderr says what is listened to, and soon whether nothing comes. The
first Ctrl+C ends the capture, and what is captured by then is still shown; the second one ends at once. Where nobody
reads the rows any more, as the terminal is gone or the pipe closed, it ends by itself, and what `-w` keeps is whole.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

from dissector.capture.live import (
    LOOPBACK,
    CaptureSettings,
    Recording,
    RingSettings,
    interfaces,
    no_traffic_message,
    recording_source,
)
from dissector.capture_session import Capture
from dissector.cli.errors import UsageError
from dissector.cli.exit_codes import is_output_closed, print_error
from dissector.cli.follow import follow
from dissector.cli.render.printing import RowRenderer
from dissector.core.text import clean, counted

if TYPE_CHECKING:  # who has no filter does not pay for importing what parses one
    from dissector.filter import Filter

KAFKA_PORT: Final = 9092
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SILENT_SECONDS: Final = 3
"""After which it is said that nothing comes; and again whenever it has lasted three times as long."""


def capture_settings(
    interface: str | None, ports: list[int], expression: str, path: str, ring: list[str], *, promiscuous: bool
) -> CaptureSettings:
    """The settings that the options describe. Raises `UsageError`."""
    if expression and ports:
        raise UsageError("-f replaces -p: name the ports in the filter, “tcp port 9092 and host …”")
    if ring and not path:
        raise UsageError("-b needs -w: the name of the ring's files")
    if path == "-":
        raise UsageError("-w needs a file: rows go to standard output")
    among = RingSettings.parse(ring) if ring else None
    return CaptureSettings(interface or LOOPBACK, tuple(ports or [KAFKA_PORT]), expression, promiscuous, path, among)


def live(
    settings: CaptureSettings,
    printing: RowRenderer | None,
    duration: float | None,
    limit: int | None,
    row_filter: "Filter | None" = None,
    *,
    show_secrets: bool = False,
) -> int:
    """Capture, and print as `printing` says or show it on the screen; the exit code: 0 however little was seen, 2 where
    capturing ended by itself."""
    begun: list[tuple[Capture, Recording, CaptureSettings]] = []
    with ExitStack() as opened:

        def begin(settings: CaptureSettings) -> tuple[Capture, Recording, CaptureSettings]:
            recording = opened.enter_context(Recording(settings))
            if duration is not None:
                recording.stop_after(duration)
            ports = frozenset(settings.ports)
            capture = opened.enter_context(
                Capture([recording_source(recording)], ports=ports, show_secrets=show_secrets)
            )
            begun.append((capture, recording, settings))
            return begun[-1]

        capture, recording, _ = begin(settings)
        if printing is None:
            from tui.app import run_live

            run_live(capture, recording, settings, begin)
        else:
            _print(capture, recording, settings, printing, limit, row_filter)
        for capture, recording, _ in begun:
            recording.stop()
            recording.join()
            for problem in capture.problems:
                print_error(problem.message)
            print(summary(capture, recording), file=sys.stderr)
    return print_error(recording.failure) if recording.failure else 0


def _print(
    capture: Capture,
    recording: Recording,
    settings: CaptureSettings,
    printing: RowRenderer,
    limit: int | None,
    row_filter: "Filter | None",
) -> None:
    silence, backlog = SilenceReporter(capture, recording, settings), BacklogReporter(capture, recording)

    def step() -> None:
        for words in recording.messages():
            print_error(words)
        silence.look()
        backlog.look()
        if is_output_closed():
            raise BrokenPipeError

    print_error(f"capturing on {settings.interface}, {settings.filter_label}, with {recording.engine}; Ctrl+C ends it")
    with _ended_by_signals(recording):
        follow(capture, printing, sys.stdout.buffer, limit, step, row_filter)


class SilenceReporter:
    """Says what is listened to, when nothing comes."""

    def __init__(self, capture: Capture, recording: Recording, settings: CaptureSettings) -> None:
        self._capture = capture
        self._recording = recording
        self._wanted = settings
        self._patience: float = SILENT_SECONDS

    def look(self) -> None:
        """Say so, if it is time to."""
        if self._capture.packets or self._recording.stopping or self._recording.seconds < self._patience:
            return
        print_error(no_traffic_message(self._wanted, self._patience))
        self._patience *= 3


class BacklogReporter:
    """Says how much is still to be read once the capture has ended, if that may take a while."""

    def __init__(self, capture: Capture, recording: Recording) -> None:
        self._capture = capture
        self._recording = recording
        self._said = False

    def look(self) -> None:
        """Say so, once."""
        left = self._recording.captured - self._capture.packets
        if self._recording.ended and left > 0 and not self._said:
            self._said = True
            print_error(f"{counted(left, 'packet')} still to be read; press Ctrl+C again to skip them")


def summary(capture: Capture, recording: Recording) -> str:
    """One line on what was captured, what was lost and what was seen."""
    captured, dropped = max(recording.captured, capture.packets), recording.dropped
    words = f"{counted(captured, 'packet')} captured, {dropped:,} dropped by the kernel"
    if dropped:
        words += f" ({100 * dropped / (captured + dropped):.2g}%)"
    if captured > capture.packets:
        words += f", {captured - capture.packets:,} not looked at"
    return f"{words}, {counted(len(capture), 'exchange')}, {recording.seconds:.1f} s"


def list_interfaces() -> int:
    """Print the interfaces; the exit code."""
    for each in interfaces():
        words = [word for word, said in (("loopback", each.loopback), ("down", not each.up)) if said]
        print(f"{clean(each.name):<16} {', '.join(words)}".rstrip())
    return 0


@contextmanager
def _ended_by_signals(recording: Recording) -> Iterator[None]:
    """The first signal ends the capture; another one everything."""

    def end(number: int, frame: FrameType | None) -> None:
        if recording.stopping:
            raise KeyboardInterrupt
        recording.stop()

    before = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
