"""Errors as users see them: one plain line on stderr and an exit code."""

import errno
import os
import select
import sys
from typing import Final

from dissector.core.text import clean, os_reason

NEGATIVE: Final = 1
"""Exit code of a negative answer: nothing matched, or there is a difference."""
BAD_INPUT: Final = 2
"""Exit code of bad usage and bad input."""
_CLOSED: Final = (errno.EPIPE, errno.EIO)
"""Errors of writing to a pipe whose reader has gone (`head`), and, on Linux, to a terminal that has gone."""


class UsageError(ValueError):
    """Invalid options or arguments, or a combination of them. The message is one plain line."""


def print_error(words: str, *notes: str) -> int:
    """Print one plain line on stderr, and notes below it; return the exit code of bad input."""
    print(f"kdissect: {clean(words)}", *map(clean, notes), sep="\n", file=sys.stderr)
    return BAD_INPUT


def is_output_closed() -> bool:
    """Return whether the reader of stdout, a terminal or a pipe, has gone, without writing to it."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # no events: hang-ups and errors are always reported
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))


def is_closed_pipe(error: OSError) -> bool:
    """Return whether an error means that nobody reads the output any more."""
    return error.errno in _CLOSED or isinstance(error, BrokenPipeError)


def is_full(error: OSError) -> bool:
    """Return whether an error means that there is no room for the output."""
    return error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def output_error_code(error: OSError) -> int:
    """Return the exit code for an error of writing the output, and discard the rest; raise any other error again."""
    if is_closed_pipe(error):
        code = 0
    elif is_full(error):
        code = print_error(f"standard output: {os_reason(error)}")
    else:
        raise error
    silence_output()
    return code


def open_standard_streams() -> None:
    """Open those for output that are closed, as the null device: `print` writes messages to standard output without
    standard error, and a file that is opened must not take their place."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, os.fdopen(number, "w"))


def silence_output() -> None:
    """Discard all further output, also what Python flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
