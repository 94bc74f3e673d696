"""One micro-batch of a ring follower: a run of ingest that continues from the state of the one before.

A micro-batch is in the tables, and its carry-over in place, when `committed` says so. Only renames lead there from the
staging folder, and a restart after a crash does them again. So each row is there exactly once.
"""

import pickle
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.capture.partition import Block
from dissector.capture_session.tally import CaptureTally
from dissector.core.batches import NEVER
from dissector.findings.framework.aggregation import IncrementalAggregation
from dissector.index.shared_state import SharedState
from dissector.pipeline.arrow import frame
from dissector.pipeline.commit import COMMITTED, COMPLETE, FOLLOWER, STAGE, carry_over_folder, commit_staged
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.folder import Folder
from dissector.pipeline.ingest_run import IngestRun, partition_tallies
from dissector.pipeline.micro_batch import CarryOver, read_shared_state, rows
from dissector.pipeline.observations import ORDER, apply_updates, findings_of, updates_of
from dissector.pipeline.origins import Origin
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.row_updates import WHERE, ExchangeUpdates, key_of_row, only_found, rewrite_findings
from dissector.pipeline.shuffled import LOCATIONS, by_partition, location_without_packets
from dissector.pipeline.staging import STAGED_TYPES, StagedFile, write_rows
from dissector.pipeline.table_rows import Cells
from dissector.pipeline.table_schemas import BY_NAME, FOUND, OBSERVATIONS, UPDATES
from dissector.transport.partitions import Partition


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
    aggregation: IncrementalAggregation = field(default_factory=IncrementalAggregation)
    """State of the cross-connection findings."""
    found: list[Cells] = field(default_factory=list)
    """Cross-connection findings about exchanges that are not in the tables yet."""
    begins: dict[str, int] = field(default_factory=dict)
    """Time of the first packet of each file that was read, by path."""


