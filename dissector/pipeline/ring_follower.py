"""Follows a ring of capture files into tables: a job of Spark's structured streaming that ingests files as they close.

A micro-batch is the files that were closed since the last one. Packets are numbered on over all micro-batches, each
partition goes on from its carry-over (`micro_batch`), and the rows are committed together with the new carry-over.
Tables equal those of one `ingest` of the same files, as soon as the last request has its response or its connection has
ended. That includes findings and their messages: rows of a connection are examined in order, observations of all
connections are aggregated in order up to the first pending request, and findings about a row that is in the tables
already update it there (`row_updates`).

What may differ, as it depends on what is learned after a row was written:
  * names that only a later message has (of a topic id, of the client's software), and what a response without a request
    is by inference: the row has what was known then;
  * `version-not-offered` if a server advertised its versions only afterwards, and `closed-in-flight` with it;
  * findings about a request whose response comes after the examination went past it: after too many other requests, too
    long after its connection was closed, or too long after the request itself. Retransmissions are not reported if more
    other rows of the partition lie between than a detector remembers;
  * problems of all files together (`captures.problems`) are reported at the end, and are not in the table.
A connection's row comes when it has ended, and an exchange when its response is there. Files that overlap in time are
merged if they come in one micro-batch, and are otherwise read one after the other. A file that begins more than
`LATE_NS` before what was read is read by itself, with a finding.

Invariants:
  * a micro-batch is in the tables, and its carry-over in place, when `committed` says so. Only renames lead there from
    the staging folder, and a restart after a crash does them again. So each row is there exactly once;
  * nothing of partitions, packets and state grows with what was read, but for 150 bytes a connection
    (`capture_session`). Observations are kept in files, for as long as the examination waits for a response.
"""

import contextlib
import pickle
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from dissector.capture.partition import Block
from dissector.capture_session.tally import CaptureTally
from dissector.core.batches import NEVER
from dissector.core.finding import Finding, Severity
from dissector.findings.framework.aggregation import IncrementalAggregation
from dissector.index.shared_state import SharedState
from dissector.pipeline import closed_files, source
from dissector.pipeline.arrow import frame
from dissector.pipeline.commit import COMMITTED, COMPLETE, FOLLOWER, STAGE, carry_over_folder, commit_staged
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.folder import Folder
from dissector.pipeline.ingest import IngestRun, ingest, ingested_digests, partition_tallies
from dissector.pipeline.micro_batch import CarryOver, read_shared_state, rows
from dissector.pipeline.observations import ORDER, apply_updates, findings_of, updates_of
from dissector.pipeline.origins import Origin
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.ring import QUIET_SECONDS, RingFile, ring_file
from dissector.pipeline.row_updates import WHERE, ExchangeUpdates, key_of_row, only_found, rewrite_findings
from dissector.pipeline.scan import scan_files
from dissector.pipeline.shuffled import LOCATIONS, by_partition, location_without_packets
from dissector.pipeline.staging import STAGED_TYPES, StagedFile, write_rows
from dissector.pipeline.table_rows import Cells
from dissector.pipeline.table_schemas import BY_NAME, FOUND, OBSERVATIONS, UPDATES
from dissector.transport.partitions import Partition

LATE_NS: Final = 1_000_000_000
"""Clocks and queues put packets around the end of a file out of order by less."""
WAITING: Final = "Waiting"
"""Prefix of a query's status message once it has looked for data: it waits for data, or for its next trigger."""
POLL: Final = 0.5
"""Seconds between two scans of the folder."""


@dataclass
class FollowState:
    """State of the follower after the last committed micro-batch."""

    parts: int
    batch: int = -1
    packets: int = 0
    latest_ns: int = 0
    origins: list[Origin] = field(default_factory=list)
    shared_states: dict[int, SharedState] = field(default_factory=dict)
    """By partition."""
    making: IncrementalAggregation = field(default_factory=IncrementalAggregation)
    """State of the cross-connection findings."""
    found: list[Cells] = field(default_factory=list)
    """Cross-connection findings about exchanges that are not in the tables yet."""
    begins: dict[str, int] = field(default_factory=dict)
    """Time of the first packet of each file that was read, by path."""


