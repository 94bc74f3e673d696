"""Folders of tables in place of captures: recognize them, open them, print their rows.

DuckDB reads those of this machine; Spark reads others, and all where a cluster is named.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from dissector.capture import CaptureError
from dissector.cli.errors import NEGATIVE, UsageError, print_error
from dissector.cli.options import NO_OPTIONS, THIS_MACHINE, CaptureOptions, Cluster, no_match_message
from dissector.cli.render.printing import RowRenderer
from dissector.cli.spark import StageProgress, spark_session
from dissector.core.text import clean, counted
from dissector.exchange.model import Exchange

if TYPE_CHECKING:
    from dissector.filter import Filter
    from dissector.tables.reader import Tables

NO_FRAMES: Final = "frames were not kept (use ingest --frames): these were encoded from their fields"
MISSING: Final = "tables need more libraries: pip install 'kafka-dissector[tables]'"


def is_folder(word: str) -> bool:
    """Return whether a word names a folder of tables: a URL, or a directory with `captures` in it."""
    return "://" in word or is_directory(f"{word}/captures")


def is_directory(word: str) -> bool:
    """Return whether a word names a directory; False if that can't be checked, as opening it shows why."""
    return os.path.isdir(word)  # noqa: PTH112  # Path.is_dir raises for long names and missing permission


def are_tables(files: Sequence[str], cluster: Cluster = THIS_MACHINE, options: CaptureOptions = NO_OPTIONS) -> bool:
    """Return whether the argument is a folder of tables.

    Raises `CaptureError` for another folder, and `UsageError` for tables beside anything else, for options about
    captures with tables, and for a cluster without tables.
    """
    folders = [each for each in files if is_folder(each)]
    if not folders:
        bare = next((each for each in files if is_directory(each)), None)
        if bare is not None:
            raise CaptureError(f"{bare}: a directory without tables")
        if cluster.is_set:
            raise UsageError(f"{files[0]}: --master, --remote, --conf and -v are for tables and ingest only")
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
def open_tables(folder: str, cluster: Cluster) -> "Iterator[tuple[Tables, StageProgress]]":
    """Open the tables of a folder, with Spark's progress. Raises `CaptureError`, also if there are no tables."""
    require_tables()
    from dissector.tables.reader import Tables
    from dissector.tables.snapshot import seen_tables

    seen = seen_tables(folder)
    if not cluster.is_set:
        import duckdb

        from dissector.tables.duckdb_engine import DuckDb

        try:
            yield Tables(DuckDb(), folder, seen), StageProgress()
        except duckdb.Error as error:
            first, *_ = str(error).splitlines()
            raise CaptureError(f"{folder}: {first}") from None
        return
    with spark_session(cluster, folder) as (spark, bar):
        from dissector.pipeline.spark_engine import Spark
        from dissector.pipeline.spark_session import stage

        with stage(spark, "reading tables", bar):
            yield Tables(Spark(spark), folder, seen), bar


def require_tables() -> None:
    """Raise `CaptureError` if what reads tables is not installed."""
    if find_spec("duckdb") is None or find_spec("deltalake") is None:
        raise CaptureError(MISSING)


def show(folder: str, cluster: Cluster, printing: RowRenderer, limit: int | None, row_filter: "Filter | None") -> int:
    """Print the matching rows in order; return the exit code: 0, or 1 if there are none."""
    with open_tables(folder, cluster) as (tables, bar):
        head, printed = printing.head, 0
        out = sys.stdout.buffer
        if printing.format.names_columns:  # column names are printed even without rows
            out.write(head)
            head = b""
        for line in lines(tables, printing, row_filter, limit):
            bar.stop()
            out.write(head + line)
            head, printed = b"", printed + 1
        out.flush()
        bar.stop()
        if not printed:
            print_error(no_rows_message(folder, tables, row_filter))
            return NEGATIVE
        if printing.format.needs_frames and not tables.has_frames:
            print_error(f"{folder}: {NO_FRAMES}")
        captures_read = summary(folder, tables, printed)
    print(captures_read, file=sys.stderr)
    return 0


def lines(
    tables: "Tables", printing: RowRenderer, row_filter: "Filter | None", limit: int | None = None
) -> Iterator[bytes]:
    """Render the matching rows in order; if Spark reads the tables, on its workers."""
    import pyarrow as pa

    start_ns = tables.start_ns

    def rendered(exchanges: Iterator[Exchange]) -> Iterator[tuple[Any, ...]]:
        for exchange in exchanges:
            yield exchange.fields.number, b"".join(printing.exchanges([exchange], start_ns))

    schema = pa.schema([("number", pa.int64()), ("line", pa.binary())])
    for _, line in tables.converted(row_filter, rendered, schema, limit, bodies=printing.reads_messages):
        yield bytes(line)


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
