"""One run of ingest: from scanned files to committed rows.

Steps: shuffle the packets to partitions; let each partition share its state; dissect the partitions, and the files that
are read alone; aggregate observations into cross-connection findings; write the tables; commit them.
"""

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.core.finding import Finding
from dissector.core.text import counted
from dissector.index.shared_state import SharedState
from dissector.pipeline import cross_connection, source
from dissector.pipeline.arrow import frame
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.folder import Folder, FolderError
from dissector.pipeline.observations import findings_of
from dissector.pipeline.origins import origins
from dissector.pipeline.partition_rows import WriteOptions, read_shared_state, rows
from dissector.pipeline.scan import cores
from dissector.pipeline.shuffled import by_partition
from dissector.pipeline.splits import FILE_CHANGED, splits
from dissector.pipeline.stage_progress import Report, stage
from dissector.pipeline.staging import STAGED_TYPES, StagedFile, write_rows
from dissector.pipeline.table_schemas import (
    BY_NAME,
    FOUND,
    OBSERVATIONS,
    PARTITION_TABLES,
    PARTITIONS_DDL,
    UNCHANGED_TABLES,
    TableSchema,
    ddl,
)
from dissector.pipeline.whole_files import rows_of_file
from dissector.transport.partitions import Partition

PARTITION_BYTES: Final = 64 << 20
"""Approximate bytes of blocks for a partition: a task of half a minute, quickly retried, with a small spool. A
connection is never split, so a partition may be larger; its memory hardly depends on it."""
ROWS_PER_TASK: Final = 20_000
"""Minimum rows that a task writes."""
OBSERVATIONS_PER_TASK: Final = 50_000
"""Approximate observations that a task aggregates."""
STAGING: Final = "_runs"
"""Folder of unfinished runs."""


class FilesChangedError(Exception):
    """Files were changed or removed while they were read. `findings` are about them, each with its path."""

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


def partition_tallies(files: Sequence[StagedFile]) -> list[PartitionTally]:
    """Return the tallies of partitions."""
    return [pickle.loads(file.tally) for file in files if file.tally is not None]


