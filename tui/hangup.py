"""The end of a program whose terminal is gone: as when ssh drops, and no SIGHUP says so.

Textual would go on: it reads the end of its input again and again, and its main thread waits for output that nobody
takes. So it can't be asked to leave in order, and the process ends as SIGHUP would end it. Nothing is lost: what the
user keeps is written at once, and the process that captures ends in order by itself when this one is gone.
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
    """Watch standard input, if it is a terminal, from now on."""
    if sys.__stdin__ is not None and sys.__stdin__.isatty():
        threading.Thread(target=_watch, args=(sys.__stdin__.fileno(),), name="hangup", daemon=True).start()


def _watch(terminal: int) -> None:
    """Sleep until it hangs up."""
    poll = select.poll()
    poll.register(terminal, 0)  # nothing that it may bring; a hang-up is always told
    if any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll()):
        os._exit(GONE)
