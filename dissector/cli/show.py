"""`kdissect show`: rows, trees or JSON objects on stdout, one an exchange; what is wrong with a file on stderr."""

import sys
from collections.abc import Iterator, Sequence, Set
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dissector.capture_file import Capture
from dissector.cli.collecting import collecting_seldom
from dissector.cli.filtering import nothing_fits, wanted
from dissector.cli.follow import follow
from dissector.cli.formats import Format
from dissector.cli.outcome import BAD_INPUT, NEGATIVE, complain
from dissector.cli.printing import Printing
from dissector.cli.progress import read_with_progress
from dissector.cli.workers import WorkerError, print_rows
from dissector.text import counted

if TYPE_CHECKING:  # who has no filter does not pay for importing what parses one
    from dissector.analysis.filter import Filter

TOGETHER: Final = 1 << 10
"""Rows that are asked whether they fit before those that do are printed."""


def show(
    files: Sequence[str],
    form: Format,
    limit: int | None,
    asked: tuple[int, int] | None = None,
    fields: str | None = None,
    filter: str | None = None,  # noqa: A002  # what it is
    *,
    ports: Set[int] = frozenset(),
    show_secrets: bool = False,
) -> int:
    """Print; the exit code: 0, or 1 where there is no Kafka in it, or none that fits the filter."""
    printing, fitting = Printing.of(form, fields), wanted(filter)
    with collecting_seldom(), Capture(files, asked=asked, ports=ports, show_secrets=show_secrets) as capture:
        try:
            if capture.grows:
                printed = bool(follow(capture, printing, sys.stdout.buffer, limit, wanted=fitting))
            else:
                asks_findings = fitting is not None and fitting.asks_findings
                read_with_progress(capture, examine=printing.shows_findings or asks_findings)
                printed = _print(capture, printing, limit, fitting)
        except WorkerError as error:
            complain(str(error))
            return BAD_INPUT
        for problem in capture.problems:
            complain(problem.message)
        if not printed:
            complain(nothing_fits(fitting, len(capture)) if fitting and len(capture) else nothing_found(capture))
            return NEGATIVE
    return 0


def _print(capture: Capture, printing: Printing, limit: int | None, fitting: "Filter | None") -> bool:
    """Print what is read; whether there was something."""
    head = printing.head
    if printing.form is Format.CSV:  # names stand above no rows, too
        sys.stdout.buffer.write(head)
        head = b""
    rows = range(min(len(capture), limit or len(capture)))
    if fitting is None:
        printed = _print_rows(capture, printing, rows, head)
    elif limit is None:
        printed = _print_fitting(capture, printing, fitting, head)
    else:
        printed = _print_first(capture, printing, fitting, head, limit)
    sys.stdout.buffer.flush()
    return printed


def _print_rows(capture: Capture, printing: Printing, rows: range, head: bytes) -> bool:
    def render(start: int, stop: int) -> Iterator[bytes]:
        return printing.lines(capture, rows[start:stop])

    if not printing.is_cheap:
        capture.learn()
    return print_rows(render, len(rows), capture.sizes, 1 if printing.is_cheap else None, head)


def _print_fitting(capture: Capture, printing: Printing, fitting: "Filter", head: bytes) -> bool:
    """Narrow by the index; then whoever prints a row looks first whether it fits."""
    from dissector.analysis.filter.selection import candidates

    rows = candidates(fitting, capture, len(capture))

    def render(start: int, stop: int) -> Iterator[bytes]:
        for first in range(start, stop, TOGETHER):
            yield from printing.lines(capture, capture.matching(fitting, rows[first : min(first + TOGETHER, stop)]))

    def sizes(start: int, stop: int) -> npt.NDArray[np.int64]:
        some = rows[start:stop]
        found: npt.NDArray[np.int64] = capture.sizes(int(some[0]), int(some[-1]) + 1)[some - some[0]]
        return found

    if not (printing.is_cheap and fitting.is_of_index):
        capture.learn()
    return print_rows(render, len(rows), sizes, 1 if printing.is_cheap and fitting.is_of_index else None, head)


def _print_first(capture: Capture, printing: Printing, fitting: "Filter", head: bytes, limit: int) -> bool:
    """The first so many that fit: nothing behind them is looked at."""
    left = limit
    for found in capture.select(fitting):
        rows = found.rows[:left]
        if len(rows) and left == limit:
            sys.stdout.buffer.write(head)
        sys.stdout.buffer.writelines(printing.lines(capture, rows))
        left -= len(rows)
        if not left:
            break
    return left < limit


def nothing_found(capture: Capture) -> str:
    """Why a capture shows no row."""
    names = ", ".join(capture.names)
    seen = f"{counted(capture.packets, 'packet')}, {counted(capture.connections, 'TCP connection')}{spoken(capture)}"
    return f"{names}: no Kafka in it ({seen})"


def spoken(capture: Capture) -> str:
    """What the connections of a capture speak: ``: TLS 12, unknown 3``."""
    counts = [f"{name} {count:,}" for name, count in capture.protocols.items()]
    return f": {', '.join(counts)}" if counts else ""