@dataclass
class MicroBatchReport:
    """What a micro-batch did."""

    files: int = 0
    packets: int = 0
    rows: int = 0
    seconds: float = 0.0
    behind: float = 0.0
    """Seconds from the newest packet until it was in the tables."""
    problems: list[Finding] = field(default_factory=list)


class Follower:
    """Follows one folder of capture files into the tables of another folder."""

    def __init__(
        self, spark: SparkSession, out: str, options: WriteOptions, parts: int,
        report: Callable[[MicroBatchReport], None],
    ) -> None:  # fmt: skip
        self._spark = spark
        self._out = out
        self._tables = Folder(out)
        self._folder = Path(out).absolute() / FOLLOWER
        self._options = options
        self._report = report
        self._spark.dataSource.register(source.PacketSource)
        self._folder.mkdir(parents=True, exist_ok=True)
        commit_staged(self._folder)
        self._state = self._committed() or FollowState(parts)
        self._is_busy = False

    def _committed(self) -> FollowState | None:
        path = self._folder / COMMITTED
        if not path.exists():
            return None
        state = pickle.loads(path.read_bytes())
        assert isinstance(state, FollowState)
        return state

    def run(self, folder: str, idle: float | None, quiet: float = QUIET_SECONDS) -> None:
        """Run until interrupted, or until no file has come for `idle` seconds: then pending rows are written as they
        are, and the ring has ended. Raises what a micro-batch raised."""
        self._spark.dataSource.register(closed_files.ClosedFilesSource)
        found = self._spark.readStream.format(closed_files.NAME).option("folder", str(Path(folder).absolute()))
        found = found.option("log", str(self._folder / "files")).option("quiet", str(quiet))
        stream = (
            found.load().writeStream.foreachBatch(self._take).trigger(processingTime=f"{int(POLL * 1000)} milliseconds")
        )
        query = stream.option("checkpointLocation", str(self._folder / "checkpoint")).start()
        moved, looked = time.monotonic(), False
        try:
            while not _has_ended(query):
                looked = looked or query.status["message"].startswith(WAITING)
                if not looked or self._is_busy or query.status["isDataAvailable"]:
                    moved = time.monotonic()
                elif idle is not None and time.monotonic() - moved >= idle:
                    break
        finally:
            with contextlib.suppress(KeyboardInterrupt):
                query.stop()
        if idle is not None:
            self._end()

    def _take(self, found: DataFrame, batch: int) -> None:
        """Process a micro-batch, unless it was committed before a crash."""
        if batch <= self._state.batch:
            return
        self._is_busy = True
        try:
            rows = sorted(found.collect(), key=lambda row: int(row.place))
            self._micro_batch([RingFile(row.path, row.size, row.changed_ns, row.inode) for row in rows], batch)
        finally:
            self._is_busy = False

    def _micro_batch(self, entries: list[RingFile], batch: int) -> None:
        began, report = time.monotonic(), MicroBatchReport()
        plans = self._new_captures(entries, report)
        late = [plan for plan in plans if plan.first_ns < self._state.latest_ns - LATE_NS]
        new = [plan for plan in plans if plan not in late]
        if late:  # first: after a crash they come again, and are in the tables already
            report.problems += [_late(plan) for plan in late]
            report.problems += ingest(self._spark, [plan.path for plan in late], self._out, self._options).problems
        run = MicroBatch(self._spark, self._tables, self._folder, batch, new, self._options, self._state)
        counts = run.all(self._state.parts)
        report.problems += run.problems
        self._state = run.state
        report.files, report.packets, report.rows = len(plans), sum(plan.packets for plan in plans), counts["exchanges"]
        report.seconds = time.monotonic() - began
        report.behind = max(0.0, time.time() - self._state.latest_ns / 1e9)
        self._report(report)

    def _new_captures(self, entries: list[RingFile], report: MicroBatchReport) -> list[FileScan]:
        """Return the captures that are not in the tables yet."""
        there = ingested_digests(self._spark, self._tables)
        plans = []
        for entry, plan in zip(entries, scan_files(self._spark, [entry.path for entry in entries]), strict=True):
            if ring_file(Path(entry.path)) != entry:  # it comes again once it is closed
                report.problems.append(_changed(entry))
                continue
            report.problems += plan.problems
            if plan.ranges and self._state.begins.get(plan.path) == plan.first_ns and plan.digest not in there:
                report.problems.append(_grown(plan))
            elif plan.ranges and plan.digest not in there:
                there.add(plan.digest)
                plans.append(plan)
        return plans

    def _end(self) -> None:
        """End the ring: write all pending rows and remove the follower's folder."""
        began, report = time.monotonic(), MicroBatchReport()
        last = MicroBatch(
            self._spark, self._tables, self._folder, self._state.batch + 1, [], self._options, self._state, is_last=True
        )
        report.rows = last.all(self._state.parts)["exchanges"]
        report.problems += last.problems
        shutil.rmtree(self._folder)
        report.seconds = time.monotonic() - began
        self._report(report)


