"""The ingest job: captures to tables.

Invariants:
  * a capture is in the tables when `captures` has its row, which is written last: nothing of a run that was killed is
    visible, and the next run removes what it left;
  * a capture that is in the tables is not read again, whatever its file is called;
  * if a file has changed since it was scanned, the run starts again without it.
"""

import pickle
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.core.finding import Finding
from dissector.core.text import counted
from dissector.index.shared_state import SharedState
from dissector.pipeline import commit, cross_connection, source
from dissector.pipeline.arrow import frame
from dissector.pipeline.commit import FOLLOWER
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.folder import Folder, FolderError
from dissector.pipeline.observations import findings_of
from dissector.pipeline.origins import SHORT, origins
from dissector.pipeline.partition_rows import WriteOptions, read_shared_state, rows
from dissector.pipeline.scan import BackgroundScan, cores, scan_files
from dissector.pipeline.shuffled import by_partition
from dissector.pipeline.splits import FILE_CHANGED, splits
from dissector.pipeline.stage_progress import Report, stage
from dissector.pipeline.staging import STAGED_TYPES, StagedFile, write_rows
from dissector.pipeline.table_schemas import (
    BY_NAME,
    FOUND,
    OBSERVATIONS,
    PARTITION_TABLES,
    PARTITIONS,
    UNCHANGED_TABLES,
    TableSchema,
    ddl,
)
from dissector.pipeline.whole_files import of_file
from dissector.transport.partitions import Partition

PARTITION_BYTES: Final = 64 << 20
"""Approximate bytes of blocks for a partition: a task of half a minute, quickly retried, with a small spool. A
connection stays whole, so a partition may be larger; its memory hardly depends on it."""
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
    there = ingested_digests(spark, folder)
    _remove_leftovers(folder, there)
    with stage(spark, f"scanning {counted(len(paths), 'file')}", report):
        plans = scan_files(spark, paths, ahead)
    outcome, new = IngestResult(), []
    for each in plans:
        if each.digest in there:
            outcome.already_ingested.append(each.path)
            continue
        outcome.problems += each.problems
        if each.digest:
            there.add(each.digest)
            new.append(each)
    while new:
        run = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
        made = IngestRun(spark, folder, run, new, options, report)
        try:
            outcome.counts = made.all(parts)
        except FilesChangedError as changed:
            outcome.problems += changed.findings
            new = [each for each in new if each.path not in {finding.path for finding in changed.findings}]
            folder.remove(STAGING)
            continue
        folder.remove(STAGING)
        outcome.problems += made.problems
        read = [each for each in new if not each.unread]
        outcome.read, outcome.packets = len(read), sum(each.packets for each in read)
        break
    return outcome


@contextmanager
def remove_staging_afterwards(out: str) -> Iterator[None]:
    """Remove the staging folder of an interrupted run. Exit this context after Spark has ended: cancelled tasks go on
    writing for a moment."""
    try:
        yield
    finally:
        with suppress(FolderError):
            Folder(out).remove(STAGING)


def ingested_digests(spark: SparkSession, folder: Folder) -> set[str]:
    """Return the digests of the captures that are in the tables."""
    if not folder.has("captures"):
        return set()
    read = spark.read.schema(ddl(BY_NAME["captures"]))  # a killed run may leave a folder without files
    return {row.digest for row in read.parquet(folder.spark("captures")).select("digest").collect()}


def _remove_leftovers(folder: Folder, there: set[str]) -> None:
    """Remove the staging folder of killed runs, and partitions of captures that have no row in `captures`. Keep what a
    follower was committing: it will finish the commit."""
    folder.remove(STAGING)
    if folder.has(f"{FOLLOWER}/{commit.STAGE}"):
        return
    called = {f"capture={digest[:SHORT]}" for digest in there}
    for name in PARTITION_TABLES:
        for partition in folder.partitions(name):
            if partition.partition("/")[2] not in called:
                folder.remove(f"{name}/{partition}")


def _total_tally(files: Sequence[StagedFile]) -> CaptureTally:
    """Return the tally of what all partitions ignored."""
    parts = partition_tallies(files)
    return CaptureTally.merged([each for part in parts for each in part.shuffled], [part.tally for part in parts])


def partition_tallies(files: Sequence[StagedFile]) -> list[PartitionTally]:
    """Return the tallies of partitions."""
    return [pickle.loads(each.tally) for each in files if each.tally is not None]


def _routing_findings(shuffled: DataFrame) -> list[Finding]:
    """Return the findings of routing, which are in blocks without packets."""
    rows = shuffled.where("tally IS NOT NULL").select("tally").collect()
    return [finding for row in rows for finding in pickle.loads(row.tally).file_problems]


def _check_unchanged(findings: Iterable[Finding]) -> None:
    """Raise `FilesChangedError` if there are findings about changed files."""
    if changed := {finding.path: finding for finding in findings if finding.code == FILE_CHANGED}:
        raise FilesChangedError(list(changed.values()))


