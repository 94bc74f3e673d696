"""Ingests captures on this machine without Spark, which takes time to start: in this process, or in one for each core.

Invariant: the rows are those that Spark's tasks give, however many partitions there are.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from dissector.core.finding import Finding
from dissector.core.text import counted
from dissector.index.shared_state import SharedState
from dissector.pipeline.commit import commit
from dissector.pipeline.file_scan import FileScan, scan_file
from dissector.pipeline.ingest import IngestResult, ingest
from dissector.pipeline.observations import ORDER, findings_of, in_order, observation_files, read_observations
from dissector.pipeline.origins import FileOrigins, origins
from dissector.pipeline.partition_rows import WriteOptions, rows
from dissector.pipeline.splits import InputSplit, check_unchanged, route, splits
from dissector.pipeline.tallies import total_tally
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.pipeline.whole_files import rows_of_file
from dissector.pipeline.worker_processes import PartitionJob, dissect
from dissector.tables.data_files import DataFile, Output, write_rows
from dissector.tables.file_systems import is_url
from dissector.tables.rows import Cells, TableRow
from dissector.tables.schemas import FACT_TABLES, OBSERVATIONS
from dissector.tables.storage import Storage
from dissector.transport.partitions import Partition

Report = Callable[[str, int, int], None]
"""Receives the progress of a stage: its name, and how much of how much is done; 0 if unknown."""
ALL_PACKETS: Final = Partition(0, 1)
ROWS_PER_REPORT: Final = 4_096
BYTES_PER_PROCESS: Final = 24 << 20
"""Bytes of blocks for which it pays to start a process: a second and a half of work."""
MOST_PROCESSES: Final = 16


def ingest_here(
    paths: Sequence[str], out: str, options: WriteOptions, report: Report = lambda stage, done, total: None,
    *, key_logs: Sequence[str] = (), again: bool = False, parts: int | None = None,
) -> IngestResult:  # fmt: skip
    """Ingest captures into the tables of a storage: `ingest`; in `parts` processes, or as many as are useful. Raises
    `StorageError` if it can't be written to, and `CaptureError` if a key log can't be opened."""
    secrets = TlsSecrets(key_logs)

    def scan() -> list[FileScan]:
        report(f"scanning {counted(len(paths), 'file')}", 0, 0)
        return [scan_file(path) for path in paths]

    return ingest(
        out, options, scan, lambda storage, run, scans: _Job(
            storage, run.epoch, run.folder, scans, options, report, secrets, parts
        ), again=again,
    )  # fmt: skip


class _Job:
    """Ingests scanned files. `problems` are those of all files together."""

    def __init__(
        self, storage: Storage, epoch: int, folder: str, scans: list[FileScan], options: WriteOptions, report: Report,
        secrets: TlsSecrets, parts: int | None,
    ) -> None:  # fmt: skip
        self._storage = storage
        self._epoch = epoch
        self._folder = folder
        self._scans = scans
        self._options = options
        self._report = report
        self._secrets = secrets
        self._parts = parts
        self.problems: list[Finding] = []

    def execute(self) -> dict[str, int]:
        """Ingest everything. Return the number of rows by table."""
        self._secrets.add_scans(self._scans)
        found = splits(self._scans)
        sources = origins(self._scans, found, self._epoch)
        parts = self._parts or useful_processes(self._scans)
        if found and parts > 1:
            files = self._files_of_processes(found, sources, parts)
        else:
            files = list(write_rows(self._reported(self._rows(found, sources)), self._output))
        self.problems = self._secrets.problems(total_tally(files), self._scans)
        check_unchanged(self.problems)
        commit(self._storage.uri, files, self._scans, self._epoch, self._options, self.problems)
        counts = Counter[str]()
        for file in files:
            counts[file.table] += file.rows
        return {name: counts[name] for name in FACT_TABLES}

    def _reported(self, made: Iterable[TableRow]) -> Iterator[TableRow]:
        """Report rows as they pass."""
        self._report(f"reading {counted(sum(scan.packets for scan in self._scans), 'packet')}", 0, 0)
        for number, row in enumerate(made, 1):
            if not number % ROWS_PER_REPORT:
                self._report(f"dissecting: {counted(number, 'row')}", 0, 0)
            yield row

    @property
    def _output(self) -> Output:
        return Output(self._storage.uri, self._folder, self._epoch)

    def _files_of_processes(self, found: list[InputSplit], sources: FileOrigins, parts: int) -> list[DataFile]:
        """Return the files that processes wrote, a partition each, and those with what is not in partitions."""
        job = PartitionJob(found, sources, self._options, self._output, self._secrets.text)
        self._report(f"reading {counted(sum(scan.packets for scan in self._scans), 'packet')}", 0, 0)
        files = dissect(job, parts, lambda rows: self._report(f"dissecting: {counted(rows, 'row')}", 0, 0))
        check_unchanged(total_tally(files).problems)
        observations = read_observations([self._storage.at(each.path) for each in observation_files(files)])
        others = chain(self._rows_read_alone(), findings_of(in_order(observations), sources))
        return files + list(write_rows(others, self._output))

    def _rows_read_alone(self) -> Iterator[TableRow]:
        for scan in self._scans:
            if scan.is_read_alone:
                yield from rows_of_file(scan, self._options, self._epoch)

    def _rows(self, found: list[InputSplit], sources: FileOrigins) -> Iterator[TableRow]:
        yield from self._rows_read_alone()
        if found:
            yield from _with_findings(self._rows_of_packets(found, sources), sources)

    def _rows_of_packets(self, found: list[InputSplit], sources: FileOrigins) -> Iterator[TableRow]:
        blocks = (block for split in found for _, block in route(split, ALL_PACKETS.parts))
        return rows(blocks, ALL_PACKETS, SharedState.merged([]), sources, self._options, self._secrets.text)


def _with_findings(made: Iterable[TableRow], sources: FileOrigins) -> Iterator[TableRow]:
    """Yield rows with cross-connection findings in place of observations."""
    observations: list[Cells] = []
    for name, row in made:
        if name == OBSERVATIONS.name:
            assert isinstance(row, dict)
            observations.append(row)
        else:
            yield name, row
    observations.sort(key=_in_order)
    yield from findings_of(observations, sources)


def _in_order(observation: Cells) -> list[Any]:
    return [observation[name] for name in ORDER]


def useful_processes(scans: Sequence[FileScan]) -> int:
    """Return how many processes take less time than one: as many as there are cores, and each with enough to do. An
    object of a store would be copied by each."""
    if any(is_url(scan.path) for scan in scans):
        return 1
    size = sum(scan.block_bytes for scan in scans)
    return max(1, min(len(os.sched_getaffinity(0)), MOST_PROCESSES, size // BYTES_PER_PROCESS))
