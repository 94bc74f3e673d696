"""Ends the program when its terminal is gone, as when ssh drops without a SIGHUP.

Textual would go on: it reads the end of its input again and again, and its main thread waits for output that nobody
takes. It can't be asked to quit, so the process ends as SIGHUP would end it. Nothing is lost: the user's files are
written at once, and the capturing process ends by itself when this one is gone.
"""

import os
import select
import signal
import sys
import threading
from typing import Final

GONE: Final = 128 + signal.SIGHUP
"""The exit code, as shells have it."""


def end_with_terminal() -> None:
    """Watch standard input from now on, if it is a terminal."""
    if sys.__stdin__ is not None and sys.__stdin__.isatty():
        threading.Thread(target=_watch, args=(sys.__stdin__.fileno(),), name="hangup", daemon=True).start()


def _watch(terminal: int) -> None:
    """Sleep until it hangs up."""
    poll = select.poll()
    poll.register(terminal, 0)  # no input: hang-ups are always reported
    if any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll()):
        os._exit(GONE)
