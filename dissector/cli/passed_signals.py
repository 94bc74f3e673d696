"""Signals that come while a command runs beside a capture: which of them it still has to be sent.

What is typed at a terminal (Ctrl+C, Ctrl+\\) the terminal sends to all processes of its foreground group: the command
has it already, and a program that gets two interrupts ends at once, without clearing up. What `kill` sends, only the
process that it names gets. The kernel says of each signal which it was; where Python can't ask it (macOS), it was
typed if this process is in the terminal's foreground.

Invariant: a signal that was ignored before stays ignored, as `nohup` wants it.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, NamedTuple, Self

_TAKEN: Final = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip
_TYPED: Final = frozenset((signal.SIGINT, signal.SIGQUIT))
_SI_KERNEL: Final = 0x80
"""The code of a signal that the kernel sent by itself: `sigaction(2)`."""
_TERMINAL: Final = "/dev/tty"


class CaughtSignal(NamedTuple):
    """A signal that came."""

    number: int
    was_typed: bool
    """Whether all processes at the terminal have it."""


class PassedSignals:
    """Catches signals of this process until it is ended, and tells which came. Threads that are started meanwhile leave
    them to it. `asks_kernel` is for tests."""

    def __init__(self, *, asks_kernel: bool = sys.platform == "linux") -> None:
        self._numbers = [each for each in _TAKEN if signal.getsignal(each) is not signal.SIG_IGN]
        self._asks_kernel = asks_kernel
        self._came: list[CaughtSignal] = []
        self._undo: Callable[[], object] | None = None

    def __enter__(self) -> Self:
        if self._asks_kernel:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, self._numbers)
            self._undo = lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)
        else:
            handlers = {number: signal.signal(number, self._handle) for number in self._numbers}
            self._undo = lambda: [signal.signal(number, handler) for number, handler in handlers.items()]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()

    def take(self) -> Iterator[CaughtSignal]:
        """Yield what came since the last call."""
        if sys.platform == "linux" and self._asks_kernel:
            while (info := signal.sigtimedwait(self._numbers, 0)) is not None:
                yield CaughtSignal(info.si_signo, info.si_signo in _TYPED and info.si_code == _SI_KERNEL)
        while self._came:
            yield self._came.pop(0)

    def end(self) -> None:
        """Leave signals alone again. What came and was not taken is forgotten. May be called twice."""
        if self._undo is not None:
            for _ in self.take():
                pass
            self._undo()
            self._undo = None

    def _handle(self, number: int, _frame: object) -> None:
        self._came.append(CaughtSignal(number, number in _TYPED and _is_in_foreground()))


def _is_in_foreground() -> bool:
    """Return whether what is typed at the terminal reaches this process."""
    try:
        terminal = os.open(_TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:  # there is none
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
