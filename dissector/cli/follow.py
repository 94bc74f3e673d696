"""Print rows of a growing capture, each when it is complete, in the order of completion.

A row's number is its place in the index when it is printed: rows are numbered in the order in which they are added.

Invariants:
  * every row is printed once, pending rows at the end of the capture;
  * output is flushed at every step, so that the reader of a pipe sees it;
  * pending rows are bounded by `limits.pending_requests`: past it the oldest are printed, as `Pairing` gives up theirs.
"""

from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING

import numpy as np

from dissector.capture_session import Capture
from dissector.cli.render.printing import RowRenderer
from dissector.core.arrays import Int64
from dissector.core.limits import DEFAULT

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.filter import Filter


def follow(
    capture: Capture,
    printing: RowRenderer,
    out: IO[bytes],
    limit: int | None = None,
    step: Callable[[], None] = lambda: None,
    row_filter: "Filter | None" = None,
) -> int:
    """Print rows until the capture ends or `limit` rows are printed; return their number.

    `step` is called several times a second, after printing. The filter is applied to a row once, when it is complete.
    """
    printed = 0
    examines = printing.shows_findings or (row_filter is not None and row_filter.reads_findings)
    for complete in completed(capture):
        if examines:
            for _ in capture.examine():
                pass
        rows = complete if row_filter is None else capture.matching(row_filter, complete)
        rows = rows if limit is None else rows[: limit - printed]
        if len(rows) and not printed:
            out.write(printing.head)  # only with the first row: a pipe may turn out to be no capture
        out.writelines(printing.lines(capture, rows))
        printed += len(rows)
        if len(rows):
            out.flush()
        if printed == limit:
            return printed
        step()
    return printed


def completed(capture: Capture) -> Iterator[Int64]:
    """Yield the rows, counted from 0, that each step of reading has completed: often none."""
    known = 0
    pending: Int64 = np.zeros(0, np.int64)
    for _ in capture.read(sort=False):
        pending = np.concatenate([pending, np.arange(known, len(capture))])
        known = len(capture)
        complete = capture.is_complete(pending)
        complete[: -DEFAULT.pending_requests] = True
        yield pending[complete]
        pending = pending[~complete]
    yield pending