def _has_ended(query: StreamingQuery) -> bool:
    """Whether a query has ended, `POLL` seconds later. Raises its error."""
    time.sleep(POLL)
    return not query.isActive and query.awaitTermination(1) is not False


class MicroBatch(IngestRun):
    """One micro-batch: a run of ingest that goes on from `state`. Its own `state` is the next one."""

    def __init__(
        self, spark: SparkSession, tables: Folder, folder: Path, batch: int, plans: list[FileScan],
        options: WriteOptions, state: FollowState, *, is_last: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(spark, tables, f"follow-{batch}", plans, options, lambda stage, done, total: None)
        self._stage = f"{FOLLOWER}/{STAGE}"
        self._at = folder / STAGE
        self._before = folder / carry_over_folder(state.batch)
        self._after = self._at / carry_over_folder(batch)
        self._is_last = is_last
        self._splits = [each._replace(first=each.first + state.packets) for each in self._splits]
        self._origins = [
            *state.origins, *(origin._replace(first=origin.first + state.packets) for origin in self._origins)
        ]  # fmt: skip
        self.state = FollowState(
            state.parts, batch, state.packets + sum(plan.packets for plan in plans),
            max([state.latest_ns, *(plan.latest_ns for plan in plans)]), self._origins, dict(state.shared_states),
            pickle.loads(pickle.dumps(state.making)), state.found,
            state.begins | {plan.path: plan.first_ns for plan in plans},
        )  # fmt: skip
        shutil.rmtree(self._at, ignore_errors=True)
        self._after.mkdir(parents=True)

    @property
    def _needs_shuffle(self) -> bool:
        """Always: carry-overs are processed even without new packets."""
        return True

    def _locations(self, parts: int) -> DataFrame:
        """Add a location without packets for each partition."""
        nothing = Block(-1, b"", pickle.dumps(CaptureTally()))
        empty = frame(self._spark, [location_without_packets(part, nothing) for part in range(parts)], LOCATIONS)
        return empty.union(super()._locations(parts)) if self._splits else empty

    def _shared_state(self, shuffled: DataFrame, parts: int) -> SharedState:
        packets_at, before, is_last = self._folder.spark(self._packets), str(self._before), self._is_last

        def learn(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for part, blocks in by_partition(some, packets_at):
                learned = pickle.dumps(
                    read_shared_state(blocks, Partition(part, parts), _carry_over(before, part), is_last=is_last)
                )
                yield pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32()), "state": pa.array([learned])})

        for row in shuffled.mapInArrow(learn, "part INT, state BINARY").collect():
            self.state.shared_states[row.part] = pickle.loads(row.state)
        return SharedState.merged(self.state.shared_states.values())

    def _dissect_partitions(self, shuffled: DataFrame, parts: int, shared_state: SharedState) -> DataFrame:
        arguments, now_ns = pickle.dumps((shared_state, self._origins, self._options)), self.state.latest_ns
        packets_at, rows_at = self._folder.spark(self._packets), self._folder.spark(self._rows)
        before = str(self._before)
        after = None if self._is_last else str(self._after)

        def dissect(some: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for part, blocks in by_partition(some, packets_at):
                put = None if after is None else _CarryOverFile(after, part)
                shared_state, origins, options = pickle.loads(arguments)
                made = rows(
                    blocks,
                    Partition(part, parts),
                    _carry_over(before, part),
                    shared_state,
                    origins,
                    options,
                    put,
                    now_ns,
                )
                for each in write_rows(made, rows_at):
                    yield each.batch

        return shuffled.mapInArrow(dissect, STAGED_TYPES)

    def _find(self, files: list[StagedFile]) -> list[StagedFile]:
        """Stage cross-connection findings about exchanges of this micro-batch. Those about written rows are kept for
        `_commit`."""
        changes = self._updates(files)
        found = [
            *map(dict, self.state.found),
            *findings_of(self._observations(files), self._origins, self.state.making.aggregate),
        ]
        changes += updates_of(self.state.making.take_revisions(), self._origins)
        changes = apply_updates(found, changes)
        self._changes = [each for each in changes if each["before"] is not None]
        exchanges = self._staged(BY_NAME["exchanges"], files)
        arriving = only_found(exchanges.select(*WHERE), found).collect() if exchanges is not None and found else []
        arriving_keys = {tuple(row) for row in arriving}
        staged = [(FOUND.name, each) for each in found if key_of_row(each) in arriving_keys]
        others = [each for each in found if key_of_row(each) not in arriving_keys]
        late = others + [each for each in changes if each["before"] is None]
        self._written = ExchangeUpdates(self._spark, self._at.parent.parent, late)
        self.state.found = [each for each in others if key_of_row(each) not in self._written.places]
        return list(write_rows(staged, self._folder.spark(self._rows)))

    def _updates(self, files: list[StagedFile]) -> list[Cells]:
        """Return the updates that partitions found for rows of earlier micro-batches."""
        updates = self._staged(UPDATES, files)
        return [] if updates is None else [row.asDict() for row in updates.collect()]

    def _observations(self, files: list[StagedFile]) -> Iterator[Cells]:
        """Yield observations in order, up to the first pending request. The next micro-batch gets the others."""
        found = self._staged(OBSERVATIONS, files)
        if (self._before / OBSERVATIONS.name).exists():
            before = self._read(OBSERVATIONS, [str(self._before / OBSERVATIONS.name)])
            found = before if found is None else found.union(before)
        if found is None:
            return
        end = min((part.oldest_pending for part in partition_tallies(files)), default=NEVER)
        if end != NEVER:
            found.where(f.col("packet") >= end).write.parquet(str(self._after / OBSERVATIONS.name))
        for row in found.where(f.col("packet") < end).orderBy(*ORDER).toLocalIterator():
            yield row.asDict()

    def _commit(self) -> None:
        """Complete the staging folder and commit it. After `COMPLETE` a crash no longer drops it."""
        rewrite_findings(self._at.parent.parent, self._at, self._changes)
        self._written.rewrite(self._at)
        if self._plans:
            self._captures().write.parquet(self._folder.spark(f"{self._stage}/captures"))
        shutil.rmtree(self._at / "rows", ignore_errors=True)
        (self._at / COMMITTED).write_bytes(pickle.dumps(self.state))
        (self._at / COMPLETE).touch()
        commit_staged(self._at.parent)


def _carry_over(folder: str, part: int) -> CarryOver:
    path = Path(folder) / str(part)
    return CarryOver.from_bytes(path.read_bytes()) if path.exists() else CarryOver()


class _CarryOverFile:
    """Writes the carry-over of a partition. The file is whole, however many attempts of the task write it."""

    def __init__(self, folder: str, part: int) -> None:
        self._path = Path(folder) / str(part)

    def __call__(self, carry_over: CarryOver) -> None:
        fresh = self._path.with_suffix(f".{time.monotonic_ns()}")
        fresh.write_bytes(carry_over.to_bytes())
        fresh.replace(self._path)


def _late(plan: FileScan) -> Finding:
    words = f"{plan.path}: came after files with later packets: read by itself"
    return Finding("late-file", Severity.WARNING, words)


def _grown(plan: FileScan) -> Finding:
    words = f"{plan.path}: grew after it seemed closed: later packets are not in the tables"
    return Finding("file-grew", Severity.WARNING, words)


def _changed(entry: RingFile) -> Finding:
    words = f"{entry.path}: overwritten before it was read: its packets are not in the tables"
    return Finding("file-overwritten", Severity.WARNING, words)
