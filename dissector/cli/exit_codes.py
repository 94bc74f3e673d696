"""What every command ends with: its exit code, and the one plain line that says what went wrong."""

import errno
import os
import select
import sys
from typing import Final

from dissector.core.text import clean

NEGATIVE: Final = 1
"""The question had a negative answer: nothing matched, or there is a difference."""
BAD_INPUT: Final = 2
_GONE: Final = (errno.EPIPE, errno.EIO)
"""How writing fails where the reader of a pipe is gone, as `head` is; or, on Linux, the terminal."""


def print_error(words: str, *notes: str) -> int:
    """One plain line on stderr, and what shows where it comes from; the exit code for bad use or bad input."""
    print(f"kdissect: {clean(words)}", *map(clean, notes), sep="\n", file=sys.stderr)
    return BAD_INPUT


def is_output_closed() -> bool:
    """Whether the reader of standard output, a terminal or a pipe, is gone; found out without writing."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # nothing that it may take; its end is always reported
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))


def is_closed_pipe(error: OSError) -> bool:
    """Whether an error says that nobody reads."""
    return error.errno in _GONE or isinstance(error, BrokenPipeError)


def silence_output() -> None:
    """Nothing more can be said: not even what Python flushes when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
