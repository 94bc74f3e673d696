"""The ingest job: captures to tables.

Invariants:
  * a capture is in the tables when `captures` has its row, which is written last: rows of a run that was killed do not
    count, and a later run removes them (`runs`);
  * a capture that is in the tables is not read again, whatever the name and the format of its file, unless this version
    or these options give it other rows: then it replaces itself, or the other file with the same contents;
  * if a file has changed since it was scanned, the run starts again without it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dissector.core.finding import Finding
from dissector.core.spool import SpoolFullError
from dissector.pipeline.commit import are_current
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.origins import origins
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.runs import remove_abandoned, remove_run
from dissector.pipeline.splits import FilesChangedError, splits
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.tables.data_files import Output
from dissector.tables.delta_log import create_tables, digests_of, live_captures
from dissector.tables.row_batches import Cells
from dissector.tables.run import Run
from dissector.tables.storage import Storage, StorageError

Report = Callable[[str, int, int], None]
"""Receives the progress of a stage: its name, and how much of how much is done; 0 if unknown. Or `NO_EXECUTORS`,
once, where all waits for those."""
NO_EXECUTORS: Final = (
    "the job has no executor yet: the cluster has no worker with free cores and as much memory as"
    " spark.executor.memory says"
)


@dataclass
class IngestResult:
    """Result of a run."""

    read: int = 0
    """Number of captures that were ingested."""
    epoch: int = 0
    """That of the run that ingested them."""
    already_ingested: list[str] = field(default_factory=list)
    """Paths of captures that were in the tables before, or are in another file of the run."""
    known_as: dict[str, str] = field(default_factory=dict)
    """By these paths, those under which the captures are in the tables."""
    replaced: dict[str, str] = field(default_factory=dict)
    """By paths of captures that were ingested, those of other files with the same contents that they replace."""
    packets: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """Rows by table."""
    problems: list[Finding] = field(default_factory=list)


class IngestJob(ABC):
    """Ingests scanned files into the tables of a storage, in this process or on Spark; its own files are in `folder`.

    `problems` are those of all files together."""

    def __init__(
        self, storage: Storage, epoch: int, folder: str, scans: list[FileScan], options: WriteOptions, report: Report,
        secrets: TlsSecrets, parts: int | None,
    ) -> None:  # fmt: skip
        self._storage = storage
        self._output = Output(storage.uri, folder, epoch)
        self._scans = scans
        self._options = options
        self._report = report
        self._parts = parts
        self._secrets = secrets
        secrets.add_scans(scans)
        self._splits = splits(scans)
        self._origins = origins(scans, self._splits, epoch)
        self.problems: list[Finding] = []

    @abstractmethod
    def execute(self) -> dict[str, int]:
        """Ingest everything. Return the number of rows by table. Raises `FilesChangedError`."""


def ingest(
    out: str, options: WriteOptions, scan: Callable[[], list[FileScan]],
    job: Callable[[Storage, Run, list[FileScan]], IngestJob], *, again: bool = False,
) -> IngestResult:  # fmt: skip
    """Ingest the captures that `scan` returns into the tables of a storage, each of them by a `job`. Those that
    are there are left out, or replaced if they are to be ingested `again`. Raises `StorageError`."""
    storage = Storage(out)
    create_tables(storage.uri)
    remove_abandoned(storage)
    scans = scan()
    digests = {digest for each in scans for digest in each.digests}
    rows = [row for row in live_captures(storage.uri) if not digests.isdisjoint((row["digest"], row["contents"]))]
    known = {} if again else known_captures(rows, options)
    result = IngestResult(problems=_problems(scans, known))
    while new := _new_captures(scans, known, result):
        run = Run.new()
        storage.mark(run.folder)
        current = job(storage, run, new)
        try:
            result.counts = current.execute()
        except SpoolFullError as full:
            raise StorageError(str(full)) from None
        except FilesChangedError as changed:
            remove_run(storage, run)
            result.problems += changed.findings
            changed_paths = {finding.path for finding in changed.findings}
            scans = [each for each in scans if each.path not in changed_paths]
            continue
        storage.remove(run.folder)
        result.problems += current.problems
        read = [each for each in new if not each.unread_reason]
        result.read, result.packets = len(read), sum(each.packets for each in read)
        result.epoch = run.epoch
        result.replaced = _replaced(rows, new)
        break
    return result


def known_captures(rows: Iterable[Cells], options: WriteOptions) -> dict[str, str]:
    """Return paths of captures, rows of `captures`, by their digests: of those that were ingested by this version and
    with these options."""
    return {digest: row["path"] for row in are_current(rows, options) for digest in digests_of(row)}


def name_among(known: Mapping[str, str], scan: FileScan) -> str | None:
    """Return the path under which a capture is known, given paths by digest; None if it is not."""
    return next((known[digest] for digest in scan.digests if digest in known), None)


def _new_captures(scans: Sequence[FileScan], known: Mapping[str, str], result: IngestResult) -> list[FileScan]:
    """Return the captures to ingest; the others go to `result`."""
    found, seen = list[FileScan](), dict(known)
    result.already_ingested, result.known_as = [], {}
    for each in scans:
        name = name_among(seen, each)
        if name is not None:
            result.already_ingested.append(each.path)
            result.known_as[each.path] = name
        elif each.digest:
            seen |= dict.fromkeys(each.digests, each.path)
            found.append(each)
    return found


def _problems(scans: Sequence[FileScan], known: Mapping[str, str]) -> list[Finding]:
    """Return the problems of files, but for those that are in the tables with their captures."""
    found, seen = list[Finding](), set(known)
    for each in scans:
        if each.digest not in seen:
            found += each.problems
        seen.update(filter(None, (each.digest,)))
    return found


def _replaced(rows: Sequence[Cells], new: Sequence[FileScan]) -> dict[str, str]:
    """Return `IngestResult.replaced`, given the rows of `captures` before the run."""
    paths = {row["contents"]: row["path"] for row in rows if row.get("contents")}
    of_same_file = {row["digest"] for row in rows}
    return {
        each.path: paths[each.contents] for each in new if each.contents in paths and each.digest not in of_same_file
    }