def _total_tally(files: Sequence[StagedFile]) -> CaptureTally:
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
    """Ingests scanned files into the tables of a folder. `problems` are those of all files together."""

    def __init__(
        self, spark: SparkSession, folder: Folder, run_id: str, scans: list[FileScan], options: WriteOptions,
        report: Report,
    ) -> None:  # fmt: skip
        self._spark = spark
        self._folder = folder
        self._run_id = run_id
        self._stage = f"{STAGING}/{run_id}"
        self._scans = scans
        self._options = options
        self._report = report
        self._splits = splits(scans)
        self._origins = origins(scans, self._splits)
        self.problems: list[Finding] = []

    @property
    def _packets(self) -> str:
        """The folder of shuffled packets."""
        return f"{self._stage}/packets"

    @property
    def _rows(self) -> str:
        """The folder of rows as tasks write them."""
        return f"{self._stage}/rows"

    def execute(self, parts: int | None) -> dict[str, int]:
        """Ingest everything, in `parts` partitions or as many as are useful. Return the number of rows by table."""
        parts = parts or self._default_parts()
        files = self._dissect(parts)
        self.problems = _total_tally(files).problems
        _check_unchanged(self.problems)
        with stage(self._spark, "aggregating findings", self._report):
            files += self._stage_findings(files)
        counts = Counter[str]()
        for file in files:
            counts["findings" if file.table == FOUND.name else file.table] += file.rows
        table_counts = {name: counts[name] for name in PARTITION_TABLES}
        with stage(self._spark, f"writing {counted(sum(table_counts.values()), 'row')}", self._report):
            for name in PARTITION_TABLES:
                self._write_table(name, files, table_counts[name])
            self._commit()
        return table_counts

    def _default_parts(self) -> int:
        """Return the number of partitions to use: the same for each core, and none too large."""
        size = sum(scan.block_bytes for scan in self._scans)
        return self._cores * max(2, -(-size // (self._cores * PARTITION_BYTES)))

    @cached_property
    def _cores(self) -> int:
        return cores(self._spark)

    def _dissect(self, parts: int) -> list[StagedFile]:
        """Dissect all packets. Return the files that tasks wrote."""
        read_alone = [scan for scan in self._scans if scan.is_read_alone]
        if not self._needs_shuffle:
            with stage(self._spark, f"dissecting {counted(len(read_alone), 'file')}", self._report):
                return _staged_files(self._dissect_files(read_alone)) if read_alone else []
        shuffled = self._shuffled_locations(parts)
        try:
            packets = sum(scan.packets for scan in self._scans)
            with stage(self._spark, f"shuffling {counted(packets, 'packet')}", self._report):
                _check_unchanged(_routing_findings(shuffled))
            with stage(self._spark, f"sharing state of {counted(parts, 'partition')}", self._report):
                shared_state = self._shared_state(shuffled, parts)
            with stage(self._spark, f"dissecting {counted(parts, 'partition')}", self._report):
                staged = self._dissect_partitions(shuffled, parts, shared_state)
                return _staged_files(self._dissect_files(read_alone).union(staged) if read_alone else staged)
        finally:
            shuffled.unpersist()
            with suppress(FolderError):  # the rest is removed with the run
                self._folder.remove(self._packets)

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
        return reader.option("folder", self._folder.spark(self._packets)).load()

    def _shared_state(self, shuffled: DataFrame, parts: int) -> SharedState:
        packets_at = self._folder.spark(self._packets)

        def read_states(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in by_partition(locations, packets_at):
                state = pickle.dumps(read_shared_state(blocks, Partition(number, parts)))
                yield pa.RecordBatch.from_pydict({"state": pa.array([state], pa.binary())})

        states = shuffled.mapInArrow(read_states, "state BINARY").collect()
        return SharedState.merged(pickle.loads(row.state) for row in states)

    def _dissect_partitions(self, shuffled: DataFrame, parts: int, shared_state: SharedState) -> DataFrame:
        arguments = pickle.dumps((shared_state, self._origins, self._options))
        packets_at, rows_at = self._folder.spark(self._packets), self._folder.spark(self._rows)

        def dissect(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in by_partition(locations, packets_at):
                for file in write_rows(rows(blocks, Partition(number, parts), *pickle.loads(arguments)), rows_at):
                    yield file.batch

        return shuffled.mapInArrow(dissect, STAGED_TYPES)

    def _dissect_files(self, read_alone: list[FileScan]) -> DataFrame:
        """Dissect files that are read alone, in a task each."""
        options, rows_at = self._options, self._folder.spark(self._rows)

        def dissect(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for scan in batch.column(1).to_pylist():
                    for file in write_rows(rows_of_file(pickle.loads(scan), options), rows_at):
                        yield file.batch

        numbered = [(number, pickle.dumps(scan)) for number, scan in enumerate(read_alone)]
        scans = frame(self._spark, numbered, "number INT, scan BINARY")
        return scans.repartitionById(len(numbered), f.col("number")).mapInArrow(dissect, STAGED_TYPES)

    def _stage_findings(self, files: list[StagedFile]) -> list[StagedFile]:
        """Stage the cross-connection findings, from the observations of all partitions."""
        observations = self._staged(OBSERVATIONS, files)
        if observations is None:
            return []
        rows_at, pickled_origins = self._folder.spark(self._rows), pickle.dumps(self._origins)

        def aggregate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            cells = (cells for batch in batches for cells in batch.to_pylist())
            found = ((FOUND.name, finding) for finding in findings_of(cells, pickle.loads(pickled_origins)))
            for file in write_rows(found, rows_at):
                yield file.batch

        tasks = 1 + sum(file.rows for file in files if file.table == OBSERVATIONS.name) // OBSERVATIONS_PER_TASK
        return _staged_files(cross_connection.partitioned(observations, tasks).mapInArrow(aggregate, STAGED_TYPES))

    def _staged(self, table: TableSchema, files: list[StagedFile]) -> DataFrame | None:
        """Return the staged rows of a table; None if there are none."""
        paths = [self._folder.spark(f"{self._rows}/{file.path}") for file in files if file.table == table.name]
        return self._read(table, paths) if paths else None

    def _read(self, table: TableSchema, paths: list[str]) -> DataFrame:
        return self._spark.read.schema(f"{PARTITIONS_DDL}, {ddl(table, before=True)}").parquet(*paths)

    def _rows_with_findings(self, table: TableSchema, files: list[StagedFile]) -> DataFrame | None:
        """Return the staged rows of a table, with cross-connection findings."""
        rows, found = self._staged(table, files), self._staged(FOUND, files)
        if found is None or table.name not in ("exchanges", "findings"):
            return rows
        exchanges = self._staged(BY_NAME["exchanges"], files)
        assert exchanges is not None, "every cross-connection finding is about an exchange"
        if table.name == "exchanges":
            return cross_connection.with_found(exchanges, found)
        findings = cross_connection.finding_rows(found, exchanges)
        return findings if rows is None else rows.unionByName(findings)

    def _write_table(self, name: str, files: list[StagedFile], row_count: int) -> None:
        """Write the rows of one table to the folder from which they are committed."""
        table = BY_NAME[name]
        if name in UNCHANGED_TABLES:
            for file in files:
                if file.table == name:
                    self._folder.move(f"{self._rows}/{file.path}", f"{self._stage}/{file.path}")
            return
        rows = self._rows_with_findings(table, files)
        if rows is None:
            return
        json_columns = [column.name for column in table.columns if column.of_json]
        for column in json_columns:
            rows = rows.withColumn(column, f.try_parse_json(column))
        writer = self._distributed(rows, row_count).write.partitionBy("day", "capture")
        for column in json_columns:  # a dictionary is useless: bodies are all different
            writer = writer.option(f"parquet.enable.dictionary#{column}.value", "false")
        writer.parquet(self._folder.spark(f"{self._stage}/{name}"))

    def _distributed(self, rows: DataFrame, row_count: int) -> DataFrame:
        """Distribute rows over the tasks that write them. Few tasks, as each writes a file for every capture that it
        has rows of, but one for each core if there are many rows. If captures have few rows each, and none has far more
        than its share, which one task would write alone, each capture goes to one task."""
        packets = [scan.packets for scan in self._scans]
        captures = max(1, len(packets))  # the last rows of a ring come without files
        tasks = 1 + row_count // ROWS_PER_TASK
        if 1 < tasks <= captures and max(packets) * tasks <= 2 * sum(packets):
            return rows.repartition(tasks, "capture")
        return rows.coalesce(min(tasks, max(self._cores, row_count // (ROWS_PER_TASK * captures))))

    def _commit(self) -> None:
        """Move the rows to the tables. `captures` comes last, as it makes them visible."""
        for name in PARTITION_TABLES:
            for partition in self._folder.partitions(f"{self._stage}/{name}"):
                self._folder.move(f"{self._stage}/{name}/{partition}", f"{name}/{partition}")
        self._captures().write.mode("append").parquet(self._folder.spark("captures"))

    def _captures(self) -> DataFrame:
        """Return the rows of `captures`. Files with packets also get the problems of all files together."""
        rows = [
            (
                scan.digest, scan.path, scan.size, scan.packets, scan.form, scan.first_ns, scan.earliest_ns,
                scan.latest_ns, scan.link_types, self._run_id,
                [
                    {"code": p.code, "severity": p.severity.value, "path": p.path, "message": p.message}
                    for p in scan.problems + (self.problems if scan.ranges else [])
                ],
            )
            for scan in self._scans
        ]  # fmt: skip
        return frame(self._spark, rows, ddl(BY_NAME["captures"])).coalesce(1)


def _staged_files(staged: DataFrame) -> list[StagedFile]:
    return [StagedFile(*row) for row in staged.collect()]
