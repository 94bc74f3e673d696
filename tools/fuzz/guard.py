"""One case, run with bounds: what it cost, and what went wrong. Time is the CPU's, as machines are busy.

`fence` keeps a whole process from taking the machine down: past it an allocation fails, and the case with it.
"""

import os
import resource
import signal
import time
import traceback
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from dissector.core import limits
from dissector.core.expansion import RUN
from tools import instrumented_kernel
from tools.fuzz.capture_checks import CostError, seconds_a_megabyte
from tools.fuzz.case import Case
from tools.fuzz.checks import check
from tools.fuzz.children import ChildError, place

SECONDS: Final = 1.0
"""What a case may take."""
CAPPED_SECONDS: Final = 4.0
"""What one may take that fills the caps on purpose: plain sections are made three times, for tree, JSON and check."""
CAPPED: Final = frozenset(("bomb", "headers"))
SECONDS_A_CAPTURES_MEGABYTE: Final = 8.0
"""What a capture may take beyond that, in all its forms."""
PATIENCE: Final = 80.0 if instrumented_kernel.IS_USED else 8.0
"""When it is cut short: it is a failure then in any case."""
HANGS: Final = 300.0
"""Seconds, whatever it does in them, after which a case hangs."""
MEGABYTE: Final = 1 << 20
GROWTH: Final = 3 * limits.DEFAULT.decompressed_frame_size // MEGABYTE
"""Megabytes that a case may need at its peak: plain sections, leaves that hold what can't be read of them, the rest."""
TIMES_ITSELF: Final = 16
"""And what is made of its own bytes: tree, hex, the JSON line and its copies here."""
_FORGET_PEAK: Final = Path("/proc/self/clear_refs")
FENCE: Final = 4 << 30


class Failure(NamedTuple):
    """`what` is the same for two cases that failed alike."""

    what: str
    story: str


class Outcome(NamedTuple):
    seconds: float
    megabytes: int
    """More than before, at the peak."""
    failure: Failure | None


class TooSlow(BaseException):
    """A case took too long; no handler of the code under test catches it."""


def fence() -> None:
    """Bound what this process may allocate."""
    if not instrumented_kernel.IS_USED:
        resource.setrlimit(resource.RLIMIT_AS, (FENCE, FENCE))


def _peak() -> int:
    """The most memory that this process had since the peak was forgotten, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def run(case: Case) -> Outcome:
    """Check a case."""
    if os.access(_FORGET_PEAK, os.W_OK):  # Linux; elsewhere only what goes beyond all before is seen
        _FORGET_PEAK.write_text("5")
    before = _peak()
    RUN.begin()  # else the cases before it have used up what a run may expand
    start = time.thread_time()
    failure = None
    for each in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(each, _interrupt)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    try:
        check(case)
    except BaseException as error:  # a panic of a Rust library is none of Exception's
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        failure = _failure(error, case)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    seconds, megabytes = time.thread_time() - start, _peak() - before
    if instrumented_kernel.IS_USED:  # what a case costs is known from other runs
        return Outcome(seconds, megabytes, failure)
    most = CAPPED_SECONDS if case.kind in CAPPED else SECONDS
    if case.side in ("capture", "captures"):
        most += SECONDS_A_CAPTURES_MEGABYTE * len(case.data) / MEGABYTE
    if failure is None and seconds > most:
        failure = Failure(f"slower than allowed, {case.kind}", f"{seconds:.2f} s, {most:.2f} s are allowed")
    if failure is None and megabytes > GROWTH + TIMES_ITSELF * len(case.data) // MEGABYTE:
        failure = Failure(f"more than {GROWTH} MB, {case.kind}", f"{megabytes} MB")
    return Outcome(seconds, megabytes, failure)


def _failure(error: BaseException, case: Case) -> Failure:
    story = error.story if isinstance(error, ChildError) else "".join(traceback.format_exception(error)[-6:])
    if isinstance(error, TooSlow):
        return Failure(f"slower than {PATIENCE} s", story)
    if isinstance(error, CostError):
        return Failure(f"slower than {seconds_a_megabyte(case)} s a MB, {case.kind}", story)
    return Failure(place(error), story)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGALRM:
        raise TooSlow(f"it hangs: {HANGS} s")
    raise TooSlow
