"""One micro-batch of a ring follower: a run of ingest that continues from the state of the one before.

A micro-batch has ended when `state` says so. Each table takes its rows once, as their commit has the number of the
micro-batch: after a crash it is run again, from the same state and with the same files, and what was committed is left
out. So each row is there exactly once.
"""

import pickle
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from dissector.capture.partition import Block
from dissector.capture_session.tally import CaptureTally
from dissector.core.batches import NEVER
from dissector.index.shared_state import SharedState
from dissector.pipeline.commit import commit, partition_tallies
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.follow_state import (
    FOLLOWER,
    WORK,
    FollowState,
    carry_over_folder,
    read_carry_over,
    write_carry_over,
    write_state,
)  # fmt: skip
from dissector.pipeline.frames import frame
from dissector.pipeline.ingest_on_spark import IngestRun
from dissector.pipeline.micro_batch import read_shared_state, rows
from dissector.pipeline.observations import (
    MOST_HERE,
    ORDER,
    findings_of,
    in_order,
    observation_files,
    read_observations,
    revisions_of,
)  # fmt: skip
from dissector.pipeline.origins import FileOrigins
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.shuffled import LOCATIONS, by_partition, location_without_packets
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.tables.data_files import DATA_FILE_TYPES, DataFile, write_rows
from dissector.tables.row_batches import Cells
from dissector.tables.schemas import OBSERVATIONS, ddl
from dissector.tables.storage import Storage
from dissector.transport.partitions import Partition


class MicroBatchRun(IngestRun):
    """Ingests one micro-batch, from the `state` after the one before. Its attribute `state` is the state after it."""

    def __init__(
        self, spark: SparkSession, storage: Storage, folder: Path, batch: int, scans: list[FileScan],
        options: WriteOptions, state: FollowState, secrets: TlsSecrets, *, is_last: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(spark, storage, state.epoch, WORK, scans, options, _silent, secrets, state.parts)
        self._state_folder = folder
        self._before = carry_over_folder(folder, state.batch)
        self._after = carry_over_folder(folder, batch)
        self._is_last = is_last
        self._splits = [split._replace(first=split.first + state.packets) for split in self._splits]
        new_origins = (origin._replace(first=origin.first + state.packets) for origin in self._origins.ranges)
        # Rows of merged files go to the first one: where packets of earlier micro-batches came from is not kept.
        self._origins = FileOrigins([*state.origins, *new_origins], [])
        self.state = FollowState(
            state.parts, state.epoch, batch, state.packets + sum(scan.packets for scan in scans),
            max([state.latest_ns, *(scan.latest_ns for scan in scans)]), self._origins.ranges,
            dict(state.shared_states), pickle.loads(pickle.dumps(state.aggregation)),
            state.begins | {scan.path: scan.first_ns for scan in scans},
            state.digests.union(digest for scan in scans for digest in scan.digests), has_carry_overs=not is_last,
        )  # fmt: skip
        shutil.rmtree(self._after, ignore_errors=True)
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
        packets_at, before, is_last = self._storage.at(self._packets), self._before, self._is_last
        secrets, decode_as = self._sent.value, self._options.decode_as

        def read_states(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for part, blocks in by_partition(locations, packets_at):
                carry_over = read_carry_over(before, part)
                state = pickle.dumps(
                    read_shared_state(blocks, Partition(part, parts), carry_over, secrets(), decode_as, is_last=is_last)
                )
                yield pa.RecordBatch.from_pydict({"part": pa.array([part], pa.int32()), "state": pa.array([state])})

        for row in shuffled.mapInArrow(read_states, "part INT, state BINARY").collect():
            self.state.shared_states[row.part] = pickle.loads(row.state)
        return SharedState.merged(self.state.shared_states.values())

    def _dissect_partitions(self, shuffled: DataFrame, parts: int, shared_state: SharedState) -> DataFrame:
        arguments, now_ns = pickle.dumps((shared_state, self._origins, self._options)), self.state.latest_ns
        packets_at, output, secrets = self._storage.at(self._packets), self._output, self._sent.value
        before, after = self._before, None if self._is_last else self._after

        def dissect(locations: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for part, blocks in by_partition(locations, packets_at):
                save = None if after is None else partial(write_carry_over, after, part)
                partition, carry_over = Partition(part, parts), read_carry_over(before, part)
                shared_state, origins, options = pickle.loads(arguments)
                final_rows = rows(
                    blocks, partition, carry_over, shared_state, origins, options, save, now_ns, secrets()
                )
                for file in write_rows(final_rows, output):
                    yield file.batch

        return shuffled.mapInArrow(dissect, DATA_FILE_TYPES)

    def _write_findings(self, files: list[DataFile]) -> list[DataFile]:
        """Write cross-connection findings of this micro-batch, and new words of earlier ones."""
        found = findings_of(self._ordered_observations(files), self._origins, self.state.aggregation.aggregate)
        revised = revisions_of(self.state.aggregation.take_revisions(), self._origins)
        return list(write_rows(chain(list(found), revised), self._output))

    def _ordered_observations(self, files: list[DataFile]) -> Iterator[Cells]:
        """Yield observations in order, up to the first pending request. The next micro-batch gets the others."""
        end = min((part.oldest_pending for part in partition_tallies(files)), default=NEVER)
        staged = observation_files(files)
        before, after = (folder / OBSERVATIONS.name for folder in (self._before, self._after))
        count = sum(file.rows for file in staged)
        count += sum(pq.read_metadata(each).num_rows for each in before.glob("*.parquet"))
        if count <= MOST_HERE:
            uris = [self._storage.at(file.path) for file in staged]
            yield from _ordered_here([*uris, *map(str, before.glob("*.parquet"))], end, after)
            return
        observations = self._observations(staged) if staged else None
        if before.exists():
            kept = self._spark.read.schema(ddl(OBSERVATIONS)).parquet(str(before))
            observations = kept if observations is None else observations.union(kept)
        assert observations is not None
        if end != NEVER:
            observations.where(f.col("packet") >= end).write.parquet(str(after))
        for row in observations.where(f.col("packet") < end).orderBy(*ORDER).toLocalIterator():
            yield row.asDict()

    def _commit(self, files: list[DataFile]) -> None:
        """Commit the rows, the captures, and then the state: a crash before that runs the micro-batch again."""
        transaction = f"{FOLLOWER}-{self._output.epoch}", self.state.batch
        commit(self._storage.uri, files, self._scans, self._output.epoch, self._options, self.problems, transaction)
        write_state(self._state_folder, self.state)
        shutil.rmtree(self._before, ignore_errors=True)
        self._storage.remove(self._output.folder)


def _ordered_here(uris: Sequence[str], end: int, after: Path) -> Iterator[Cells]:
    """Yield the few observations of files in order, up to a packet, and write the others to a folder: jobs of Spark
    would take seconds."""
    found = read_observations(uris)
    later = found.filter(pc.field("packet") >= end)
    if len(later):
        after.mkdir()
        pq.write_table(later, after / "pending.parquet")
    yield from in_order(found.filter(pc.field("packet") < end))


def _silent(stage: str, done: int, total: int) -> None:
    """Report no progress: a line for each micro-batch does."""
