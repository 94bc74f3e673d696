"""Folders of tables in place of captures: recognize them, open them, print their rows."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from dissector.capture import CaptureError
from dissector.capture.errors import url_advice
from dissector.capture.folders import has_tables
from dissector.cli.errors import NEGATIVE, UsageError, print_error
from dissector.cli.options import NO_OPTIONS, CaptureOptions, no_match_message
from dissector.cli.render.printing import RowRenderer
from dissector.core.text import clean, counted

if TYPE_CHECKING:
    from dissector.filter import Filter
    from dissector.tables.reader import Tables

NO_FRAMES: Final = "frames were not kept (use ingest --frames): these were encoded from their fields"


def is_folder(word: str) -> bool:
    """Return whether a word names a folder of tables: an object store's URL, or a directory with `captures` in it."""
    return ("://" in word and not url_advice(word)) or has_tables(word)


def are_tables(files: Sequence[str], options: CaptureOptions = NO_OPTIONS) -> bool:
    """Return whether the argument is a folder of tables.

    Raises `UsageError` for tables beside anything else, and for options about captures with tables.
    """
    folders = [each for each in files if is_folder(each)]
    if not folders:
        return False
    if len(files) > 1:
        raise UsageError(f"{folders[0]}: name one folder of tables and nothing else")
    if options.is_set:
        raise UsageError(
            f"{folders[0]}: --response, --port, --decode-as, --keylog and --show-secrets"
            " are for captures and ingest only"
        )
    return True


@contextmanager
def open_tables(folder: str, condition: str | None = None) -> "Iterator[Tables]":
    """Open the tables of a folder, with all rows or those for which a condition in SQL is true. Raises `CaptureError`,
    also if there are no tables."""
    require_tables()
    import duckdb

    from dissector.tables.database import Database
    from dissector.tables.reader import READ, Tables
    from dissector.tables.snapshot import seen_tables

    seen = seen_tables(folder, READ)
    try:
        with closing(Database()) as database:
            yield Tables(database, seen, condition=condition)
    except duckdb.Error as error:
        first, *_ = str(error).splitlines()
        raise CaptureError(f"{folder}: {first}") from None


def require_tables() -> None:
    """Raise `CaptureError` if what reads tables is not installed."""
    from dissector.core.extras import is_installed, missing  # with what reads the files of installers

    if not (is_installed("duckdb") and is_installed("deltalake")):
        raise CaptureError(missing("tables need more libraries", "tables"))


def show(folder: str, printing: RowRenderer, limit: int | None, row_filter: "Filter | None") -> int:
    """Print the matching rows in order; return the exit code: 0, or 1 if there are none."""
    with open_tables(folder) as tables:
        head, printed = printing.head, 0
        out = sys.stdout.buffer
        if printing.format.names_columns:  # column names are printed even without rows
            out.write(head)
            head = b""
        for rows, lines in rendered(tables, printing, row_filter, limit):
            out.write(head)
            out.writelines(lines)
            head, printed = b"", printed + rows
        out.flush()
        if not printed:
            print_error(no_rows_message(folder, tables, row_filter))
            return NEGATIVE
        if printing.format.needs_frames and not tables.has_frames:
            print_error(f"{folder}: {NO_FRAMES}")
        captures_read = summary(folder, tables, printed)
    print(captures_read, file=sys.stderr)
    return 0


def rendered(
    tables: "Tables", printing: RowRenderer, row_filter: "Filter | None", limit: int | None = None
) -> "Iterator[tuple[int, Iterable[bytes | memoryview]]]":
    """Render the matching rows in order: yield how many, and their lines in pieces."""
    if printing.writes_messages:
        from dissector.tables.json_lines import json_lines

        yield from json_lines(tables, row_filter, limit)
        return
    start_ns = tables.start_ns
    for exchange in tables.exchanges(row_filter, limit, bodies=printing.reads_messages):
        yield 1, printing.exchanges([exchange], start_ns)


def summary(folder: str, tables: "Tables", rows: int) -> str:
    """Return one line on what was read, and where the problems of captures are described."""
    captures, wrong = tables.count()
    name = clean(folder)
    problems = f"; {counted(wrong, 'problem')}: kdissect tables list {name} -f json shows them" if wrong else ""
    return f"{name}: {counted(rows, 'row')} of {counted(captures, 'capture')}{problems}"


def no_rows_message(folder: str, tables: "Tables", row_filter: "Filter | None") -> str:
    """Return the message for tables of which no row is printed."""
    count = tables.counted()
    return no_match_message(row_filter, count) if row_filter and count else f"{folder}: no rows in the tables"
