"""The ingest job: captures to tables.

Invariants:
  * a capture is in the tables when `captures` has its row, which is written last: nothing of a run that was killed is
    visible, and the next run removes its files;
  * a capture that is in the tables is not read again, whatever the name of its file;
  * if a file has changed since it was scanned, the run starts again without it.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from dissector.core.finding import Finding
from dissector.core.text import counted
from dissector.pipeline import commit, source
from dissector.pipeline.commit import FOLLOWER
from dissector.pipeline.folder import Folder, FolderError
from dissector.pipeline.ingest_run import STAGING, FilesChangedError, IngestRun
from dissector.pipeline.origins import SHORT
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.scan import BackgroundScan, scan_files
from dissector.pipeline.stage_progress import Report, stage
from dissector.pipeline.table_schemas import (
    BY_NAME,
    PARTITION_TABLES,
    ddl,
)


@dataclass
class IngestResult:
    """Result of a run."""

    read: int = 0
    """Number of captures that were ingested."""
    already_ingested: list[str] = field(default_factory=list)
    """Paths of captures that were in the tables before."""
    packets: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Rows by table."""
    problems: list[Finding] = field(default_factory=list)


def ingest(
    spark: SparkSession, paths: Sequence[str], out: str, options: WriteOptions, *, parts: int | None = None,
    report: Report = lambda stage, done, total: None, ahead: BackgroundScan | None = None,
) -> IngestResult:  # fmt: skip
    """Ingest captures into the tables of a folder; `ahead` has scanned some of them. Raises `FolderError` if the folder
    can't be written to."""
    spark.dataSource.register(source.PacketSource)
    folder = Folder(out)
    digests = ingested_digests(spark, folder)
    _remove_leftovers(folder, digests)
    with stage(spark, f"scanning {counted(len(paths), 'file')}", report):
        scans = scan_files(spark, paths, ahead)
    result, new = IngestResult(), []
    for scan in scans:
        if scan.digest in digests:
            result.already_ingested.append(scan.path)
            continue
        result.problems += scan.problems
        if scan.digest:
            digests.add(scan.digest)
            new.append(scan)
    while new:
        run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        run = IngestRun(spark, folder, run_id, new, options, report)
        try:
            result.counts = run.execute(parts)
        except FilesChangedError as changed:
            result.problems += changed.findings
            changed_paths = {finding.path for finding in changed.findings}
            new = [scan for scan in new if scan.path not in changed_paths]
            folder.remove(STAGING)
            continue
        folder.remove(STAGING)
        result.problems += run.problems
        read = [scan for scan in new if not scan.unread_reason]
        result.read, result.packets = len(read), sum(scan.packets for scan in read)
        break
    return result


@contextmanager
def remove_staging_afterwards(out: str) -> Iterator[None]:
    """Remove the staging folder of an interrupted run. Exit this context after Spark has ended: canceled tasks still
    write for a short time."""
    try:
        yield
    finally:
        with suppress(FolderError):
            Folder(out).remove(STAGING)


def ingested_digests(spark: SparkSession, folder: Folder) -> set[str]:
    """Return the digests of the captures that are in the tables."""
    if not folder.has("captures"):
        return set()
    captures = spark.read.schema(ddl(BY_NAME["captures"]))  # a killed run may leave a folder without files
    return {row.digest for row in captures.parquet(folder.spark("captures")).select("digest").collect()}


def _remove_leftovers(folder: Folder, digests: set[str]) -> None:
    """Remove the staging folder of killed runs, and partitions of captures that have no row in `captures`. Keep what a
    follower was committing: it will finish the commit."""
    folder.remove(STAGING)
    if folder.has(f"{FOLLOWER}/{commit.STAGE}"):
        return
    ingested = {f"capture={digest[:SHORT]}" for digest in digests}
    for name in PARTITION_TABLES:
        for partition in folder.partitions(name):
            if partition.partition("/")[2] not in ingested:
                folder.remove(f"{name}/{partition}")
