"""Print rows of a growing capture, each when it is complete, in the order of completion.

A row's number is its place in the index when it is printed: rows are numbered in the order in which they are added.

Invariant: output is flushed at every step, so that the reader of a pipe sees it.
"""

from collections.abc import Callable
from typing import IO, TYPE_CHECKING

from dissector.capture_session import Capture
from dissector.cli.render.printing import RowRenderer

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
    for complete in capture.completed_rows():
        if examines:
            for _ in capture.findings.examine():
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
