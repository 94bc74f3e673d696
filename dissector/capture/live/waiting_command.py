"""A user's command, to be run beside a capture: `kdissect live -- COMMAND`.

What runs it (`command_process`) is forked at the very beginning, before this process gives up its rights and has
threads, and waits until the capture has begun. So the command has what `env` or `time` would give it: the standard
streams, the process group of the terminal, no descriptor of ours, and rights that were never given up for it.
"""

import errno
import json
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from dissector.capture.live.command_process import ENDED, FAILED, STARTED, run_command_of

NOT_FOUND: Final = 127
"""Exit codes of shells, `env` and `time` for a command that does not exist, and for one that can't be executed."""
NOT_EXECUTABLE: Final = 126
BY_SIGNAL: Final = 128
"""Added to the number of the signal that ended a command."""
_MOST_BYTES: Final = 1 << 16


class CommandStartError(Exception):
    """A command can't be started. The message is one plain line."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.code = code
        """The exit code that says so."""


class WaitingCommand:
    """A command that runs once it is started. No other thread may run when this is made. What is not started when its
    ``with`` statement ends never will be; what runs then runs on."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = [*words]
        self.pid = 0
        """The id of its process, once it runs."""
        self._code: int | None = None
        self._begun = b""
        """Of a line that is not complete."""
        self._line, its = socket.socketpair()
        self._process = os.fork()
        if not self._process:
            self._line.close()
            run_command_of(its)
        its.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)  # processes that were forked since may have our end, too
        self._line.close()
        with suppress(ChildProcessError):
            os.waitpid(self._process, 0)

    def start(self, environment: Mapping[str, str]) -> None:
        """Start the command, with this added to its environment. Raises `CommandStartError`."""
        with suppress(OSError):  # what runs it was killed: `poll` says so
            self._line.sendall(json.dumps([self.words, dict(environment)]).encode() + b"\n")
        while not self.pid and self._code is None:
            self._receive(0)

    def poll(self) -> int | None:
        """Return its exit code once it has ended: 128 and the number of a signal that ended it."""
        if self._code is None:
            with suppress(BlockingIOError):
                self._receive(socket.MSG_DONTWAIT)
        return self._code

    def send_signal(self, number: int) -> None:
        """Send it, unless it has ended."""
        with suppress(OSError):
            self._line.sendall(bytes([number]))

    def _receive(self, flags: int) -> None:
        """Take what the other process says. Raises `CommandStartError`, `BlockingIOError`."""
        try:
            data = self._line.recv(_MOST_BYTES, flags)
        except ConnectionResetError:  # it ended with a signal unread
            data = b""
        if not data and self._code is None:
            self._code = BY_SIGNAL + signal.SIGKILL
        *lines, self._begun = (self._begun + data).split(b"\n")
        for line in lines:
            self._handle(*json.loads(line))

    def _handle(self, event: str, *values: Any) -> None:
        if event == STARTED:
            self.pid = int(values[0])
        elif event == ENDED:
            code = os.waitstatus_to_exitcode(values[0])
            self._code = code if code >= 0 else BY_SIGNAL - code
        elif event == FAILED:
            number, reason = values
            self._code = NOT_FOUND if number in (errno.ENOENT, errno.ENOTDIR) else NOT_EXECUTABLE
            raise CommandStartError(self._not_started(reason), self._code)

    def _not_started(self, reason: str) -> str:
        """Return why it was not started; a command line that a shell would understand says how to give it one."""
        name = self.words[0]
        hint = "; for a command line: sh -c '…'" if self._code == NOT_FOUND and " " in name else ""
        return f"{name or repr(name)}: {reason}{hint}"
