"""One run of ingest: from scanned files to committed rows.

Steps: shuffle the packets to partitions; let each partition share its state; dissect the partitions, and the files that
are read alone; aggregate observations into cross-connection findings; commit the files that tasks have written.
"""

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.core.finding import Finding
from dissector.core.text import counted
from dissector.index.shared_state import SharedState
from dissector.pipeline import source
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.frames import frame
from dissector.pipeline.observations import BY, ORDER, findings_of
from dissector.pipeline.origins import Origin, origins
from dissector.pipeline.partition_rows import WriteOptions, read_shared_state, rows
from dissector.pipeline.scan import cores
from dissector.pipeline.shuffled import by_partition
from dissector.pipeline.splits import FILE_CHANGED, splits
from dissector.pipeline.stage_progress import Report, stage
from dissector.pipeline.whole_files import rows_of_file
from dissector.tables.data_files import DATA_FILE_TYPES, DataFile, write_rows
from dissector.tables.delta_log import add_captures, append_facts
from dissector.tables.schemas import FACT_TABLES, OBSERVATIONS, ddl
from dissector.tables.storage import Storage, StorageError
from dissector.transport.partitions import Partition

PARTITION_BYTES: Final = 64 << 20
"""Approximate bytes of blocks for a partition: a task of half a minute, quickly retried, with a small spool. A
connection is never split, so a partition may be larger; its memory hardly depends on it."""
OBSERVATIONS_PER_TASK: Final = 50_000
"""Approximate observations that a task aggregates."""


