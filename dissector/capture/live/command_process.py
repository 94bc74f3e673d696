"""The process that runs a user's command for `waiting_command`: it waits for the order, starts the command, sends it
signals and says how it ended.

It keeps the rights that this program was started with, as it may be root's command that it has to send a signal, and
reads nothing but this, over a socket: a line of JSON with the command's words and what is added to its environment;
then bytes, each the number of a signal for the command. It answers in lines of JSON: ``["started", pid]`` or
``["failed", errno, reason]``, and ``["ended", status]``, as of `waitpid(2)`.

Invariants:
  * under sudo the command is run as the user who called sudo, with that user's groups and home, or not at all;
  * when the other side of the socket ends, so does this; a command that is not started by then never is.
"""

import errno
import json
import os
import select
import shutil
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NoReturn

from dissector.capture.live.privileges import User, become_user, sudo_caller
from dissector.core.text import os_reason

STARTED: Final = "started"
FAILED: Final = "failed"
ENDED: Final = "ended"
SHELL: Final = "/bin/sh"
NOT_STARTED: Final = 126
"""The exit code of a process that did not become the command."""
_LEFT_TO_OTHERS: Final = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip
"""Signals that this process takes no notice of: the command and the analyzing process decide."""
_DEFAULT_AGAIN: Final = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD)
"""Python ignores the first two. Shells ignore the third for what scripts run in the background; as interrupts are
passed on to the command, it is to end by them."""
_MOST_BYTES: Final = 1 << 16


def run_command_of(line: socket.socket) -> NoReturn:
    """Be that process: in a forked one, whose only thread this is."""
    try:
        handlers = {number: signal.signal(number, signal.SIG_IGN) for number in _LEFT_TO_OTHERS}
        ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        order, signals = _received_order(line)
        if order:
            words, added = json.loads(order)
            _run(line, ended, signals, words, os.environ | added, handlers)
    finally:
        os._exit(0)


def _received_order(line: socket.socket) -> tuple[bytes, bytes]:
    """Return the first line, and what came behind it; nothing if the other side has ended."""
    found = b""
    while b"\n" not in found:
        data = line.recv(_MOST_BYTES)
        if not data:
            return b"", b""
        found += data
    order, _, rest = found.partition(b"\n")
    return order, rest


def _run(
    line: socket.socket, ended: int, signals: bytes, words: list[str], environment: dict[str, str],
    handlers: Mapping[signal.Signals, object],
) -> None:  # fmt: skip
    """Start the command, and serve it until it has ended or the other side has."""
    trouble, its = os.pipe()
    pid = os.fork()
    if not pid:
        _become(its, words, environment, handlers)
    os.close(its)
    with os.fdopen(trouble, "rb") as pipe:
        said = pipe.read()  # nothing if it was executed: its end is closed then
    _say(line, *(json.loads(said) if said else (STARTED, pid)))
    if said:
        return
    while True:
        for number in signals:
            with suppress(ProcessLookupError, PermissionError):  # of a program that became another user
                os.kill(pid, number)
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            _say(line, ENDED, status)
            return
        ready, _, _ = select.select([line.fileno(), ended], [], [])
        if ended in ready:
            os.read(ended, _MOST_BYTES)
        signals = line.recv(_MOST_BYTES) if line.fileno() in ready else b""
        if line.fileno() in ready and not signals:
            return


def _say(line: socket.socket, *values: object) -> None:
    with suppress(OSError):  # the other side has ended
        line.sendall(json.dumps(values).encode() + b"\n")


def _become(
    trouble: int, words: list[str], environment: dict[str, str], handlers: Mapping[signal.Signals, object]
) -> NoReturn:
    """In a process of its own: be the command."""
    try:
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_IGN if handler is signal.SIG_IGN else signal.SIG_DFL)
        for number in _DEFAULT_AGAIN:
            signal.signal(number, signal.SIG_DFL)
        user = sudo_caller()
        if user is not None:
            become_user(user)
            environment |= _of_user(user)
        _execute(words, environment)
    except OSError as error:
        os.write(trouble, json.dumps([FAILED, error.errno, os_reason(error)]).encode())
    finally:
        os._exit(NOT_STARTED)


def _execute(words: list[str], environment: dict[str, str]) -> None:
    """Become a program. Raises `OSError`."""
    if not words[0]:  # which Python takes for a mistake of ours
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    try:
        os.execvpe(words[0], words, environment)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        file = shutil.which(words[0], path=environment.get("PATH")) or words[0]  # a script without #!, as execvp(3)
        os.execve(SHELL, [SHELL, file, *words[1:]], environment)


def _of_user(user: User) -> dict[str, str]:
    return {"HOME": user.home, "USER": user.name, "LOGNAME": user.name}
