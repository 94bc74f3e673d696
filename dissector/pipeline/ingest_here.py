"""Ingests captures on this machine without Spark, which takes time to start: in this process, or in one for each core.

Invariant: the rows are those that Spark's tasks give, however many partitions there are.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from dissector.core.process_memory import collect, return_freed_memory
from dissector.core.text import counted
from dissector.pipeline.commit import commit, rows_by_table, total_tally
from dissector.pipeline.file_scan import FileScan, scan_file
from dissector.pipeline.ingest import IngestJob, IngestResult, Report, ingest
from dissector.pipeline.lone_files import rows_of_file
from dissector.pipeline.observations import (
    KeptObservations,
    findings_of,
    in_order,
    observation_files,
    read_observations,
)
from dissector.pipeline.partition_rows import WriteOptions, rows_with
from dissector.pipeline.splits import check_unchanged
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.pipeline.worker_processes import ALL_PACKETS, PartitionJob, Workers, known_by_itself
from dissector.tables.arrow_types import keep_pandas_out
from dissector.tables.data_files import DataFile, write_rows
from dissector.tables.file_systems import is_url
from dissector.tables.row_batches import TableRow

ROWS_PER_REPORT: Final = 4_096
BYTES_PER_PROCESS: Final = 48 << 20
"""Bytes of blocks for which it pays to start a process: what two begin with for themselves costs a third of the CPU."""
MOST_PROCESSES: Final = 16


def ingest_here(
    paths: Sequence[str], out: str, options: WriteOptions, report: Report = lambda stage, done, total: None,
    *, key_logs: Sequence[str] = (), again: bool = False, parts: int | None = None,
) -> IngestResult:  # fmt: skip
    """Ingest captures into the tables of a storage: `ingest`; in `parts` processes, or as many as are useful. Raises
    `StorageError` if it can't be written to, and `CaptureError` if a key log can't be opened."""
    return_freed_memory()
    keep_pandas_out()
    secrets = TlsSecrets(key_logs)

    def scan() -> list[FileScan]:
        report(f"scanning {counted(len(paths), 'file')}", 0, 0)
        return [scan_file(path) for path in paths]

    return ingest(
        out, options, scan, lambda storage, run, scans: _Job(
            storage, run.epoch, run.folder, scans, options, report, secrets, parts
        ), again=again,
    )  # fmt: skip


class _Job(IngestJob):
    """Ingests scanned files in this process, or in one for each core."""

    def execute(self) -> dict[str, int]:
        """Ingest everything. Return the number of rows by table."""
        parts = self._parts or useful_processes(self._scans)
        if self._splits and parts > 1:
            files = self._files_of_processes(parts)
        else:
            files = list(write_rows(self._reported(self._rows()), self._output))
        collect()
        self.problems = self._secrets.problems(total_tally(files), self._scans)
        check_unchanged(self.problems)
        commit(self._storage.uri, files, self._scans, self._output.epoch, self._options, self.problems, self._origins)
        return rows_by_table(files)

    def _reported(self, made: Iterable[TableRow]) -> Iterator[TableRow]:
        """Report rows as they pass."""
        self._report(f"reading {counted(sum(scan.packets for scan in self._scans), 'packet')}", 0, 0)
        for number, row in enumerate(made, 1):
            if not number % ROWS_PER_REPORT:
                self._report(f"dissecting: {counted(number, 'row')}", 0, 0)
            yield row

    def _files_of_processes(self, parts: int) -> list[DataFile]:
        """Return the files that processes wrote, a partition each, and those with what is not in partitions."""
        self._report(f"reading {counted(sum(scan.packets for scan in self._scans), 'packet')}", 0, 0)
        with Workers(parts) as workers:
            files = workers.dissect(
                self._partitions(), lambda rows: self._report(f"dissecting: {counted(rows, 'row')}", 0, 0)
            )
        check_unchanged(total_tally(files).problems)
        observations = read_observations([self._storage.at(each.path) for each in observation_files(files)])
        others = chain(self._rows_read_alone(), findings_of(in_order(observations), self._origins))
        return files + list(write_rows(others, self._output))

    def _rows_read_alone(self) -> Iterator[TableRow]:
        for scan in self._scans:
            if scan.is_read_alone:
                yield from rows_of_file(scan, self._options, self._output.epoch)

    def _rows(self) -> Iterator[TableRow]:
        yield from self._rows_read_alone()
        if self._splits:
            observations = KeptObservations()
            yield from rows_with(
                known_by_itself, self._partitions().blocks(ALL_PACKETS), ALL_PACKETS, self._origins, self._options,
                self._secrets.text, observations.keep,
            )  # fmt: skip
            yield from observations.findings(self._origins)

    def _partitions(self) -> PartitionJob:
        return PartitionJob(self._splits, self._origins, self._options, self._output, self._secrets.text)


def useful_processes(scans: Sequence[FileScan]) -> int:
    """Return how many processes take less time than one: as many as there are cores, and each with enough to do. An
    object of a store would be copied by each."""
    if any(is_url(scan.path) for scan in scans):
        return 1
    size = sum(scan.block_bytes for scan in scans)
    return max(1, min(len(os.sched_getaffinity(0)), MOST_PROCESSES, size // BYTES_PER_PROCESS))