class FilesChangedError(Exception):
    """Files were changed or removed while they were read. `findings` are about them, each with its path."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


def partition_tallies(files: Sequence[DataFile]) -> list[PartitionTally]:
    """Return the tallies of partitions."""
    return [pickle.loads(file.tally) for file in files if file.tally is not None]


def _total_tally(files: Sequence[DataFile]) -> CaptureTally:
    """Return the tally of what all partitions ignored."""
    tallies = partition_tallies(files)
    shuffled = [tally for partition in tallies for tally in partition.shuffled]
    return CaptureTally.merged(shuffled, [partition.tally for partition in tallies])


def _routing_findings(shuffled: DataFrame) -> list[Finding]:
    """Return the findings of routing, which are in blocks without packets."""
    rows = shuffled.where("tally IS NOT NULL").select("tally").collect()
    return [finding for row in rows for finding in pickle.loads(row.tally).file_problems]


def _check_unchanged(findings: Iterable[Finding]) -> None:
    """Raise `FilesChangedError` if there are findings about changed files."""
    if changed := {finding.path: finding for finding in findings if finding.code == FILE_CHANGED}:
        raise FilesChangedError(list(changed.values()))


class IngestRun:
    """Ingests scanned files into the tables of a storage; its own files are in `folder`.

    `problems` are those of all files together."""

    def __init__(
        self, spark: SparkSession, storage: Storage, epoch: int, folder: str, scans: list[FileScan],
        options: WriteOptions, report: Report,
    ) -> None:  # fmt: skip
        self._spark = spark
        self._storage = storage
        self._epoch = epoch
        self._folder = folder
        self._scans = scans
        self._options = options
        self._report = report
        self._splits = splits(scans)
        self._origins = origins(scans, self._splits, epoch)
        self.problems: list[Finding] = []

    @property
    def _packets(self) -> str:
        """The folder of shuffled packets."""
        return f"{self._folder}/packets"

    def execute(self, parts: int | None) -> dict[str, int]:
        """Ingest everything, in `parts` partitions or as many as are useful. Return the number of rows by table."""
        parts = parts or self._default_parts()
        files = self._dissect(parts)
        self.problems = _total_tally(files).problems
        _check_unchanged(self.problems)
        with stage(self._spark, "aggregating findings", self._report):
            files += self._write_findings(files)
        counts = Counter[str]()
        for file in files:
            counts[file.table] += file.rows
        with stage(self._spark, f"committing {counted(counts['exchanges'], 'row')}", self._report):
            self._commit([file for file in files if file.table in FACT_TABLES])
        return {name: counts[name] for name in FACT_TABLES}

    def _default_parts(self) -> int:
        """Return the number of partitions to use: the same for each core, and none too large."""
        size = sum(scan.block_bytes for scan in self._scans)
        return self._cores * max(2, -(-size // (self._cores * PARTITION_BYTES)))

    @cached_property
    def _cores(self) -> int:
        return cores(self._spark)

    def _dissect(self, parts: int) -> list[DataFile]:
        """Dissect all packets. Return the files that tasks wrote."""
        read_alone = [scan for scan in self._scans if scan.is_read_alone]
        if not self._needs_shuffle:
            with stage(self._spark, f"dissecting {counted(len(read_alone), 'file')}", self._report):
                return _data_files(self._dissect_files(read_alone)) if read_alone else []
        shuffled = self._shuffled_locations(parts)
        try:
            packets = sum(scan.packets for scan in self._scans)
            with stage(self._spark, f"shuffling {counted(packets, 'packet')}", self._report):
                _check_unchanged(_routing_findings(shuffled))
            with stage(self._spark, f"sharing state of {counted(parts, 'partition')}", self._report):
                shared_state = self._shared_state(shuffled, parts)
            with stage(self._spark, f"dissecting {counted(parts, 'partition')}", self._report):
                written = self._dissect_partitions(shuffled, parts, shared_state)
                return _data_files(self._dissect_files(read_alone).union(written) if read_alone else written)
        finally:
            shuffled.unpersist()
            with suppress(StorageError):  # the rest is removed with the run
                self._storage.remove(self._packets)

    @property
    def _needs_shuffle(self) -> bool:
        """Whether there are packets to shuffle to partitions."""
        return bool(self._splits)

    def _shuffled_locations(self, parts: int) -> DataFrame:
        """Return the locations of blocks, grouped by partition and in order."""
        locations = self._locations(parts)
        return locations.repartitionById(parts, f.col("part")).sortWithinPartitions("part", "first").persist()

    def _locations(self, parts: int) -> DataFrame:
        """Return the locations of blocks, in the order in which tasks write them."""
        reader = self._spark.read.format(source.NAME)
        reader = reader.option("splits", source.encode_splits(self._splits)).option("parts", str(parts))
        return reader.option("folder", self._storage.at(self._packets)).load()

    def _shared_state(self, shuffled: DataFrame, parts: int) -> SharedState:
        packets_at = self._storage.at(self._packets)

        def read_states(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in by_partition(locations, packets_at):
                state = pickle.dumps(read_shared_state(blocks, Partition(number, parts)))
                yield pa.RecordBatch.from_pydict({"state": pa.array([state], pa.binary())})

        states = shuffled.mapInArrow(read_states, "state BINARY").collect()
        return SharedState.merged(pickle.loads(row.state) for row in states)

    def _dissect_partitions(self, shuffled: DataFrame, parts: int, shared_state: SharedState) -> DataFrame:
        arguments = pickle.dumps((shared_state, self._origins, self._options))
        packets_at, uri, run = self._storage.at(self._packets), self._storage.uri, self._folder

        def dissect(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in by_partition(locations, packets_at):
                for file in write_rows(rows(blocks, Partition(number, parts), *pickle.loads(arguments)), uri, run):
                    yield file.batch

        return shuffled.mapInArrow(dissect, DATA_FILE_TYPES)

    def _dissect_files(self, read_alone: list[FileScan]) -> DataFrame:
        """Dissect files that are read alone, in a task each."""
        options, epoch, uri, run = self._options, self._epoch, self._storage.uri, self._folder

        def dissect(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for scan in batch.column(1).to_pylist():
                    for file in write_rows(rows_of_file(pickle.loads(scan), options, epoch), uri, run):
                        yield file.batch

        numbered = [(number, pickle.dumps(scan)) for number, scan in enumerate(read_alone)]
        scans = frame(self._spark, numbered, "number INT, scan BINARY")
        return scans.repartitionById(len(numbered), f.col("number")).mapInArrow(dissect, DATA_FILE_TYPES)

    def _write_findings(self, files: list[DataFile]) -> list[DataFile]:
        """Write the cross-connection findings, from the observations of all partitions. Those of one scope are in one
        task, in the order of the capture: so findings are those of reading it whole, however packets were
        distributed."""
        observations = self._observations(files)
        if observations is None:
            return []
        uri, run, pickled_origins = self._storage.uri, self._folder, pickle.dumps(self._origins)

        def aggregate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            cells = (cells for batch in batches for cells in batch.to_pylist())
            for file in write_rows(findings_of(cells, pickle.loads(pickled_origins)), uri, run):
                yield file.batch

        tasks = 1 + sum(file.rows for file in files if file.table == OBSERVATIONS.name) // OBSERVATIONS_PER_TASK
        by_scope = observations.repartition(tasks, *BY).sortWithinPartitions(*ORDER)
        return _data_files(by_scope.mapInArrow(aggregate, DATA_FILE_TYPES))

    def _observations(self, files: list[DataFile]) -> DataFrame | None:
        """Return the observations of all partitions; None if there are none."""
        paths = [self._storage.at(file.path) for file in files if file.table == OBSERVATIONS.name]
        return self._spark.read.schema(ddl(OBSERVATIONS)).parquet(*paths) if paths else None

    def _commit(self, files: list[DataFile]) -> None:
        """Commit the rows, and then the captures, which make them count."""
        append_facts(self._storage.uri, files)
        self._commit_captures()

    def _commit_captures(self) -> None:
        """Commit those captures that no other ingest has committed by now."""
        mine = self._capture_rows()

        def new(captures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
            known = {each["digest"] for each in captures}
            return [row for row in mine if row["digest"] not in known]

        add_captures(self._storage.uri, new)

    def _capture_rows(self) -> list[dict[str, Any]]:
        """Return the rows of `captures`. Files with packets also get the problems of all files together."""
        return [
            Origin(0, scan.digest, scan.earliest_ns, self._epoch).keys | {
                "digest": scan.digest, "path": scan.path, "bytes": scan.size, "packets": scan.packets,
                "form": scan.form, "first_ns": scan.first_ns, "begin_ns": scan.earliest_ns, "end_ns": scan.latest_ns,
                "link_types": scan.link_types,
                "problems": [
                    {"code": p.code, "severity": p.severity.value, "path": p.path, "message": p.message}
                    for p in scan.problems + (self.problems if scan.ranges else [])
                ],
            }
            for scan in self._scans
        ]  # fmt: skip


def _data_files(written: DataFrame) -> list[DataFile]:
    return [DataFile(*row) for row in written.collect()]