class IngestRun:
    """One run of ingest."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Folder,
        run: str,
        plans: list[FileScan],
        options: WriteOptions,
        report: Report,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._run = run
        self._stage = f"{STAGING}/{run}"
        self._plans = plans
        self._options = options
        self._report = report
        self._splits = splits(plans)
        self._origins = origins(plans, self._splits)
        self.problems: list[Finding] = []
        """Problems of all files together."""

    @property
    def _packets(self) -> str:
        """The folder of shuffled packets."""
        return f"{self._stage}/packets"

    @property
    def _rows(self) -> str:
        """The folder of rows as tasks write them."""
        return f"{self._stage}/rows"

    def all(self, parts: int | None) -> dict[str, int]:
        """Ingest everything, in `parts` partitions or as many as are useful. Return the number of rows by table."""
        parts = parts or self._default_parts()
        files = self._dissect(parts)
        self.problems = _total_tally(files).problems
        _check_unchanged(self.problems)
        with stage(self._spark, "aggregating findings", self._report):
            files += self._find(files)
        counts = Counter[str]()
        for each in files:
            counts["findings" if each.table == FOUND.name else each.table] += each.rows
        table_counts = {name: counts[name] for name in PARTITION_TABLES}
        with stage(self._spark, f"writing {counted(sum(table_counts.values()), 'row')}", self._report):
            for name in PARTITION_TABLES:
                self._write_table(name, files, table_counts[name])
            self._commit()
        return table_counts

    def _default_parts(self) -> int:
        """Return the number of partitions to use: the same for each core, and none too large."""
        size = sum(each.block_bytes for each in self._plans)
        return self._cores * max(2, -(-size // (self._cores * PARTITION_BYTES)))

    @cached_property
    def _cores(self) -> int:
        return cores(self._spark)

    def _dissect(self, parts: int) -> list[StagedFile]:
        """Dissect all packets. Return the files that tasks wrote."""
        alone = [each for each in self._plans if each.stands_alone]
        if not self._needs_shuffle:
            with stage(self._spark, f"dissecting {counted(len(alone), 'file')}", self._report):
                return [StagedFile(*row) for row in self._dissect_files(alone).collect()] if alone else []
        shuffled = self._shuffled_locations(parts)
        try:
            packets = sum(each.packets for each in self._plans)
            with stage(self._spark, f"shuffling {counted(packets, 'packet')}", self._report):
                _check_unchanged(_routing_findings(shuffled))
            with stage(self._spark, f"sharing state of {counted(parts, 'partition')}", self._report):
                shared_state = self._shared_state(shuffled, parts)
            with stage(self._spark, f"dissecting {counted(parts, 'partition')}", self._report):
                made = self._dissect_partitions(shuffled, parts, shared_state)
                made = self._dissect_files(alone).union(made) if alone else made
                return [StagedFile(*row) for row in made.collect()]
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
        places = self._locations(parts)
        return places.repartitionById(parts, f.col("part")).sortWithinPartitions("part", "first").persist()

    def _locations(self, parts: int) -> DataFrame:
        """Return the locations of blocks, in the order in which tasks write them."""
        read = self._spark.read.format(source.NAME)
        read = read.option("splits", source.encode_splits(self._splits)).option("parts", str(parts))
        return read.option("folder", self._folder.spark(self._packets)).load()

    def _shared_state(self, shuffled: DataFrame, parts: int) -> SharedState:
        packets_at = self._folder.spark(self._packets)

        def learn(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in by_partition(some, packets_at):
                found = pickle.dumps(read_shared_state(blocks, Partition(number, parts)))
                yield pa.RecordBatch.from_pydict({"state": pa.array([found], pa.binary())})

        found = shuffled.mapInArrow(learn, "state BINARY").collect()
        return SharedState.merged(pickle.loads(row.state) for row in found)

    def _dissect_partitions(self, shuffled: DataFrame, parts: int, shared_state: SharedState) -> DataFrame:
        arguments = pickle.dumps((shared_state, self._origins, self._options))
        packets_at, rows_at = self._folder.spark(self._packets), self._folder.spark(self._rows)

        def dissect(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number, blocks in by_partition(some, packets_at):
                for each in write_rows(rows(blocks, Partition(number, parts), *pickle.loads(arguments)), rows_at):
                    yield each.batch

        return shuffled.mapInArrow(dissect, STAGED_TYPES)

    def _dissect_files(self, alone: list[FileScan]) -> DataFrame:
        """Dissect files that are read one by one: a task each."""
        options, rows_at = self._options, self._folder.spark(self._rows)

        def read(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in some:
                for one in batch.column(1).to_pylist():
                    for each in write_rows(of_file(pickle.loads(one), options), rows_at):
                        yield each.batch

        numbered = [(number, pickle.dumps(each)) for number, each in enumerate(alone)]
        files = frame(self._spark, numbered, "number INT, plan BINARY")
        return files.repartitionById(len(numbered), f.col("number")).mapInArrow(read, STAGED_TYPES)

    def _find(self, files: list[StagedFile]) -> list[StagedFile]:
        """Stage the cross-connection findings, from the observations of all partitions."""
        observations = self._staged(OBSERVATIONS, files)
        if observations is None:
            return []
        rows_at, numbering = self._folder.spark(self._rows), pickle.dumps(self._origins)

        def find(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            cells = (cells for batch in some for cells in batch.to_pylist())
            found = ((FOUND.name, each) for each in findings_of(cells, pickle.loads(numbering)))
            for each in write_rows(found, rows_at):
                yield each.batch

        tasks = 1 + sum(each.rows for each in files if each.table == OBSERVATIONS.name) // OBSERVATIONS_PER_TASK
        made = cross_connection.partitioned(observations, tasks).mapInArrow(find, STAGED_TYPES)
        return [StagedFile(*row) for row in made.collect()]

    def _staged(self, table: TableSchema, files: list[StagedFile]) -> DataFrame | None:
        """Return the staged rows of a table; None if there are none."""
        paths = [self._folder.spark(f"{self._rows}/{each.path}") for each in files if each.table == table.name]
        return self._read(table, paths) if paths else None

    def _read(self, table: TableSchema, paths: list[str]) -> DataFrame:
        columns = ", ".join(f"{each.name} {each.type}" for each in PARTITIONS)
        return self._spark.read.schema(f"{columns}, {ddl(table, before=True)}").parquet(*paths)

    def _rows_with_findings(self, table: TableSchema, files: list[StagedFile]) -> DataFrame | None:
        """Return the staged rows of a table, with cross-connection findings."""
        made, found = self._staged(table, files), self._staged(FOUND, files)
        if found is None or table.name not in ("exchanges", "findings"):
            return made
        exchanges = self._staged(BY_NAME["exchanges"], files)
        assert exchanges is not None, "every cross-connection finding is about an exchange"
        if table.name == "exchanges":
            return cross_connection.with_found(exchanges, found)
        findings = cross_connection.finding_rows(found, exchanges)
        return findings if made is None else made.unionByName(findings)

    def _write_table(self, name: str, files: list[StagedFile], rows: int) -> None:
        """Write the rows of one table to the folder from which they are committed."""
        table = BY_NAME[name]
        if name in UNCHANGED_TABLES:
            for each in files:
                if each.table == name:
                    self._folder.move(f"{self._rows}/{each.path}", f"{self._stage}/{each.path}")
            return
        made = self._rows_with_findings(table, files)
        if made is None:
            return
        for column in table.columns:
            if column.of_json:
                made = made.withColumn(column.name, f.try_parse_json(column.name))
        to = self._distributed(made, rows).write.partitionBy("day", "capture")
        for column in table.columns:
            if column.of_json:  # a dictionary is useless: bodies are all different
                to = to.option(f"parquet.enable.dictionary#{column.name}.value", "false")
        to.parquet(self._folder.spark(f"{self._stage}/{name}"))

    def _distributed(self, made: DataFrame, rows: int) -> DataFrame:
        """Distribute rows over the tasks that write them. Few tasks, as each writes a file for every capture that it
        has rows of, but one for each core if there are many rows. If captures have few rows each, and none has far more
        than its share, which one task would write alone, each capture goes to one task."""
        packets = [each.packets for each in self._plans]
        captures = max(1, len(packets))  # the last rows of a ring come without files
        tasks = 1 + rows // ROWS_PER_TASK
        if 1 < tasks <= captures and max(packets) * tasks <= 2 * sum(packets):
            return made.repartition(tasks, "capture")
        return made.coalesce(min(tasks, max(self._cores, rows // (ROWS_PER_TASK * captures))))

    def _commit(self) -> None:
        """Move the rows to the tables. `captures` comes last, as it makes them visible."""
        for name in PARTITION_TABLES:
            for partition in self._folder.partitions(f"{self._stage}/{name}"):
                self._folder.move(f"{self._stage}/{name}/{partition}", f"{name}/{partition}")
        self._captures().write.mode("append").parquet(self._folder.spark("captures"))

    def _shared_problems(self, of: FileScan) -> list[Finding]:
        """Return the problems of all files together, for a file with packets."""
        return self.problems if of.ranges else []

    def _captures(self) -> DataFrame:
        rows = [
            (
                each.digest, each.path, each.size, each.packets, each.form, each.first_ns, each.earliest_ns,
                each.latest_ns, each.link_types, self._run,
                [
                    {"code": p.code, "severity": p.severity.value, "path": p.path, "message": p.message}
                    for p in each.problems + self._shared_problems(each)
                ],
            )
            for each in self._plans
        ]  # fmt: skip
        return frame(self._spark, rows, ddl(BY_NAME["captures"])).coalesce(1)
