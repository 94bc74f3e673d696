"""`kdissect ingest`: captures to tables, on Spark. What is going on and what came of it on stderr."""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dissector.capture import CaptureError
from dissector.cli.cluster import Cluster
from dissector.cli.errors import UsageError
from dissector.cli.exit_codes import BAD_INPUT, NEGATIVE, print_error
from dissector.cli.spark import require_spark, spark_session
from dissector.cli.tables import is_directory
from dissector.core.text import clean

if TYPE_CHECKING:
    from dissector.pipeline.ingest import IngestResult

UNREAD: Final = ("not-a-capture", "file-changed")
"""Codes of findings about files that are not in the tables."""


def ingest(
    captures: Sequence[str], out: str, on: Cluster, *, frames: bool, hashed: bool, show_secrets: bool,
    follow: bool = False, idle: float | None = None,
) -> int:  # fmt: skip
    """Read captures, and folders of them, into the tables of a folder; the exit code."""
    require_spark()
    if follow and (len(captures) != 1 or not is_directory(captures[0])):
        raise UsageError("--follow needs one folder that captures are written to")
    if follow and on.remote is not None:
        raise UsageError("--follow runs on this machine: use --master, not --remote")
    if follow and "://" in out:
        raise UsageError("--follow writes to a folder of this machine: give --out a path")
    if idle is not None and not follow:
        raise UsageError("--idle needs --follow")
    from dissector.pipeline.folder import Folder, FolderError
    from dissector.pipeline.ingest import ingest as run
    from dissector.pipeline.ingest import remove_staging_afterwards
    from dissector.pipeline.lock import exclusive
    from dissector.pipeline.partition_rows import WriteOptions
    from dissector.pipeline.scan import BackgroundScan
    from dissector.pipeline.spark_session import is_local

    options = WriteOptions(frames=frames, records=not hashed, secrets=show_secrets)
    try:
        Folder(out)  # before anything is started for it
        with exclusive(out, print_error), remove_staging_afterwards(out):
            if follow:
                from dissector.cli.ingest_follow import follow as go_on

                with spark_session(on) as (spark, bar):
                    bar.stop()
                    return go_on(spark, captures[0], out, options, idle)
            files = _files(captures)
            ahead = BackgroundScan(files) if is_local(on.remote or on.master) else nullcontext()
            with ahead as looked_over, spark_session(on) as (spark, bar):
                outcome = run(spark, files, out, options, report=bar, ahead=looked_over)
    except FolderError as error:
        return print_error(str(error))
    return _tell(outcome, out)


def _files(captures: Sequence[str]) -> list[str]:
    """Files as they are, and those of folders. Raises `CaptureError` for a folder that can't be read."""
    found: list[str] = []
    for each in captures:
        try:
            found += sorted(file.path for file in os.scandir(each) if file.is_file()) if is_directory(each) else [each]
        except OSError as error:
            raise CaptureError(f"{each}: {(error.strerror or str(error)).lower()}") from None
    return [str(Path(each).absolute()) for each in found]


def _tell(outcome: "IngestResult", out: str) -> int:
    """What came of it, a line each."""
    for problem in outcome.problems:
        print_error(problem.message)
    for path in outcome.already_ingested:
        print(f"{clean(path)}: already in the tables", file=sys.stderr)
    counts = ", ".join(f"{name} {count:,}" for name, count in outcome.counts.items())
    if outcome.read:
        print(f"{outcome.read:,} captures, {outcome.packets:,} packets -> {clean(out)}: {counts}", file=sys.stderr)
    unread = [problem for problem in outcome.problems if problem.code in UNREAD]
    if unread:
        return BAD_INPUT
    return 0 if outcome.read or outcome.already_ingested else NEGATIVE
