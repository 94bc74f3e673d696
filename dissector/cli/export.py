"""`kdissect export`: chosen exchanges as a file to share, in the formats of `export.formats`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.cli.exit_codes import NEGATIVE, print_error
from dissector.cli.filter_option import no_match_message, parse_filter
from dissector.cli.render.progress import examine_with_progress, read_with_progress
from dissector.cli.show import no_kafka_message
from dissector.core.text import counted
from dissector.export.exporter import ExportRequest, NoPacketsError, check_request, export_rows
from dissector.export.formats import SUFFIXES, ExportFormat

STDOUT: Final = "-"
LARGEST: Final = 10**15
"""A row's number: more than any capture has."""


def export(
    files: Sequence[str],
    out: str,
    form: ExportFormat | None,
    chosen: str | None,
    filter: str | None,
    ports: frozenset[int],
    *,
    redact: bool,
    show_secrets: bool,
) -> int:
    """Write; the exit code: 0, or 1 where no exchange was chosen. `chosen` is as `ranges_of` takes it, None for all; of
    these, the rows that fit the filter."""
    form = form or _form_of(out)
    order = ExportRequest(form, redact, chosen, filter)
    ranges = None if chosen is None else ranges_of(chosen)
    row_filter = parse_filter(filter)
    check_request(files, order)
    if any(_same(name, out) for name in files):
        raise CaptureError(f"{out}: is read from: choose another name to write to")
    with Capture(files, ports=ports, show_secrets=show_secrets) as capture:
        asks_findings = row_filter is not None and row_filter.asks_findings
        read_with_progress(capture)
        if form.entry.needs_findings or asks_findings:
            examine_with_progress(capture)
        for problem in capture.problems:
            print_error(problem.message)
        if not len(capture):
            print_error(no_kafka_message(capture))
            return NEGATIVE
        rows: Sequence[int] = range(len(capture)) if ranges is None else _rows(ranges, len(capture))
        if not rows:
            print_error(f"no row {chosen}: there are {counted(len(capture), 'row')}")
            return NEGATIVE
        if row_filter is not None:
            chosen_rows = len(rows)
            rows = capture.matching(row_filter, np.asarray(rows, np.int64)).tolist()
            if not rows:
                print_error(no_match_message(row_filter, chosen_rows))
                return NEGATIVE
        try:
            chunks = export_rows(capture, rows, order, print_error)
        except NoPacketsError as error:
            print_error(str(error))
            return NEGATIVE
        _save(chunks, out)
    if out != STDOUT:
        print_error(f"{out}: {counted(len(rows), 'row')}")
    return 0


def _form_of(out: str) -> ExportFormat:
    """What a file's name asks for."""
    form = SUFFIXES.get(Path(out).suffix.lower())
    if form is None:
        raise CaptureError(
            f"{out}: say with --format what to write, or choose a name that ends in {' '.join(SUFFIXES)}"
        )
    return form


def ranges_of(text: str) -> list[range]:
    """``3,10-20,99-``: row numbers from 1. Raises `CaptureError` with the part that is none."""
    return [_range(part.strip()) for part in text.split(",")]


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    try:
        low, high = int(first), int(last) if last else LARGEST if dash else int(first)
    except ValueError:
        low, high = 0, 0
    if not 0 < low <= high:
        raise CaptureError(f"--rows: {part!r} is no row number, nor a range as 10-20")
    return range(low, high + 1)


def _rows(ranges: list[range], count: int) -> list[int]:
    """Rows from 0, in order, each once."""
    found = {number - 1 for part in ranges for number in range(part.start, min(part.stop, count + 1))}
    return sorted(found)


def _same(name: str, out: str) -> bool:
    try:
        return Path(name).samefile(out)
    except (OSError, ValueError):
        return False


def _save(chunks: Iterator[bytes], out: str) -> None:
    if out == STDOUT:
        sys.stdout.buffer.writelines(chunks)
        return
    try:
        with Path(out).open("wb") as file:
            file.writelines(chunks)
    except OSError as error:
        raise CaptureError(f"{out}: {(error.strerror or str(error)).lower()}") from None
