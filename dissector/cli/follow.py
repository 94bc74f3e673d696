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
from dissector.cli.formats import Format
from dissector.cli.json_lines import json_line
from dissector.cli.rows import head_line, row_line
from dissector.cli.trees import exchange_lines
from dissector.limits import DEFAULT
from dissector.session.exchange import Exchange

Rows = npt.NDArray[np.int64]


def follow(
    capture: Capture, form: Format, out: IO[bytes], limit: int | None = None, step: Callable[[], None] = lambda: None
) -> int:
    """Print until the capture ends or `limit` rows are printed; how many were. `step` is called several times a second,
    after what there was is printed."""
    printed = 0
    if form is Format.TEXT:
        out.write(head_line().encode() + b"\n")
        out.flush()
    for rows in completed(capture):
        for number in rows.tolist():
            out.write(_printed(capture.exchange(number), capture.start_ns, form))
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


def _printed(exchange: Exchange, start_ns: int, form: Format) -> bytes:
    if form is Format.JSON:
        return json_line(exchange)
    if form is Format.TEXT:
        return row_line(exchange.row, start_ns).encode() + b"\n"
    return "\n".join(exchange_lines(exchange, start_ns)).encode() + b"\n"
