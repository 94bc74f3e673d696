"""Work in a process of its own: what it changes, and what ends it, is not ours."""

import os
import resource
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

SECONDS: Final = 8
"""Of CPU that the work may take."""
HANGS: Final = 120
"""Seconds after which it hangs."""
LONGEST: Final = 4_000
"""Bytes of the story that are kept."""


class ChildError(AssertionError):
    """What went wrong in a child: `what` is the same for two that failed alike."""

    def __init__(self, what: str, story: str) -> None:
        super().__init__(what)
        self.what = what
        self.story = story


def in_child(work: Callable[[], None]) -> None:
    """Do the work; raise `ChildError` if it raised something, or if a signal ended it."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        code = 0
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(HANGS)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            work()
        except BaseException as error:  # whatever it is, it is what we look for
            code = 1
            os.write(into, f"{place(error)}\n{traceback.format_exc()[-LONGEST:]}".encode("utf-8", "replace"))
        os._exit(code)
    os.close(into)
    with os.fdopen(out, "rb") as file:
        what, _, story = file.read().decode("utf-8", "replace").partition("\n")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise ChildError(what or f"a child ended with {code}", story)


def place(error: BaseException) -> str:
    """What was raised, and where."""
    if isinstance(error, ChildError):
        return error.what
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = (
        "anywhere" if isinstance(error, RecursionError | MemoryError) else f"{Path(last.filename).name}:{last.lineno}"
    )
    return f"{type(error).__name__} at {where}"
