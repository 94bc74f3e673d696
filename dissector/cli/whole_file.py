"""Rows of a file that is read, on stdout: the first ones as soon as the findings of several rows are known of them, so
that somebody who looks sees them at once; the others, once all are known, by all cores.

Invariant: the output is that of one process which examines the whole file first.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from dissector.capture_session import Capture
from dissector.cli.formats import Format
from dissector.cli.render.printing import RowRenderer
from dissector.cli.render.progress import examine_with_progress
from dissector.cli.workers import print_rows
from dissector.core.arrays import Int64

if TYPE_CHECKING:  # who has no filter does not pay for importing what parses one
    from dissector.filter import Filter

TOGETHER: Final = 1 << 10
"""Rows that are asked whether they fit before those that do are printed."""
EARLY: Final = 1 << 12
"""Rows that are looked at in step with the examination: more are left to several processes, which are quicker."""


class WholeFile:
    """One file, printed once; of its rows those that fit a filter, if there is one."""

    def __init__(self, capture: Capture, printing: RowRenderer, fitting: "Filter | None") -> None:
        self._capture = capture
        self._printing = printing
        self._fitting = fitting
        self._examines = printing.shows_findings or (fitting is not None and fitting.asks_findings)
        self._is_cheap = printing.is_cheap and (fitting is None or fitting.is_of_index)
        """Whether the index has all of it: then several processes are not worth their while."""
        self._head = printing.head
        """What is still to come above the rows."""
        self._printed = 0
        self._stop = len(capture)
        """Rows from this one on are not printed, whatever they are."""

    def print(self, limit: int | None) -> bool:
        """Print, at most so many rows; whether there was one. Raises `WorkerError`, `BrokenPipeError`."""
        if self._printing.form is Format.CSV:  # names stand above no rows, too
            sys.stdout.buffer.write(self._head)
            self._head = b""
        if not self._is_cheap:
            self._capture.index.learn_conversations()
        if limit is not None and self._fitting is not None:
            self._print_first(self._fitting, limit)
        else:
            self._stop = min(self._stop, limit or self._stop)
            self._print_rest(self._print_early())
        sys.stdout.buffer.flush()
        return self._printed > 0

    def _examined(self) -> Iterator[range]:
        """The rows, stretch by stretch, each when all that is shown of it is known: findings are found at the row that
        is examined, and only their messages may change later."""
        if self._examines and self._printing.names_findings_only:
            start = 0
            for step in self._capture.examine():
                yield range(start, min(step.done, self._stop))
                start = step.done
                if start >= self._stop:
                    return
            return
        if self._examines:
            examine_with_progress(self._capture)
        yield range(self._stop)

    def _print_early(self) -> int:
        """Print the first rows while others are examined; where the rest begins."""
        looked = stop = 0
        for rows in self._examined() if self._printing.names_findings_only and self._examines else ():
            some = self._candidates(rows)
            self._write(self._fit(some))
            looked, stop = looked + len(some), rows.stop
            if looked >= EARLY:
                break
        return stop

    def _print_rest(self, start: int) -> None:
        """Narrow by the index; then whoever prints a row looks first whether it fits."""
        if self._examines and start < self._stop:
            examine_with_progress(self._capture)
        rows = self._candidates(range(start, self._stop))

        def render(first: int, stop: int) -> Iterator[bytes]:
            for at in range(first, stop, TOGETHER):
                yield from self._printing.lines(self._capture, self._fit(rows[at : min(at + TOGETHER, stop)]))

        def sizes(first: int, stop: int) -> Int64:
            some = np.asarray(rows[first:stop])
            found: Int64 = self._capture.index.sizes(int(some[0]), int(some[-1]) + 1)[some - some[0]]
            return found

        sys.stdout.buffer.flush()
        self._printed += print_rows(render, len(rows), sizes, 1 if self._is_cheap else None, self._head)

    def _print_first(self, fitting: "Filter", limit: int) -> None:
        """The first so many that fit: nothing behind them is looked at."""
        for rows in self._examined():
            for found in self._capture.select(fitting, rows.start, rows.stop):
                self._write(found.rows[: limit - self._printed])
                if self._printed == limit:
                    return

    def _candidates(self, rows: range) -> range | Int64:
        """Those of these rows that may fit, by the index alone."""
        if self._fitting is None:
            return rows
        from dissector.filter.selection import candidates

        found = candidates(self._fitting, self._capture, rows)
        if not self._fitting.reads_row_summaries:
            return found
        for _ in self._capture.examine_messages(
            found
        ):  # here, where many at once are quick: what one process knows no other does
            pass
        return candidates(self._fitting, self._capture, rows)

    def _fit(self, rows: range | Int64) -> range | Int64:
        return rows if isinstance(rows, range) or self._fitting is None else self._capture.matching(self._fitting, rows)

    def _write(self, rows: range | Int64) -> None:
        """Write rows, for who waits for them."""
        for piece in self._printing.lines(self._capture, rows):
            sys.stdout.buffer.write(self._head + piece)
            self._head = b""
        self._printed += len(rows)
        sys.stdout.buffer.flush()
