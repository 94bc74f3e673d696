"""`kdissect show`: rows, trees or JSON objects on stdout, one for each exchange; problems of files on stderr.

Rows of a growing capture are printed each when it is complete, in the order of completion. A row's number is its place
in the index when it is printed: rows are numbered in the order in which they are added. Output is flushed at every
step, so that the reader of a pipe sees it.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import IO, TYPE_CHECKING

import numpy as np

from dissector.capture_session import Capture
from dissector.cli.errors import NEGATIVE, print_error
from dissector.cli.file_printing import FilePrinter
from dissector.cli.formats import Format
from dissector.cli.options import (
    NO_OPTIONS,
    PLAIN_CSV,
    CaptureOptions,
    CsvOptions,
    no_match_message,
    parse_filter,
)
from dissector.cli.render.printing import ROWS_TOGETHER, RowRenderer
from dissector.cli.render.progress import read_with_progress
from dissector.cli.tables import are_tables
from dissector.cli.tables import show as show_tables
from dissector.cli.workers import WorkerError
from dissector.core.arrays import Int64
from dissector.core.process_memory import infrequent_collection
from dissector.core.text import counted
from dissector.detection.other_protocols import OtherProtocol

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.filter import Filter


def show(
    files: Sequence[str],
    form: Format,
    limit: int | None,
    fields: str | None = None,
    filter: str | None = None,
    *,
    csv: CsvOptions = PLAIN_CSV,
    options: CaptureOptions = NO_OPTIONS,
) -> int:
    """Print rows; return the exit code: 0, or 1 if there is no Kafka or no row matches the filter."""
    printing = RowRenderer.of(form, fields, escape_formulas=csv.escape_formulas)
    row_filter = parse_filter(filter, options=options)
    if are_tables(files, options):
        with infrequent_collection():
            return show_tables(files[0], printing, limit, row_filter)
    with infrequent_collection(), options.open(files) as capture:
        try:
            if capture.pipeline.grows:
                completed = ((capture, rows) for rows in capture.completed_rows())
                printed = bool(follow(completed, printing, sys.stdout.buffer, limit, row_filter=row_filter))
            else:
                read_with_progress(capture)
                printed = FilePrinter(capture, printing, row_filter).print(limit)
        except WorkerError as error:
            return print_error(str(error))
        print_problems(capture)
        if printed:
            return 0
        rows = len(capture)
        print_error(no_match_message(row_filter, rows) if row_filter and rows else no_kafka_message(capture))
        return NEGATIVE


def follow(
    completed: Iterable[tuple[Capture, Int64]],
    printing: RowRenderer,
    out: IO[bytes],
    limit: int | None = None,
    step: Callable[[], None] = lambda: None,
    row_filter: "Filter | None" = None,
) -> int:
    """Print rows of captures, in steps as they complete, until there are no more or `limit` rows are printed; return
    their number.

    `step` is called several times a second, after printing. The filter is applied to a row once, when it is complete.
    """
    printed = 0
    examines = printing.shows_findings or (row_filter is not None and row_filter.reads_findings)
    for capture, complete in completed:
        if examines and (len(complete) or capture.is_read):
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
        del capture, complete, rows  # the next capture is opened once this one's memory is free
    return printed


def print_all(
    capture: Capture, printing: RowRenderer, out: IO[bytes], limit: int | None, row_filter: "Filter | None"
) -> None:
    """Print the rows of a capture that was followed to its end, as `show` prints those of its file."""
    if printing.shows_findings or (row_filter is not None and row_filter.reads_findings):
        for _ in capture.findings.examine():
            pass
    left = len(capture) if limit is None else limit
    has_head = False
    for start in range(0, len(capture), ROWS_TOGETHER):
        rows = np.arange(start, min(start + ROWS_TOGETHER, len(capture)))
        rows = (rows if row_filter is None else capture.matching(row_filter, rows))[:left]
        if len(rows) and not has_head:
            out.write(printing.head)
            has_head = True
        out.writelines(printing.lines(capture, rows))
        left -= len(rows)
    out.flush()


def read_rows(capture: Capture) -> bool:
    """Read a capture and print what is wrong with it; return whether it has rows."""
    read_with_progress(capture)
    for each in problems_of(capture):
        print_error(each)
    return len(capture) > 0


def problems_of(capture: Capture) -> list[str]:
    """Return what is wrong with a capture's files; at the end, of one without rows, what it has instead."""
    return [each.message for each in capture.problems] + ([] if len(capture) else [no_kafka_message(capture)])


def print_problems(capture: Capture) -> None:
    """Print what is wrong with a capture's files."""
    for problem in capture.problems:
        print_error(problem.message)


def no_kafka_message(capture: Capture) -> str:
    """Return the message for a capture without rows: what it has instead."""
    names = ", ".join(capture.names)
    protocols = ", ".join(f"{name} {count:,}" for name, count in capture.connections.protocols.items())
    connections = counted(len(capture.connections), "TCP connection") + (f": {protocols}" if protocols else "")
    is_tls = OtherProtocol.TLS.label in capture.connections.protocols
    hint = "; Kafka over TLS needs --keylog FILE (kdissect explain tls); --port PORT lists it without" if is_tls else ""
    return f"{names}: no Kafka in it ({counted(capture.packets, 'packet')}, {connections}){hint}"
