"""Rows of a growing capture, each once it is complete, in the order of completion.

Invariants:
  * every row comes once, pending rows at the end of the capture;
  * pending rows are bounded by `limits.pending_requests`: past it the oldest come, as `Pairing` gives up theirs.
"""

from collections.abc import Iterator

import numpy as np

from dissector.capture_session.facade import Capture
from dissector.core.arrays import Int64
from dissector.core.limits import DEFAULT


def completed_rows(capture: Capture) -> Iterator[Int64]:
    """Yield the rows, counted from 0, that each step of reading has completed: often none."""
    known = 0
    pending: Int64 = np.zeros(0, np.int64)
    for _ in capture.read(sort=False):
        pending = np.concatenate([pending, np.arange(known, len(capture))])
        known = len(capture)
        complete = capture.index.is_complete(pending)
        complete[: -DEFAULT.pending_requests] = True
        yield pending[complete]
        pending = pending[~complete]
    yield pending
