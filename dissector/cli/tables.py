"""Folders of tables in place of captures: recognized, opened with Spark, their rows printed."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dissector.capture import CaptureError
from dissector.cli.cluster import THIS_MACHINE, Cluster
from dissector.cli.errors import UsageError
from dissector.cli.exit_codes import NEGATIVE, print_error
from dissector.cli.filter_option import no_match_message
from dissector.cli.formats import Format
from dissector.cli.render.printing import RowRenderer
from dissector.cli.spark import SparkProgress, spark_session
from dissector.core.text import clean, counted
from dissector.exchange.model import Exchange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dissector.filter import Filter
    from dissector.pipeline.table_reader import Tables

NOT_KEPT: Final = "frames were not kept (use ingest --frames): these were encoded from their fields"


_IS_URL: Final = "://"


def is_folder(word: str) -> bool:
    """Whether a word names a folder of tables."""
    return _IS_URL in word or is_directory(f"{word}/captures")


def is_directory(word: str) -> bool:
    """Whether it is a directory; of what can't be looked at whoever opens it says why."""
    return os.path.isdir(word)  # noqa: PTH112  # which raises for names too long, and where nobody may look


def are_tables(files: Sequence[str], on: Cluster = THIS_MACHINE, options: Sequence[object] = ()) -> bool:
    """Whether the argument is a folder of tables: it has `captures` in it, or is a URL. Raises
    `CaptureError` for several, for another folder, for `options` that are set (these say how captures are to be read),
    and for a cluster where there are no tables."""
    folders = [each for each in files if is_folder(each)]
    if not folders:
        bare = next((each for each in files if is_directory(each)), None)
        if bare is not None:
            raise CaptureError(f"{bare}: a directory without tables")
        if on.is_chosen:
            raise UsageError(f"{files[0]}: --master, --remote, --conf and -v are for tables and ingest only")
        return False
    if len(files) > 1:
        raise UsageError(f"{folders[0]}: name one folder of tables and nothing else")
    if any(options):
        raise UsageError(f"{folders[0]}: --response, --port and --show-secrets are for captures and ingest only")
    return True


@contextmanager
def open_tables(folder: str, on: Cluster) -> "Iterator[tuple[Tables, SparkProgress]]":
    """The tables of a folder, and the progress of Spark. Raises what `spark_session` does, and
    `CaptureError` where there are no tables."""
    with spark_session(on, folder) as (spark, bar):
        from dissector.pipeline.stage_progress import stage

        with stage(spark, "reading tables", bar):
            yield tables_of(spark, folder), bar


def tables_of(spark: "SparkSession", folder: str) -> "Tables":
    """The tables of a folder. Raises `CaptureError` where there are none."""
    from dissector.pipeline.table_reader import Tables

    tables = Tables(spark, folder)
    if not tables.are_there:
        raise CaptureError(f"{folder}: no tables are there")
    return tables


def show(folder: str, on: Cluster, printing: RowRenderer, limit: int | None, fitting: "Filter | None") -> int:
    """Print the rows that fit, in their order; the exit code: 0, or 1 for none."""
    with open_tables(folder, on) as (tables, bar):
        head, printed = printing.head, 0
        out = sys.stdout.buffer
        if printing.form is Format.CSV:  # names stand above no rows, too
            out.write(head)
            head = b""
        for line in lines(tables, printing, fitting, limit):
            bar.stop()
            out.write(head + line)
            head, printed = b"", printed + 1
        out.flush()
        bar.stop()
        if not printed:
            print_error(no_rows_message(folder, tables, fitting))
            return NEGATIVE
        if printing.form is Format.TREE and not tables.has_frames:
            print_error(f"{folder}: {NOT_KEPT}")
        captures_read = summary(folder, tables, printed)
    print(captures_read, file=sys.stderr)
    return 0


def lines(
    tables: "Tables", printing: RowRenderer, fitting: "Filter | None", limit: int | None = None
) -> Iterator[bytes]:
    """What is printed for the rows that fit, in their order."""
    import pyarrow as pa

    start_ns = tables.start_ns

    def made(exchanges: Iterator[Exchange]) -> Iterator[tuple[Any, ...]]:
        for exchange in exchanges:
            yield exchange.fields.number, b"".join(printing.exchanges([exchange], start_ns))

    schema = pa.schema([("number", pa.int64()), ("line", pa.binary())])
    found = tables.made(fitting, made, schema, most=limit)
    for row in (found if limit is not None else found.orderBy("number")).toLocalIterator():
        yield bytes(row.line)


def summary(folder: str, tables: "Tables", rows: int) -> str:
    """What was asked, and where it says what is wrong with it: one line."""
    captures, wrong = tables.count()
    problems = f"; {counted(wrong, 'problem')} of them: the table of captures has the words" if wrong else ""
    return f"{clean(folder)}: {counted(rows, 'row')} of {counted(captures, 'capture')}{problems}"


def no_rows_message(folder: str, tables: "Tables", fitting: "Filter | None") -> str:
    """Why there is nothing to print."""
    count = tables.table("exchanges").count()
    return no_match_message(fitting, count) if fitting and count else f"{folder}: no rows in the tables"
