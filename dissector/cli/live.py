"""`kdissect live`: capture live traffic, on the screen or as rows on stdout.

Stderr names what is captured, and soon shows if there is no traffic. The first Ctrl+C ends the capture, and rows
captured by then are still shown; the second one ends at once. When the reader of the rows has gone, a terminal or a
pipe, the capture ends by itself; the file of `-w` is complete.

Invariant: no packet is read with rights that the user who called sudo does not have.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

from dissector.capture.live import (
    LOOPBACK,
    CaptureSettings,
    Recording,
    RecordingSettings,
    RingSettings,
    interfaces,
    recording_source,
    start_and_give_up_rights,
)
from dissector.capture.live.local_processes import processes_of
from dissector.capture.live.recorder_process import start_recorder
from dissector.capture_session import Capture
from dissector.capture_session.process_watch import ProcessWatch
from dissector.cli.errors import UsageError, is_output_closed, print_error
from dissector.cli.metering import metering
from dissector.cli.options import CaptureOptions
from dissector.cli.render.printing import RowRenderer
from dissector.cli.show import follow, print_problems
from dissector.core.kept_files import keep_open
from dissector.core.text import clean, counted

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.capture.live.recorder_process import RecorderProcess
    from dissector.capture.live.right_holder import RightHolder
    from dissector.filter import Filter

KAFKA_PORT: Final = 9092
_END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOWER_PRIORITY: Final = 5
"""How far this process steps back where the capture process could not step forward."""
SILENT_SECONDS: Final = 3
"""Seconds without a packet until stderr shows it, and again after three times as long."""


def capture_settings(
    interface: str | None, ports: list[int], expression: str, path: str, ring: list[str], *, promiscuous: bool
) -> CaptureSettings:
    """Return the settings of a capture from options. Raises `UsageError`."""
    if expression and ports:
        raise UsageError("--capture-filter replaces -p: name the ports in the filter, “tcp port 9092 and host …”")
    if ring and not path:
        raise UsageError("-b needs -w: the name of the ring buffer's files")
    if path == "-":
        raise UsageError("-w needs a file: rows go to standard output")
    files = RingSettings.parse(ring) if ring else None
    name = interface or LOOPBACK
    # on loopback Kafka is recognized by content on any port; a network may carry much else
    chosen = ports or ([] if name == LOOPBACK else [KAFKA_PORT])
    return CaptureSettings(name, tuple(chosen), expression, promiscuous, path, files)


def live(
    settings: RecordingSettings,
    printing: RowRenderer | None,
    duration: float | None,
    limit: int | None,
    row_filter: "Filter | None",
    options: CaptureOptions,
    *,
    metrics: str = "",
    shows_processes: bool = True,
    at_end: Callable[[Sequence[Recording]], int] = lambda _: 0,
) -> int:
    """Capture or proxy, and print rows, or show the screen if `printing` is None; return the exit code: 0 even without
    traffic, 2 if capturing failed, else what `at_end` returns for all recordings."""
    captures: list[tuple[Capture, Recording]] = []
    for key_log in options.key_logs:
        keep_open(key_log)
    opener = options.chosen_opener  # it reads schemas
    meter = metering(metrics) if metrics else None
    first, holder = _start(settings)
    if holder is not None and holder.warning:
        print_error(holder.warning)
    processes = [first]
    find = processes_of if holder is None else holder.processes_of
    with ExitStack() as stack:
        if holder is not None:
            stack.enter_context(holder)
        if meter is not None:
            stack.enter_context(meter)

        def begin(settings: RecordingSettings) -> tuple[Capture, Recording, RecordingSettings]:
            process = processes.pop() if processes else holder.start_recorder() if holder is not None else None
            recording = stack.enter_context(Recording(settings, process))
            if not (recording.has_priority or captures):
                os.nice(LOWER_PRIORITY)
            if duration is not None:
                recording.stop_after(duration)
            source, ports = recording_source(recording), frozenset(settings.ports)
            capture = stack.enter_context(
                Capture(
                    [source],
                    ports=ports,
                    decode_as=options.choices,
                    key_logs=options.key_logs,
                    show_secrets=options.show_secrets,
                    resolves=options.resolve,
                    opener=opener,
                )
            )
            if shows_processes:
                stack.enter_context(ProcessWatch(capture, recording.comment, find))
            if meter is not None:
                stack.enter_context(meter.of(capture, recording))
            captures.append((capture, recording))
            return capture, recording, settings

        capture, recording, _ = begin(settings)
        if printing is None:
            from dissector.cli.screen import run_live

            signal.signal(signal.SIGINT, signal.default_int_handler)  # the screen gives the terminal back
            run_live(capture, recording, settings, begin)
        else:
            _print(capture, recording, settings, printing, limit, row_filter)
        for capture, recording in captures:
            recording.stop()
            recording.join()
            print_problems(capture)
            print(summary(capture, recording), file=sys.stderr)
    code = at_end([each for _, each in captures])
    return print_error(recording.failure) if recording.failure else code


def _start(settings: RecordingSettings) -> "tuple[RecorderProcess, RightHolder | None]":
    """Start the process that records. What needs rights to do so gets them, and this process gives them up."""
    if isinstance(settings, CaptureSettings):
        return start_and_give_up_rights(settings)
    return start_recorder(settings), None


def _print(
    capture: Capture,
    recording: Recording,
    settings: RecordingSettings,
    printing: RowRenderer,
    limit: int | None,
    row_filter: "Filter | None",
) -> None:
    status = _status(capture, recording, settings)

    def step() -> None:
        for message in (*recording.messages(), next(status, None)):
            if message:
                print_error(message)
        if is_output_closed():
            raise BrokenPipeError

    with _end_on_signals(recording):
        print_error(f"{settings.words}, with {recording.engine}; Ctrl+C ends it")
        follow(capture, printing, sys.stdout.buffer, limit, step, row_filter)


def _status(capture: Capture, recording: Recording, settings: RecordingSettings) -> Iterator[str | None]:
    """Yield a message, or None, for each step: that there is no traffic; in the end, how many packets are unread."""
    next_seconds: float = SILENT_SECONDS
    while not recording.ended:
        if capture.packets or recording.stopping or recording.seconds < next_seconds:
            yield None
        else:
            yield settings.no_traffic_message(next_seconds)
            next_seconds *= 3
    unread = recording.captured - capture.packets
    yield f"{counted(unread, 'packet')} still to be read; press Ctrl+C again to skip them" if unread > 0 else None


def summary(capture: Capture, recording: Recording) -> str:
    """Return one line: packets captured, dropped and unread, exchanges, and the duration."""
    captured, dropped = max(recording.captured, capture.packets), recording.dropped
    if recording.listening:
        connections = counted(len(capture.connections), "connection")
        return f"{connections}, {counted(len(capture), 'exchange')}, {recording.seconds:.1f} s"
    words = f"{counted(captured, 'packet')} captured, {dropped:,} dropped by the kernel"
    if dropped:
        words += f" ({100 * dropped / (captured + dropped):.2g}%)"
    if captured > capture.packets:
        words += f", {captured - capture.packets:,} unread"
    return f"{words}, {counted(len(capture), 'exchange')}, {recording.seconds:.1f} s"


def list_interfaces() -> int:
    """Print the interfaces; return the exit code."""
    for each in interfaces():
        words = [word for word, holds in (("loopback", each.loopback), ("down", not each.up)) if holds]
        print(f"{clean(each.name):<16} {', '.join(words)}".rstrip())
    return 0


@contextmanager
def _end_on_signals(recording: Recording) -> Iterator[None]:
    """End the capture on the first signal, and the command on the second."""

    def end(number: int, frame: FrameType | None) -> None:
        if recording.stopping:
            raise KeyboardInterrupt
        recording.stop()

    handlers = {number: signal.signal(number, end) for number in _END_SIGNALS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
