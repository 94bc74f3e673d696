"""Rows on stdout while the capture still grows: each once nothing is added to it any more, in that order.

A row keeps the number that it had in the index when it was printed: its place in the order in which rows were added.

Invariants:
  * every row is printed once; at the end of the capture, those that still waited;
  * what was printed is flushed at every step, so that whoever reads a pipe sees it;
  * what waits is bounded: as `Pairing` gives up the oldest requests past `limits.pending_requests`, so are they here.
"""

from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING

import numpy as np

from dissector.capture_session import Capture
from dissector.cli.render.printing import RowRenderer
from dissector.core.arrays import Int64
from dissector.core.limits import DEFAULT

if TYPE_CHECKING:  # who has no filter does not pay for importing what parses one
    from dissector.filter import Filter


def follow(
    capture: Capture,
    printing: RowRenderer,
    out: IO[bytes],
    limit: int | None = None,
    step: Callable[[], None] = lambda: None,
    row_filter: "Filter | None" = None,
) -> int:
    """Print until the capture ends or `limit` rows are printed; how many were. `step` is called several times a second,
    after what there was is printed. Rows are asked whether they fit a filter when they are complete, and once."""
    printed = 0
    examines = printing.shows_findings or (row_filter is not None and row_filter.asks_findings)
    for complete in completed(capture):
        if examines:
            for _ in capture.examine():
                pass
        rows = complete if row_filter is None else capture.matching(row_filter, complete)
        rows = rows if limit is None else rows[: limit - printed]
        if len(rows) and not printed:
            out.write(printing.head)  # not before there is something: a pipe may turn out to be no capture
        out.writelines(printing.lines(capture, rows))
        printed += len(rows)
        if len(rows):
            out.flush()
        if printed == limit:
            return printed
        step()
    return printed


def completed(capture: Capture) -> Iterator[Int64]:
    """The rows that each step of reading has completed, from 0; none for many a step."""
    known = 0
    waiting: Int64 = np.zeros(0, np.int64)
    for _ in capture.read(sort=False):
        waiting = np.concatenate([waiting, np.arange(known, len(capture))])
        known = len(capture)
        complete = capture.is_complete(waiting)
        complete[: -DEFAULT.pending_requests] = True
        yield waiting[complete]
        waiting = waiting[~complete]
    yield waiting
