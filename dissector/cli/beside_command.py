"""`kdissect live -- COMMAND` and `proxy BROKER -- COMMAND`: the command runs while the capture does.

The terminal is the command's from its start to its end: nothing of ours comes between its lines. Rows, reports and
messages follow when it has ended, so that output to a terminal or a file of CI reads as two parts; who wants rows alone
keeps packets (`-w`) and shows them. It has our standard input, too.

Invariants:
  * the command starts when the capture has begun, and not if it can't begin;
  * a signal reaches it once. The first interrupt or request to end is the command's; the second one ends us at once,
    and the command decides about itself.
"""

import signal
import time
from collections.abc import Sequence
from typing import Final

import typer

from dissector.capture.live import Recording, RecordingSettings
from dissector.capture.live.waiting_command import CommandStartError, WaitingCommand
from dissector.capture_session import Capture
from dissector.cli.errors import UsageError, print_error
from dissector.cli.passed_signals import PassedSignals
from dissector.core.text import clean

BOOTSTRAP_VARIABLES: Final = ("KDISSECT_BOOTSTRAP", "KAFKA_BOOTSTRAP_SERVERS", "SPRING_KAFKA_BOOTSTRAP_SERVERS")
"""Where a command finds the proxy's address: our own name, and those that Quarkus, Micronaut and many images read, and
Spring Boot."""
PLACEHOLDER: Final = "{kdissect.bootstrap}"
"""The same in the command's words: no shell takes it for a variable of its own, nor has a template such a name."""
LAST_SECONDS: Final = 0.3
"""How long after the command's end packets are awaited: responses that were under way, connections that close."""
_WAIT_SECONDS: Final = 0.05
_ENDS: Final = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def check_command(words: Sequence[str], duration: float | None) -> None:
    """Raise `UsageError` for options that a command makes meaningless."""
    if words and duration is not None:
        raise UsageError(
            "--duration and a command: the capture lasts as long as the command; to limit the command, use timeout"
        )


def run_beside(
    command: WaitingCommand, signals: PassedSignals, capture: Capture, recording: Recording, settings: RecordingSettings
) -> int:
    """Start the command, read what is captured until it has ended, and stop the recording; return the command's exit
    code. Raises `typer.Exit` if it can't be started, `KeyboardInterrupt` at a second signal."""
    for message in recording.messages():
        print_error(message)
    print_error(f"{settings.words}, with {recording.engine}, while {clean(command.words[0])} runs")
    addresses = [address for address, _ in recording.listening]
    bootstrap = ",".join(addresses)
    if addresses:
        command.words = [each.replace(PLACEHOLDER, bootstrap) for each in command.words]
    try:
        command.start(dict.fromkeys(BOOTSTRAP_VARIABLES, bootstrap) if addresses else {})
    except CommandStartError as error:
        print_error(str(error))
        raise typer.Exit(error.code) from None
    run = _CommandRun(command, signals, recording)
    for _ in capture.completed_rows():
        run.step()
    while not run.is_over:  # the recording ended by itself
        time.sleep(_WAIT_SECONDS)
        run.step()
    for message in recording.messages():
        print_error(message)
    if not recording.captured and not recording.failure and not capture.packets:
        print_error(settings.no_traffic_message(max(1, recording.seconds)))
    return run.code


class _CommandRun:
    """What is done beside reading, several times a second."""

    def __init__(self, command: WaitingCommand, signals: PassedSignals, recording: Recording) -> None:
        self._command, self._signals, self._recording = command, signals, recording
        self._ended_at: float | None = None
        self._asked_to_end = 0
        self.code = 0

    @property
    def is_over(self) -> bool:
        """Whether the command has ended."""
        return self._ended_at is not None

    def step(self) -> None:
        """Pass signals on; when the command has ended, stop the recording soon. Raises `KeyboardInterrupt`."""
        code = self._command.poll()
        for caught in self._signals.take():  # behind `poll`: what ended the command has come by then
            if not caught.was_typed:
                self._command.send_signal(caught.number)
            self._asked_to_end += caught.number in _ENDS
            if self._asked_to_end > 1 and self._command.poll() is None:
                print_error(f"{self._command.words[0]} continues without a capture, as process {self._command.pid}")
                raise KeyboardInterrupt
            if caught.number in _ENDS and self._recording.stopping:
                raise KeyboardInterrupt  # reading is behind, and the command has long ended
        if code is None:
            return
        if self._ended_at is None:
            self._ended_at, self.code = time.monotonic(), code
        if time.monotonic() - self._ended_at >= LAST_SECONDS:
            self._recording.stop()