class MicroBatchRun(IngestRun):
    """Ingests one micro-batch, from the `state` after the one before. Its attribute `state` is the state after it."""

    def __init__(
        self, spark: SparkSession, tables: Folder, folder: Path, batch: int, scans: list[FileScan],
        options: WriteOptions, state: FollowState, *, is_last: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(spark, tables, f"follow-{batch}", scans, options, lambda stage, done, total: None)
        self._stage = f"{FOLLOWER}/{STAGE}"
        self._tables = folder.parent
        self._stage_path = folder / STAGE
        self._before = folder / carry_over_folder(state.batch)
        self._after = self._stage_path / carry_over_folder(batch)
        self._is_last = is_last
        self._splits = [split._replace(first=split.first + state.packets) for split in self._splits]
        new_origins = (origin._replace(first=origin.first + state.packets) for origin in self._origins)
        self._origins = [*state.origins, *new_origins]
        self.state = FollowState(
            state.parts, batch, state.packets + sum(scan.packets for scan in scans),
            max([state.latest_ns, *(scan.latest_ns for scan in scans)]), self._origins, dict(state.shared_states),
            pickle.loads(pickle.dumps(state.aggregation)), state.found,
            state.begins | {scan.path: scan.first_ns for scan in scans},
        )  # fmt: skip
        shutil.rmtree(self._stage_path, ignore_errors=True)
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

        def read_states(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for part, blocks in by_partition(locations, packets_at):
                carry_over = _read_carry_over(before, part)
                state = pickle.dumps(read_shared_state(blocks, Partition(part, parts), carry_over, is_last=is_last))
                yield pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32()), "state": pa.array([state])})

        for row in shuffled.mapInArrow(read_states, "part INT, state BINARY").collect():
            self.state.shared_states[row.part] = pickle.loads(row.state)
        return SharedState.merged(self.state.shared_states.values())

    def _dissect_partitions(self, shuffled: DataFrame, parts: int, shared_state: SharedState) -> DataFrame:
        arguments, now_ns = pickle.dumps((shared_state, self._origins, self._options)), self.state.latest_ns
        packets_at, rows_at = self._folder.spark(self._packets), self._folder.spark(self._rows)
        before, after = str(self._before), None if self._is_last else str(self._after)

        def dissect(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for part, blocks in by_partition(locations, packets_at):
                save = None if after is None else _CarryOverFile(after, part)
                partition, carry_over = Partition(part, parts), _read_carry_over(before, part)
                shared_state, origins, options = pickle.loads(arguments)
                final_rows = rows(blocks, partition, carry_over, shared_state, origins, options, save, now_ns)
                for file in write_rows(final_rows, rows_at):
                    yield file.batch

        return shuffled.mapInArrow(dissect, STAGED_TYPES)

    def _stage_findings(self, files: list[StagedFile]) -> list[StagedFile]:
        """Stage cross-connection findings about exchanges of this micro-batch. Those about written rows are kept for
        `_commit`."""
        updates = self._partition_updates(files)
        found = [
            *map(dict, self.state.found),
            *findings_of(self._observations(files), self._origins, self.state.aggregation.aggregate),
        ]
        updates += updates_of(self.state.aggregation.take_revisions(), self._origins)
        updates = apply_updates(found, updates)
        self._message_updates = [update for update in updates if update["before"] is not None]
        exchanges = self._staged(BY_NAME["exchanges"], files)
        arriving = only_found(exchanges.select(*WHERE), found).collect() if exchanges is not None and found else []
        arriving_keys = {tuple(row) for row in arriving}
        staged = [(FOUND.name, finding) for finding in found if key_of_row(finding) in arriving_keys]
        others = [finding for finding in found if key_of_row(finding) not in arriving_keys]
        new_findings = others + [update for update in updates if update["before"] is None]
        self._exchange_updates = ExchangeUpdates(self._spark, self._tables, new_findings)
        self.state.found = [each for each in others if key_of_row(each) not in self._exchange_updates.keys]
        return list(write_rows(staged, self._folder.spark(self._rows)))

    def _partition_updates(self, files: list[StagedFile]) -> list[Cells]:
        """Return the updates that partitions found for rows of earlier micro-batches."""
        updates = self._staged(UPDATES, files)
        return [] if updates is None else [row.asDict() for row in updates.collect()]

    def _observations(self, files: list[StagedFile]) -> Iterator[Cells]:
        """Yield observations in order, up to the first pending request. The next micro-batch gets the others."""
        observations = self._staged(OBSERVATIONS, files)
        if (self._before / OBSERVATIONS.name).exists():
            before = self._read(OBSERVATIONS, [str(self._before / OBSERVATIONS.name)])
            observations = before if observations is None else observations.union(before)
        if observations is None:
            return
        end = min((part.oldest_pending for part in partition_tallies(files)), default=NEVER)
        if end != NEVER:
            observations.where(f.col("packet") >= end).write.parquet(str(self._after / OBSERVATIONS.name))
        for row in observations.where(f.col("packet") < end).orderBy(*ORDER).toLocalIterator():
            yield row.asDict()

    def _commit(self) -> None:
        """Complete the staging folder and commit it. After `COMPLETE` a crash no longer drops it."""
        rewrite_findings(self._tables, self._stage_path, self._message_updates)
        self._exchange_updates.rewrite(self._stage_path)
        if self._scans:
            self._captures().write.parquet(self._folder.spark(f"{self._stage}/captures"))
        shutil.rmtree(self._stage_path / "rows", ignore_errors=True)
        (self._stage_path / COMMITTED).write_bytes(pickle.dumps(self.state))
        (self._stage_path / COMPLETE).touch()
        commit_staged(self._stage_path.parent)


def _read_carry_over(folder: str, part: int) -> CarryOver:
    path = Path(folder) / str(part)
    return CarryOver.from_bytes(path.read_bytes()) if path.exists() else CarryOver()


class _CarryOverFile:
    """Writes the carry-over of a partition. The file is complete, however many attempts of the task write it."""

    def __init__(self, folder: str, part: int) -> None:
        self._path = Path(folder) / str(part)

    def __call__(self, carry_over: CarryOver) -> None:
        temporary = self._path.with_suffix(f".{time.monotonic_ns()}")
        temporary.write_bytes(carry_over.to_bytes())
        temporary.replace(self._path)
