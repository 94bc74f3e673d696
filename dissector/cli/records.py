"""`kdissect records`: the records that exchanges and log segments carry, printed or written to a file."""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissector.analysis.record_list import CarriedRecord, RecordList
from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.cli.errors import NEGATIVE, UsageError, print_error
from dissector.cli.options import NO_OPTIONS, PLAIN_CSV, CaptureOptions, CsvOptions, parse_filter
from dissector.cli.render.progress import examine_with_progress
from dissector.cli.saved_files import STDOUT, is_same_file, save
from dissector.cli.show import print_problems, read_rows
from dissector.core.process_memory import infrequent_collection
from dissector.core.text import counted
from dissector.export.record_formats import SUFFIXES, RecordFormat, RecordWriting, UnknownColumnError, named_columns
from dissector.export.table_cells import as_csv, as_csv_without_formulas

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.filter import Filter

TERMINAL: Final = "a terminal takes text: write a file (-w OUT) or into a pipe"


def records(
    files: Sequence[str],
    form: str | None = None,
    fields: str | None = None,
    filter: str | None = None,
    limit: int | None = None,
    out: str | None = None,
    *,
    csv: CsvOptions = PLAIN_CSV,
    options: CaptureOptions = NO_OPTIONS,
) -> int:
    """Print records; return the exit code: 0, or 1 if there is none."""
    wanted, writing = _format(form, out), _writing(fields, csv)
    if writing.names and not wanted.entry.takes_names:
        raise UsageError("--fields needs --format text, json or csv")
    if csv.escape_formulas and wanted is not RecordFormat.CSV:
        raise UsageError("--escape-formulas needs --format csv")
    if out in (None, STDOUT) and not wanted.entry.is_text and sys.stdout.isatty():
        raise UsageError(f"-f {wanted.value}: {TERMINAL}")
    record_filter = parse_filter(filter, options=options)
    if out is not None and any(is_same_file(name, out) for name in files):
        raise CaptureError(f"{out}: is an input file: choose another name for the output")
    with infrequent_collection(), options.open(files) as capture:
        if not capture.pipeline.grows and not read_rows(capture):
            return NEGATIVE
        if record_filter is not None and record_filter.reads_findings and not capture.pipeline.grows:
            examine_with_progress(capture)
        counter = _Counter(_growing(capture, record_filter) if capture.pipeline.grows else _all(capture, record_filter))
        pieces = wanted.entry.write(capture, islice(counter, limit), writing)
        if out in (None, STDOUT):
            _print(pieces)
        else:
            save(pieces, str(out))
            print_error(f"{out}: {counted(counter.count, 'record')}")
        if capture.pipeline.grows:
            print_problems(capture)
        if counter.count:
            return 0
        words = "no record matches" if record_filter is not None else "no records"
        print_error(f"{', '.join(capture.names)}: {words} in {counted(len(capture), 'row')}")
        return NEGATIVE


def _print(pieces: Iterator[bytes]) -> None:
    for piece in pieces:
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _all(capture: Capture, record_filter: "Filter | None") -> Iterator[CarriedRecord]:
    return RecordList(capture, record_filter).records()


def _growing(capture: Capture, record_filter: "Filter | None") -> Iterator[CarriedRecord]:
    """Yield the records of rows as they are complete."""
    listed: RecordList | None = None
    for rows in capture.completed_rows():
        if len(rows):
            listed = listed or RecordList(capture, record_filter)
            yield from listed.of_rows(rows)


class _Counter:
    """Counts what passes."""

    def __init__(self, records: Iterator[CarriedRecord]) -> None:
        self._records = records
        self.count = 0

    def __iter__(self) -> Iterator[CarriedRecord]:
        for each in self._records:
            self.count += 1
            yield each


def _format(form: str | None, out: str | None) -> RecordFormat:
    if form is not None:
        return RecordFormat(form)
    if out in (None, STDOUT):
        return RecordFormat.TEXT
    found = SUFFIXES.get(Path(str(out)).suffix.lower())
    if found is None:
        raise CaptureError(f"{out}: choose a format with --format, or a name that ends in {' '.join(SUFFIXES)}")
    return found


def _writing(fields: str | None, csv: CsvOptions) -> RecordWriting:
    names = tuple(name.strip() for name in fields.split(",")) if fields is not None else ()
    try:
        named_columns(names)
    except UnknownColumnError as error:
        raise UsageError(str(error)) from None
    return RecordWriting(names, as_csv_without_formulas if csv.escape_formulas else as_csv)
