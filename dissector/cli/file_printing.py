"""Print the rows of files that are read completely: the first ones as soon as their cross-message findings are known,
so that a user sees them at once; the rest by all cores, when all findings are known.

Invariant: the output is that of one process which examines the whole file first.
"""

import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from dissector.capture_session import Capture, Progress
from dissector.cli.render.printing import RowRenderer
from dissector.cli.render.progress import ROWS_PER_STEP, examine_with_progress
from dissector.cli.workers import CHUNK, CHUNK_OF_LINES, MIN_CHUNKS, MIN_CHUNKS_OF_JSON, print_rows, put
from dissector.core.arrays import Bool, Int64
from dissector.core.columns import is_in

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.filter import Filter
    from dissector.filter.selection import Candidates

ROWS_PER_BATCH: Final = 1 << 16
"""Rows that are filtered before those that match are printed."""
FIRST_STEP: Final = 1 << 12
"""Rows that are examined before anything is printed."""
EARLY: Final = 1 << 12
"""Rows that are printed during the examination: for the rest several processes are quicker."""


class FilePrinter:
    """Prints the rows of a capture, or those that match a filter, once."""

    def __init__(self, capture: Capture, printing: RowRenderer, row_filter: "Filter | None") -> None:
        self._capture = capture
        self._printing = printing
        self._filter = row_filter
        self._examines = printing.shows_findings or (row_filter is not None and row_filter.reads_findings)
        self._is_cheap = printing.is_cheap and (row_filter is None or row_filter.is_indexed)
        """Whether the index has all values: then several processes don't pay."""
        self._found: Candidates | None = None
        """The rows that may match, once they are known for the whole capture."""
        self._head = printing.head
        """Output above the rows that is not written yet."""
        self._printed = 0
        self._stop = len(capture)
        """Rows from this one on are not printed."""

    def print(self, limit: int | None) -> bool:
        """Print at most `limit` rows; return whether there was one. Raises `WorkerError`, `BrokenPipeError`."""
        if self._printing.format.names_columns:  # column names are printed even without rows
            sys.stdout.buffer.write(self._head)
            self._head = b""
        if not self._is_cheap:
            self._capture.connections.learn()
        if limit is not None and self._filter is not None:
            self._print_first(self._filter, limit)
        else:
            self._stop = self._last_row(min(self._stop, limit or self._stop))
            self._print_rest(self._print_early())
        sys.stdout.buffer.flush()
        return self._printed > 0

    def _last_row(self, stop: int) -> int:
        """Return the row behind the last one that may be printed: those behind it need not be examined, and of those
        before it only what the findings of rows that may match need."""
        if self._filter is None or not self._examines or self._filter.reads_findings:
            return stop
        self._found = found = self._search(self._filter, range(stop))
        self._capture.findings.limit_to(found.rows)
        return int(found.rows[-1]) + 1 if len(found.rows) else 0

    def _examined(self) -> Iterator[range]:
        """Yield ranges of rows when all that is printed of them is known.

        A finding is found when its row is examined; only its message may change later."""
        if self._examines and self._printing.format.names_findings_only:
            start = 0
            for step in self._examining():
                yield range(start, min(step.done, self._stop))
                start = step.done
                if start >= self._stop:
                    return
            return
        if self._examines:
            examine_with_progress(self._capture)
        yield range(self._stop)

    def _examining(self) -> Iterator[Progress]:
        """Examine: a short step first, so that the first rows come soon, then long ones, which are cheaper."""
        yield from islice(self._capture.findings.examine(step=FIRST_STEP), 1)
        yield from self._capture.findings.examine(step=ROWS_PER_STEP)

    def _print_early(self) -> int:
        """Print the first rows while others are examined; return the first row of the rest."""
        tested = stop = 0
        is_early = self._examines and self._printing.format.names_findings_only and self._stop > 0
        for rows in self._examined() if is_early else ():
            some, is_sure = self._candidates(rows)
            self._write(self._matching(some, is_sure))
            tested, stop = tested + len(some), rows.stop
            if tested >= EARLY:
                break
        return stop

    def _print_rest(self, start: int) -> None:
        """Narrow rows by columns, then filter and print them in all processes."""
        if self._examines and start < self._stop:
            examine_with_progress(self._capture)
        rows, is_sure = self._candidates(range(start, self._stop))

        def render(first: int, stop: int) -> Iterator[bytes | memoryview]:
            for at in range(first, stop, ROWS_PER_BATCH):
                batch = slice(at, min(at + ROWS_PER_BATCH, stop))
                yield from self._printing.lines(self._capture, self._matching(rows[batch], is_sure[batch]))

        are_lines = self._printing.reads_columns and bool(is_sure.all())
        is_json = self._printing.writes_messages and bool(is_sure.all())

        def sizes(first: int, stop: int) -> Int64:
            if are_lines:
                return np.zeros(stop - first, np.int64)
            return self._capture.index.sizes(np.asarray(rows[first:stop]))

        for _ in self._printing.lines(self._capture, range(0)):
            pass  # what is imported and made once is shared by all processes then
        sys.stdout.buffer.flush()
        workers = 1 if self._is_cheap else None
        chunk, least = CHUNK_OF_LINES if are_lines else CHUNK, MIN_CHUNKS_OF_JSON if is_json else MIN_CHUNKS
        self._printed += print_rows(render, len(rows), sizes, workers, self._head, chunk, least)

    def _print_first(self, row_filter: "Filter", limit: int) -> None:
        """Print the first `limit` rows that match, and read no further."""
        for rows in self._examined():
            for found in self._capture.select(row_filter, rows.start, rows.stop):
                self._write(found.rows[: limit - self._printed])
                if self._printed == limit:
                    return

    def _candidates(self, rows: range) -> tuple[range | Int64, Bool]:
        """Return those of these rows that may match, by columns, and which of them do."""
        if self._filter is None:
            return rows, np.ones(len(rows), np.bool_)
        if self._found is not None:
            part = slice(*np.searchsorted(self._found.rows, (rows.start, rows.stop)))
            return self._found.rows[part], self._found.is_sure[part]
        return self._search(self._filter, rows)

    def _search(self, row_filter: "Filter", rows: range) -> "Candidates":
        from dissector.filter.selection import candidates

        found = candidates(row_filter, self._capture, rows)
        if row_filter.reads_findings and not found.is_sure.all():
            unsure = found.rows[~found.is_sure]
            for _ in self._capture.findings.examine_messages(unsure):  # before the fork: workers don't share
                pass
            found = candidates(row_filter, self._capture, rows)
        return found

    def _matching(self, rows: range | Int64, is_sure: Bool) -> range | Int64:
        if isinstance(rows, range) or self._filter is None or is_sure.all():
            return rows
        matches = is_sure.copy()
        matches[~is_sure] = is_in(rows[~is_sure], self._capture.matching(self._filter, rows[~is_sure]))
        matching: Int64 = rows[matches]
        return matching

    def _write(self, rows: range | Int64) -> None:
        """Write rows at once."""
        for piece in self._printing.lines(self._capture, rows):
            put(self._head)
            put(piece)
            self._head = b""
        self._printed += len(rows)
        sys.stdout.buffer.flush()
