"""`kdissect live`: capture live traffic, on the screen or as rows on stdout.

Stderr names what is captured, and soon shows if there is no traffic. The first Ctrl+C ends the capture, and rows
captured by then are still shown, for a few seconds where reading is behind; the second one ends at once. When the
reader of the rows has gone, a terminal or a pipe, the capture ends by itself; the file of `-w` is complete. With a
command, the capture lasts as long as it runs (`beside_command.py`); what is judged at the end is `verdict.py`'s.

Invariants:
  * no packet is read with rights that the user who called sudo does not have;
  * nothing is judged before all is read.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple

from dissector.capture.live import (
    LOOPBACK,
    CaptureSettings,
    Recording,
    RecordingSettings,
    RingSettings,
    interfaces,
    start_and_give_up_rights,
)
from dissector.capture.live.local_processes import processes_of
from dissector.capture.live.recorder_process import start_recorder
from dissector.capture.live.waiting_command import WaitingCommand
from dissector.capture_session import Capture
from dissector.capture_session.stage_pipeline import Source
from dissector.cli.beside_command import check_command, run_beside
from dissector.cli.errors import UsageError, is_output_closed, output_error_code, print_error
from dissector.cli.live_reading import LiveReading
from dissector.cli.metering import metering
from dissector.cli.options import CaptureOptions
from dissector.cli.passed_signals import PassedSignals
from dissector.cli.render.printing import RowRenderer
from dissector.cli.show import follow, print_all, print_problems
from dissector.core.addresses import KAFKA_PORT
from dissector.core.files import keep_open
from dissector.core.process_memory import giving_back
from dissector.core.text import clean, counted

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.capture.live.recorder_process import RecorderProcess
    from dissector.capture.live.right_holder import RightHolder
    from dissector.cli.verdict import CaptureVerdict
    from dissector.core.object_graph import Nodes
    from dissector.filter import Filter
    from dissector.records.values.opener import ValueOpener

_END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOWER_PRIORITY: Final = 5
"""How far this process steps back where the capture process could not step forward."""
LAST_SECONDS: Final = 3
"""Seconds of reading on after a first Ctrl+C, where nothing is judged."""
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


class LiveOutput(NamedTuple):
    """What is shown of a capture."""

    on_screen: bool
    rows: RowRenderer | None = None
    """How rows are printed, where there is no screen; None for no rows."""
    limit: int | None = None
    row_filter: "Filter | None" = None


def live(
    settings: RecordingSettings,
    output: LiveOutput,
    duration: float | None,
    options: CaptureOptions,
    *,
    metrics: str = "",
    shows_processes: bool = True,
    words: Sequence[str] = (),
    verdict: "CaptureVerdict | None" = None,
    at_end: Callable[[Sequence[Recording]], int] = lambda _: 0,
) -> int:
    """Capture or proxy, beside the command of `words` if there are any, and show what `output` says. Return the exit
    code: the command's if it failed; 2 if capturing failed; else the worst of the verdict and of `at_end` for all
    recordings, and 0 even without traffic."""
    check_command(words, duration)
    for key_log in options.key_logs:
        keep_open(key_log)
    if verdict is not None and isinstance(settings, CaptureSettings):
        verdict.keep_writable()
    opener = options.chosen_opener  # it reads schemas
    meter = metering(metrics) if metrics else None
    with ExitStack() as stack:
        command = stack.enter_context(WaitingCommand(words)) if words else None
        first, holder = _start(settings)
        if holder is not None and holder.warning:
            print_error(holder.warning)
        signals = stack.enter_context(PassedSignals()) if command is not None else None
        for each in (holder, meter):
            stack.enter_context(each or nullcontext())
        readings: list[tuple[LiveReading, Recording]] = []
        processes = [first]
        find = None if not shows_processes else processes_of if holder is None else holder.processes_of

        def start(settings: RecordingSettings) -> Recording:
            process = processes.pop() if processes else holder.start_recorder() if holder is not None else None
            recording = stack.enter_context(Recording(settings, process))
            if not (recording.has_priority or readings):
                os.nice(LOWER_PRIORITY)
            if duration is not None:
                recording.stop_after(duration)
            return recording

        def read(settings: RecordingSettings, recording: Recording, *, forgets: bool = False) -> LiveReading:
            open_capture = partial(_open_capture, settings, options, opener)
            reading = stack.enter_context(LiveReading(recording, open_capture, find, meter, forgets=forgets))
            readings.append((reading, recording))
            return reading

        def begin(settings: RecordingSettings) -> tuple[Capture, Recording, RecordingSettings]:
            recording = start(settings)
            return read(settings, recording).capture, recording, settings

        recording = start(settings)
        looks_back = output.on_screen or command is not None or verdict is not None
        reading, code = read(settings, recording, forgets=not looks_back), 0
        if command is not None and signals is not None:
            code = run_beside(command, signals, reading.capture, recording, settings)
            signals.end()
        elif output.on_screen:
            from dissector.cli.screen import run_live

            signal.signal(signal.SIGINT, signal.default_int_handler)  # the screen gives the terminal back
            run_live(reading.capture, recording, settings, begin)
        else:
            _print(reading, recording, settings, output, reads_all=verdict is not None)
        _end([(each.capture, recording) for each, recording in readings])
        ours = _report(reading.capture, settings, output, verdict, prints_rows=command is not None)
        ours = max(ours, at_end([each for _, each in readings]))
    return code or (print_error(recording.failure) if recording.failure else ours)


def _open_capture(
    settings: RecordingSettings,
    options: CaptureOptions,
    opener: "ValueOpener | None",
    source: Source,
    state: "Nodes | None",
) -> Capture:
    """Open what is recorded, or what continues it from a checkpoint on."""
    return Capture(
        [source],
        ports=frozenset(settings.ports),
        decode_as=options.choices,
        key_logs=options.key_logs,
        show_secrets=options.show_secrets,
        resolves=options.resolve,
        opener=opener,
        checkpoint=state,
    )


def _end(captures: Sequence[tuple[Capture, Recording]]) -> None:
    """End recordings, and print what is wrong with each and how much it has."""
    for capture, recording in captures:
        recording.stop()
        recording.join()
        print_problems(capture)
        print(summary(capture, recording), file=sys.stderr)


def _report(
    capture: Capture,
    settings: RecordingSettings,
    output: LiveOutput,
    verdict: "CaptureVerdict | None",
    *,
    prints_rows: bool,
) -> int:
    """Print the rows, if they were not printed as they came, and what is judged; return the exit code. It is that of
    what is judged also where nobody reads what is printed any more."""
    code = 0
    try:
        if prints_rows and output.rows is not None:
            print_all(capture, output.rows, sys.stdout.buffer, output.limit, output.row_filter)
        if verdict is not None:
            out = sys.stderr if output.rows is not None else sys.stdout  # which has rows, or the report, not both
            code = verdict.judge(capture, settings.path or settings.interface_name, out)
        sys.stdout.flush()
    except OSError as error:
        code = max(code, output_error_code(error))
    return code


def _start(settings: RecordingSettings) -> "tuple[RecorderProcess, RightHolder | None]":
    """Start the process that records. What needs rights to do so gets them, and this process gives them up."""
    if isinstance(settings, CaptureSettings):
        return start_and_give_up_rights(settings)
    return start_recorder(settings), None


def _print(
    reading: LiveReading,
    recording: Recording,
    settings: RecordingSettings,
    output: LiveOutput,
    *,
    reads_all: bool,
) -> None:
    """Print rows as they come, if there are to be any, until the capture ends; all of them if it `reads_all`."""
    signals = _EndSignals(recording)
    status = _status(reading, recording, settings, signals, reads_all=reads_all)

    def step() -> None:
        for message in (*recording.messages(), next(status, None)):
            if message:
                print_error(message)
        if is_output_closed():
            raise BrokenPipeError
        if signals.is_time_up and recording.ended and not reads_all:
            raise _TimeUpError

    with signals, giving_back():
        print_error(f"{settings.words}, with {recording.engine}; Ctrl+C ends it")
        try:
            if output.rows is not None:
                rows = reading.completed_rows()
                follow(rows, output.rows, sys.stdout.buffer, output.limit, step, output.row_filter)
                return
            completed = reading.completed_rows()
            while next(completed, None) is not None:  # nothing here holds on to a capture
                step()
        except _TimeUpError:
            print_error(_unread_words(recording.captured - reading.capture.packets, settings))


class _TimeUpError(Exception):
    """Reading is behind, and the user has waited long enough."""


def _unread_words(packets: int, settings: RecordingSettings) -> str:
    """Return what became of packets that were not read."""
    words = f"{counted(packets, 'packet')} not analyzed"
    if settings.ring is not None:
        return f"{words}: the files of {clean(settings.path)} have them, as far as the ring keeps them"
    if settings.path:
        return f"{words}: {clean(settings.path)} has them"
    return f"{words}: -w FILE would have kept them"


def _status(
    reading: LiveReading, recording: Recording, settings: RecordingSettings, signals: "_EndSignals", *, reads_all: bool
) -> Iterator[str | None]:
    """Yield a message, or None, for each step: that there is no traffic; in the end, how many packets are unread."""
    next_seconds: float = SILENT_SECONDS
    while not recording.ended:
        if reading.capture.packets or recording.stopping or recording.seconds < next_seconds:
            yield None
        else:
            yield settings.no_traffic_message(next_seconds)
            next_seconds *= 3
    unread = recording.captured - reading.capture.packets
    how_long = f", for {LAST_SECONDS} s at most" if signals.came and not reads_all else ""
    skips = "again to skip" if signals.came else "to skip"
    yield f"{counted(unread, 'packet')} still to be read{how_long}; press Ctrl+C {skips} them" if unread > 0 else None


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


class _EndSignals:
    """Ends the capture on the first signal, and the command on the second, within a ``with`` statement."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._came_at: float | None = None
        ignored = {signal.SIGHUP} if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else set()  # by nohup
        self._numbers = [number for number in _END_SIGNALS if number not in ignored]
        self._before: dict[int, object] = {}

    @property
    def came(self) -> bool:
        """Whether one came."""
        return self._came_at is not None

    @property
    def is_time_up(self) -> bool:
        """Whether one came `LAST_SECONDS` ago."""
        return self._came_at is not None and time.monotonic() - self._came_at >= LAST_SECONDS

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self._end) for number in self._numbers}

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what `signal.signal` returned

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._came_at is not None or self._recording.stopping:
            raise KeyboardInterrupt
        self._came_at = time.monotonic()
        self._recording.stop()
