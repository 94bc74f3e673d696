"""Folders of tables where captures may stand: how they are told, Spark started for them, their rows printed."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dissector.capture import CaptureError
from dissector.cli.filtering import nothing_fits
from dissector.cli.formats import Format
from dissector.cli.outcome import NEGATIVE, complain
from dissector.cli.printing import Printing
from dissector.session.exchange import Exchange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dissector.analysis.filter import Filter
    from dissector.pipeline.reading import Tables

NOT_KEPT: Final = "frames were not kept (ingest --frames keeps them): these were written anew from what they hold"


def are_tables(files: Sequence[str], *options: object) -> bool:
    """Whether it is a folder of tables that is asked for: told by its `captures`. Raises `CaptureError` for several,
    and for `options` that are set: these say how captures are to be read."""
    folders = [each for each in files if (Path(each) / "captures").is_dir()]
    if not folders:
        return False
    if len(files) > 1:
        raise CaptureError(f"{folders[0]}: tables stand alone: the captures of one folder are asked together")
    if any(options):
        raise CaptureError(f"{folders[0]}: --response, --port and --show-secrets are for captures, and for ingest")
    return True


@contextmanager
def spark() -> "Iterator[SparkSession]":
    """A session of Spark's. Raises `CaptureError` where there is none, and for what fails in it."""
    if find_spec("pyspark") is None:
        raise CaptureError("tables need Spark's Python side: pip install 'kafka-dissector[spark]'")
    from dissector.pipeline.spark import JobError, NoSparkError, session

    try:
        with session(None, None, {}, verbose=False) as made:
            yield made
    except (NoSparkError, JobError) as error:
        raise CaptureError(str(error)) from None


@contextmanager
def opened(folder: str) -> "Iterator[Tables]":
    """The tables of a folder. Raises what `spark` does."""
    with spark() as made:
        from dissector.pipeline.reading import Tables

        yield Tables(made, folder)


def show(folder: str, printing: Printing, limit: int | None, fitting: "Filter | None") -> int:
    """Print the rows that fit, in their order; the exit code: 0, or 1 for none."""
    import pyarrow as pa

    with opened(folder) as tables:
        start_ns = tables.start_ns

        def lines(exchanges: Iterator[Exchange]) -> Iterator[tuple[Any, ...]]:
            for exchange in exchanges:
                yield exchange.facts.number, b"".join(printing.exchanges([exchange], start_ns))

        schema = pa.schema([("number", pa.int64()), ("line", pa.binary())])
        made = tables.made(fitting, lines, schema, most=limit)
        if limit is None:
            made = made.orderBy("number")
        head, printed = printing.head, 0
        out = sys.stdout.buffer
        if printing.form is Format.CSV:  # names stand above no rows, too
            out.write(head)
            head = b""
        for row in made.toLocalIterator():
            out.write(head + row.line)
            head, printed = b"", printed + 1
        out.flush()
        if not printed:
            complain(told_empty(folder, tables, fitting))
            return NEGATIVE
        if printing.form is Format.TREE and not tables.has_frames:
            complain(f"{folder}: {NOT_KEPT}")
    return 0


def told_empty(folder: str, tables: "Tables", fitting: "Filter | None") -> str:
    """Why there is nothing to print."""
    count = tables.table("exchanges").count()
    return nothing_fits(fitting, count) if fitting and count else f"{folder}: no rows in the tables"
