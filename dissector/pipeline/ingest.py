"""The ingest job: captures to tables.

Invariants:
  * a capture is in the tables when `captures` has its row, which is written last: rows of a run that was killed do not
    count, and a later run removes them (`runs`);
  * a capture that is in the tables is not read again, whatever the name of its file;
  * if a file has changed since it was scanned, the run starts again without it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from dissector.core.finding import Finding
from dissector.core.text import counted
from dissector.pipeline import source
from dissector.pipeline.ingest_run import FilesChangedError, IngestRun
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.runs import Run, remove_abandoned
from dissector.pipeline.scan import BackgroundScan, scan_files
from dissector.pipeline.stage_progress import Report, stage
from dissector.tables.delta_log import CAPTURES, captures_in, create_tables, delta_table
from dissector.tables.storage import RUNS, Storage, StorageError


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
    """Ingest captures into the tables of a storage; `ahead` has scanned some of them. Raises `StorageError` if it can't
    be written to."""
    spark.dataSource.register(source.PacketSource)
    storage = Storage(out)
    create_tables(storage.uri)
    remove_abandoned(storage)
    digests = ingested_digests(storage)
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
        run = Run.new()
        job = IngestRun(spark, storage, run.epoch, run.folder, new, options, report)
        try:
            result.counts = job.execute(parts)
        except FilesChangedError as changed:
            result.problems += changed.findings
            changed_paths = {finding.path for finding in changed.findings}
            new = [scan for scan in new if scan.path not in changed_paths]
            continue
        finally:
            with suppress(StorageError):  # another run removes it
                storage.remove(run.folder)
        result.problems += job.problems
        read = [scan for scan in new if not scan.unread_reason]
        result.read, result.packets = len(read), sum(scan.packets for scan in read)
        break
    return result


@contextmanager
def remove_runs_afterwards(out: str) -> Iterator[None]:
    """Remove the folders of this process's runs. Exit this context after Spark has ended: canceled tasks still write
    for a short time."""
    try:
        yield
    finally:
        mine = Run.new()
        with suppress(StorageError):
            storage = Storage(out)
            for name in storage.folders(RUNS):
                run = Run.named(name)
                if run is not None and run[1:] == mine[1:]:
                    storage.remove(run.folder)


def ingested_digests(storage: Storage) -> set[str]:
    """Return the digests of the captures that are in the tables."""
    captures = delta_table(storage.uri, CAPTURES)
    return set() if captures is None else {row["digest"] for row in captures_in(storage.uri, captures)}
