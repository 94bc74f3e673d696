"""Rows on stdout while the capture still grows: each once nothing is added to it any more, in that order.

A row keeps the number that it had in the index when it was printed: its place in the order in which rows were added.

Invariants:
  * every row is printed once; at the end of the capture, those that still waited;
  * what was printed is flushed at every step, so that whoever reads a pipe sees it;
  * what waits is bounded: as `Pairing` gives up the oldest requests past `limits.pending_requests`, so are they here.
"""

from collections.abc import Callable, Iterator
from typing import IO

import numpy as np
import numpy.typing as npt

from dissector.capture_file import Capture
from dissector.cli.printing import Printing
from dissector.limits import DEFAULT

Rows = npt.NDArray[np.int64]


def follow(
    capture: Capture,
    printing: Printing,
    out: IO[bytes],
    limit: int | None = None,
    step: Callable[[], None] = lambda: None,
) -> int:
    """Print until the capture ends or `limit` rows are printed; how many were. `step` is called several times a second,
    after what there was is printed."""
    printed = 0
    render = printing.render(capture)
    for rows in completed(capture):
        if printing.shows_findings:
            for _ in capture.examine():
                pass
        if len(rows) and not printed:
            out.write(printing.head)  # not before there is something: a pipe may turn out to be no capture
        for number in rows.tolist():
            out.writelines(render(number, number + 1))
            printed += 1
            if printed == limit:
                out.flush()
                return printed
        if len(rows):
            out.flush()
        step()
    return printed


def completed(capture: Capture) -> Iterator[Rows]:
    """The rows that each step of reading has completed, from 0; none for many a step."""
    known = 0
    waiting: Rows = np.zeros(0, np.int64)
    for _ in capture.read(settled=False):
        waiting = np.concatenate([waiting, np.arange(known, len(capture))])
        known = len(capture)
        complete = capture.is_complete(waiting)
        complete[: -DEFAULT.pending_requests] = True
        yield waiting[complete]
        waiting = waiting[~complete]
    yield waiting
