"""`kdissect export`: write exchanges to a file, in the formats of `export.formats`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from dissector.capture import CaptureError
from dissector.cli.errors import NEGATIVE, print_error
from dissector.cli.options import CaptureOptions, no_match_message, parse_filter
from dissector.cli.render.progress import examine_with_progress
from dissector.cli.saved_files import STDOUT, is_same_file, save
from dissector.cli.show import read_rows
from dissector.core.process_memory import infrequent_collection
from dissector.core.text import counted
from dissector.core.written_files import ANYBODY, PRIVATE
from dissector.export.exporter import NoPacketsError, check_request, export_rows
from dissector.export.formats import SUFFIXES, ExportFormat, ExportRequest
from dissector.export.reopening import reopens_as

LARGEST: Final = 10**15
"""A row number larger than that of any capture."""


def export(
    files: Sequence[str],
    out: str,
    form: ExportFormat | None,
    numbers: str | None,
    filter: str | None,
    *,
    redact: bool,
    secrets: bool,
    decrypted: bool,
    options: CaptureOptions,
) -> int:
    """Write the rows of `numbers` (see `ranges_of`; None for all) that match the filter; return the exit code: 0, or 1
    if there are none."""
    form = form or _form_of(out)
    request = ExportRequest(form, redact, numbers, filter, has_secrets=secrets, is_decrypted=decrypted)
    ranges = None if numbers is None else ranges_of(numbers)
    row_filter = parse_filter(filter, options=options)
    with infrequent_collection(), options.open(files) as capture:
        if any(is_same_file(name, out) for name in capture.names):
            raise CaptureError(f"{out}: is an input file: choose another name for the output")
        check_request(capture.names, request)
        if not read_rows(capture):
            return NEGATIVE
        if form.entry.needs_findings or (row_filter is not None and row_filter.reads_findings):
            examine_with_progress(capture)
        rows: Sequence[int] = range(len(capture)) if ranges is None else _rows(ranges, len(capture))
        if not rows:
            print_error(f"no row {numbers}: the capture has {counted(len(capture), 'row')}")
            return NEGATIVE
        if row_filter is not None:
            numbered = len(rows)
            rows = capture.matching(row_filter, np.asarray(rows, np.int64)).tolist()
            if not rows:
                print_error(no_match_message(row_filter, numbered))
                return NEGATIVE
        try:
            chunks = export_rows(capture, rows, request, print_error)
        except NoPacketsError as error:
            print_error(str(error))
            return NEGATIVE
        save(chunks, out, mode=ANYBODY if redact else PRIVATE)
    if out != STDOUT:
        reopened = reopens_as(Path(out), len(rows)) if form.entry.is_capture else ""
        print_error(f"{out}: {counted(len(rows), 'row')}{reopened}")
    return 0


def _form_of(out: str) -> ExportFormat:
    """Return the format for the suffix of a file. Raises `CaptureError`."""
    form = SUFFIXES.get(Path(out).suffix.lower())
    if form is None:
        raise CaptureError(f"{out}: choose a format with --format, or a name that ends in {' '.join(SUFFIXES)}")
    return form


def ranges_of(text: str) -> list[range]:
    """Return the row numbers, from 1, of ``3,10-20,99-``. Raises `CaptureError` for an invalid part."""
    return [_range(part.strip()) for part in text.split(",")]


def _range(part: str) -> range:
    first, dash, last = part.partition("-")
    try:
        low, high = int(first), int(last) if last else LARGEST if dash else int(first)
    except ValueError:
        low, high = 0, 0
    if not 0 < low <= high:
        raise CaptureError(f"--rows: {part!r} is neither a row number nor a range such as 10-20")
    return range(low, high + 1)


def _rows(ranges: list[range], count: int) -> list[int]:
    """Return the rows of ranges, counted from 0, in ascending order, each once."""
    found = {number - 1 for part in ranges for number in range(part.start, min(part.stop, count + 1))}
    return sorted(found)
