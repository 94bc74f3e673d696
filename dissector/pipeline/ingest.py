"""The ingest job: captures to tables.

Invariants:
  * a capture is in the tables when `captures` has its row, which is written last: rows of a run that was killed do not
    count, and a later run removes them (`runs`);
  * a capture that is in the tables is not read again, whatever the name of its file, unless this version or these
    options give it other rows: then it replaces itself;
  * if a file has changed since it was scanned, the run starts again without it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from dissector.core.finding import Finding
from dissector.pipeline.commit import is_current
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.runs import remove_abandoned, remove_run
from dissector.pipeline.splits import FilesChangedError
from dissector.tables.delta_log import create_tables, live_captures
from dissector.tables.run import Run
from dissector.tables.storage import Storage


@dataclass
class IngestResult:
    """Result of a run."""

    read: int = 0
    """Number of captures that were ingested."""
    epoch: int = 0
    """That of the run that ingested them."""
    already_ingested: list[str] = field(default_factory=list)
    """Paths of captures that were in the tables before."""
    packets: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Rows by table."""
    problems: list[Finding] = field(default_factory=list)


class Job(Protocol):
    """Ingests scanned files: in this process, or on Spark."""

    problems: list[Finding]
    """Of all files together."""

    def execute(self) -> dict[str, int]:
        """Ingest everything. Return the number of rows by table. Raises `FilesChangedError`."""


def ingest(
    out: str, options: WriteOptions, scan: Callable[[], list[FileScan]],
    job: Callable[[Storage, Run, list[FileScan]], Job], *, again: bool = False,
) -> IngestResult:  # fmt: skip
    """Ingest the captures that `scan` returns into the tables of a storage, each of them by a `job`. Those that
    are there are left out, or replaced if they are to be ingested `again`. Raises `StorageError`."""
    storage = Storage(out)
    create_tables(storage.uri)
    remove_abandoned(storage)
    digests = set() if again else ingested_digests(storage, options)
    result, new = IngestResult(), []
    for each in scan():
        if each.digest in digests:
            result.already_ingested.append(each.path)
            continue
        result.problems += each.problems
        if each.digest:
            digests.add(each.digest)
            new.append(each)
    while new:
        run = Run.new()
        storage.mark(run.folder)
        current = job(storage, run, new)
        try:
            result.counts = current.execute()
        except FilesChangedError as changed:
            remove_run(storage, run)
            result.problems += changed.findings
            changed_paths = {finding.path for finding in changed.findings}
            new = [each for each in new if each.path not in changed_paths]
            continue
        storage.remove(run.folder)
        result.problems += current.problems
        read = [each for each in new if not each.unread_reason]
        result.read, result.packets = len(read), sum(each.packets for each in read)
        result.epoch = run.epoch
        break
    return result


def ingested_digests(storage: Storage, options: WriteOptions, *, but_of: int | None = None) -> set[str]:
    """Return the digests of the captures that are in the tables, ingested by this version and with these options, but
    for those of one epoch."""
    rows = live_captures(storage.uri)
    return {row["digest"] for row in rows if is_current(row, options) and row["epoch"] != but_of}
