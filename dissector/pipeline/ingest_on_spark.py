"""Ingests captures in Spark's tasks: from scanned files to committed rows.

Steps: shuffle the packets to partitions; let each partition share its state; dissect the partitions, and the files that
are read alone; aggregate observations into cross-connection findings; commit the files that tasks have written.

Input splits go to tasks as rows, not by a Data Source of Spark's: to plan one, the driver starts the Python of workers,
which takes seconds, and is not there on YARN.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.utils import is_remote

from dissector.core.finding import Finding, Severity
from dissector.core.text import counted
from dissector.index.shared_state import SharedState
from dissector.pipeline.background_scan import BackgroundScan
from dissector.pipeline.commit import commit, rows_by_table, total_tally
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.frames import frame, rows_of_files
from dissector.pipeline.ingest import IngestJob, IngestResult, Report, ingest
from dissector.pipeline.lone_files import rows_of_file
from dissector.pipeline.observations import (
    BY,
    MOST_HERE,
    ORDER,
    findings_of,
    in_order,
    observation_files,
    read_observations,
)  # fmt: skip
from dissector.pipeline.partition_rows import WriteOptions, read_shared_state, rows
from dissector.pipeline.scan import cores, scan_files
from dissector.pipeline.shuffled import LOCATIONS, by_partition, write_blocks
from dissector.pipeline.spark_session import stage
from dissector.pipeline.splits import InputSplit, check_unchanged, group_splits, route
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.tables.data_files import DATA_FILE_TYPES, DataFile, write_rows
from dissector.tables.schemas import OBSERVATIONS
from dissector.tables.storage import Storage, StorageError
from dissector.transport.partitions import Partition

if TYPE_CHECKING:
    from pyspark import Broadcast

PARTITION_BYTES: Final = 64 << 20
"""Approximate bytes of blocks for a partition: a task of half a minute, quickly retried, with a small spool. A
connection is never split, so a partition may be larger; its memory hardly depends on it."""
ONE_PARTITION_BYTES: Final = 8 << 20
"""Up to so many bytes of blocks are one partition: half a second of work."""
OBSERVATIONS_PER_TASK: Final = 50_000
"""Approximate observations that a task aggregates."""


def ingest_on_spark(
    spark: SparkSession, paths: Sequence[str], out: str, options: WriteOptions, *, parts: int | None = None,
    report: Report = lambda stage, done, total: None, ahead: BackgroundScan | None = None,
    key_logs: Sequence[str] = (), again: bool = False,
) -> IngestResult:  # fmt: skip
    """Ingest captures into the tables of a storage, in `parts` partitions or as many as are useful; `ahead` has scanned
    some of them. Raises `StorageError` if it can't be written to, and `CaptureError` if a key log can't be opened."""
    secrets = TlsSecrets(key_logs)

    def scan() -> list[FileScan]:
        with stage(spark, f"scanning {counted(len(paths), 'file')}", report):
            return scan_files(spark, paths, ahead)

    return ingest(
        out, options, scan, lambda storage, run, scans: IngestRun(
            spark, storage, run.epoch, run.folder, scans, options, report, secrets, parts
        ), again=again,
    )  # fmt: skip


def _routing_findings(shuffled: DataFrame) -> list[Finding]:
    """Return the findings of routing, which are in blocks without packets."""
    rows = shuffled.where("tally IS NOT NULL").select("tally").collect()
    return [finding for row in rows for finding in pickle.loads(row.tally).file_problems]


class IngestRun(IngestJob):
    """Ingests scanned files by Spark, in `parts` partitions or as many as are useful."""

    def __init__(
        self, spark: SparkSession, storage: Storage, epoch: int, folder: str, scans: list[FileScan],
        options: WriteOptions, report: Report, secrets: TlsSecrets, parts: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(storage, epoch, folder, scans, options, report, secrets, parts)
        self._spark = spark
        self._sent = SentSecrets(spark, self._secrets.text)

    @property
    def _packets(self) -> str:
        """The folder of shuffled packets."""
        return f"{self._output.folder}/packets"

    def execute(self) -> dict[str, int]:
        """Ingest everything. Return the number of rows by table. Raises `FilesChangedError`."""
        try:
            files = self._dissect(self._parts or self._default_parts())
        finally:
            self._sent.forget()
        self.problems = self._secrets.problems(total_tally(files), self._scans) + self._sent.problems
        check_unchanged(self.problems)
        with stage(self._spark, "aggregating findings", self._report):
            files += self._write_findings(files)
        counts = rows_by_table(files)
        with stage(self._spark, f"committing {counted(counts['exchanges'], 'row')}", self._report):
            commit(
                self._storage.uri, files, self._scans, self._output.epoch, self._options, self.problems, self._origins
            )
        return counts

    def _default_parts(self) -> int:
        """Return the number of partitions to use: one for little, else the same for each core, and none too large."""
        size = sum(scan.block_bytes for scan in self._scans)
        if size <= ONE_PARTITION_BYTES:  # each would have files of its own in every table
            return 1
        return self._cores * max(2, -(-size // (self._cores * PARTITION_BYTES)))

    @cached_property
    def _cores(self) -> int:
        return cores(self._spark)

    def _dissect(self, parts: int) -> list[DataFile]:
        """Dissect all packets. Return the files that tasks wrote."""
        read_alone = [scan for scan in self._scans if scan.is_read_alone]
        if not self._splits:
            with stage(self._spark, f"dissecting {counted(len(read_alone), 'file')}", self._report):
                return _data_files(self._dissect_files(read_alone)) if read_alone else []
        shuffled = self._shuffled_locations(parts)
        try:
            packets = sum(scan.packets for scan in self._scans)
            with stage(self._spark, f"shuffling {counted(packets, 'packet')}", self._report):
                check_unchanged(_routing_findings(shuffled))
            with stage(self._spark, f"sharing state of {counted(parts, 'partition')}", self._report):
                shared_state = self._shared_state(shuffled, parts)
            with stage(self._spark, f"dissecting {counted(parts, 'partition')}", self._report):
                written = self._dissect_partitions(shuffled, parts, shared_state)
                return _data_files(self._dissect_files(read_alone).union(written) if read_alone else written)
        finally:
            shuffled.unpersist()
            with suppress(StorageError):  # the rest is removed with the run
                self._storage.remove(self._packets)

    def _shuffled_locations(self, parts: int) -> DataFrame:
        """Return the locations of blocks, grouped by partition and in order."""
        locations = _locations(self._spark, self._splits, parts, self._storage.at(self._packets))
        return locations.repartitionById(parts, f.col("part")).sortWithinPartitions("part", "first").persist()

    def _shared_state(self, shuffled: DataFrame, parts: int) -> SharedState:
        """Return what all partitions know together: nothing that a lone one does not find by itself."""
        if parts == 1:
            return SharedState.merged([])
        packets_at = self._storage.at(self._packets)
        secrets, decode_as = self._sent.value, self._options.decode_as

        def read_states(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in by_partition(locations, packets_at):
                state = pickle.dumps(read_shared_state(blocks, Partition(number, parts), secrets(), decode_as))
                yield pa.RecordBatch.from_pydict({"state": pa.array([state], pa.binary())})

        states = shuffled.mapInArrow(read_states, "state BINARY").collect()
        return SharedState.merged(pickle.loads(row.state) for row in states)

    def _dissect_partitions(self, shuffled: DataFrame, parts: int, shared_state: SharedState) -> DataFrame:
        arguments = pickle.dumps((shared_state, self._origins, self._options))
        packets_at, output, secrets = self._storage.at(self._packets), self._output, self._sent.value

        def dissect(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in by_partition(locations, packets_at):
                shared_state, origins, options = pickle.loads(arguments)
                of_part = rows(blocks, Partition(number, parts), shared_state, origins, options, secrets())
                for file in write_rows(of_part, output):
                    yield file.batch

        return shuffled.mapInArrow(dissect, DATA_FILE_TYPES)

    def _dissect_files(self, read_alone: list[FileScan]) -> DataFrame:
        """Dissect files that are read alone, in a task each."""
        options, output = self._options, self._output

        def dissect(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for scan in batch.column(1).to_pylist():
                    for file in write_rows(rows_of_file(pickle.loads(scan), options, output.epoch), output):
                        yield file.batch

        numbered = [(number, pickle.dumps(scan)) for number, scan in enumerate(read_alone)]
        scans = frame(self._spark, numbered, "number INT, scan BINARY")
        return scans.repartitionById(len(numbered), f.col("number")).mapInArrow(dissect, DATA_FILE_TYPES)

    def _write_findings(self, files: list[DataFile]) -> list[DataFile]:
        """Write the cross-connection findings, from the observations of all partitions. Those of one scope are in one
        task, in the order of the capture: so findings are those of reading it whole, however packets were
        distributed."""
        staged = observation_files(files)
        count = sum(file.rows for file in staged)
        if count <= MOST_HERE:
            observations = read_observations([self._storage.at(file.path) for file in staged])
            return list(write_rows(findings_of(in_order(observations), self._origins), self._output))
        output, pickled_origins = self._output, pickle.dumps(self._origins)

        def aggregate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            cells = (cells for batch in batches for cells in batch.to_pylist())
            for file in write_rows(findings_of(cells, pickle.loads(pickled_origins)), output):
                yield file.batch

        tasks = 1 + count // OBSERVATIONS_PER_TASK
        by_scope = self._observations(staged).repartition(tasks, *BY).sortWithinPartitions(*ORDER)
        return _data_files(by_scope.mapInArrow(aggregate, DATA_FILE_TYPES))

    def _observations(self, staged: list[DataFile]) -> DataFrame:
        """Return the observations in files, of which there is one at least."""
        return rows_of_files(self._spark, OBSERVATIONS, [self._storage.at(file.path) for file in staged])


def _data_files(written: DataFrame) -> list[DataFile]:
    return [DataFile(*row) for row in written.collect()]


def _locations(spark: SparkSession, splits: Sequence[InputSplit], parts: int, folder: str) -> DataFrame:
    """Write blocks of splits to a folder of the storage, for so many partitions; return their locations."""
    groups = group_splits(splits, 2 * parts)
    numbered = frame(
        spark, [(number, pickle.dumps(group)) for number, group in enumerate(groups)], "task INT, splits BINARY"
    )

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for pickled in batch.column(1).to_pylist():
                yield from write_blocks(
                    (each for split in pickle.loads(pickled) for each in route(split, parts)), folder
                )

    return numbered.repartitionById(len(groups), f.col("task")).mapInArrow(read, LOCATIONS)


def nothing() -> bytes:
    """Return no secrets: nothing is sent then."""
    return b""


class SentSecrets:
    """The TLS secrets of one run, a key log, on their way to tasks: as a broadcast, which is in no plan, setting,
    environment or event log.

    All are sent, as a connection whose ClientHello was not captured may have any of them. Spark keeps a broadcast in
    folders that only its user can read, and encrypts it there if `spark.io.encryption.enabled` is set."""

    def __init__(self, spark: SparkSession, secrets: bytes) -> None:
        self.problems: list[Finding] = []
        self.value: Callable[[], bytes] = nothing
        """Gives them to a task."""
        self._broadcast: Broadcast[bytes] | None = None
        if secrets and is_remote():
            words = "secrets of TLS are not sent to a Spark Connect server, whose plans would have them: use --master"
            self.problems.append(Finding("secrets-omitted", Severity.WARNING, words))
        elif secrets:
            self._broadcast = spark.sparkContext.broadcast(secrets)
            self.value = _Received(self._broadcast)

    def forget(self) -> None:
        """Remove them from the machines that have got them."""
        if self._broadcast is not None:
            self._broadcast.destroy()
            self._broadcast, self.value = None, nothing


class _Received:
    """Secrets in a task. Its pickle has the number of the broadcast alone."""

    def __init__(self, broadcast: "Broadcast[bytes]") -> None:
        self._broadcast = broadcast

    def __call__(self) -> bytes:
        return self._broadcast.value
