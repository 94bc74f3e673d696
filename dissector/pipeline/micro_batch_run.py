"""One micro-batch of a ring follower: a run of ingest that continues from the state of the one before.

A micro-batch has ended when `state` says so. Each table takes its rows once, as their commit has the number of the
micro-batch: after a crash it is run again, from the same state and with the same files, and what was committed is left
out. So each row is there exactly once.
"""

import pickle
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from dissector.core.batches import NEVER
from dissector.pipeline.commit import commit, partition_tallies, rows_by_table, total_tally
from dissector.pipeline.file_scan import FileScan
from dissector.pipeline.follow_state import FOLLOWER, WORK, FollowState, carry_over_folder, write_state
from dissector.pipeline.ingest import IngestJob
from dissector.pipeline.micro_batch import MicroBatchJob
from dissector.pipeline.observations import findings_of, in_order, observation_files, read_observations, revisions_of
from dissector.pipeline.origins import FileOrigins
from dissector.pipeline.partition_rows import WriteOptions
from dissector.pipeline.splits import check_unchanged
from dissector.pipeline.tls_secrets import TlsSecrets
from dissector.pipeline.worker_processes import ALL_PACKETS, Workers, known_by_itself
from dissector.tables.data_files import DataFile, write_rows
from dissector.tables.row_batches import Cells
from dissector.tables.schemas import OBSERVATIONS
from dissector.tables.storage import Storage


class MicroBatchRun(IngestJob):
    """Ingests one micro-batch, from the `state` after the one before: in this process, or a partition in each of the
    `workers`. Its attribute `state` is the state after it."""

    def __init__(
        self, storage: Storage, folder: Path, batch: int, scans: list[FileScan], options: WriteOptions,
        state: FollowState, secrets: TlsSecrets, workers: Workers | None, *, is_last: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(storage, state.epoch, WORK, scans, options, lambda *_: None, secrets, state.parts)
        self._state_folder = folder
        self._before = carry_over_folder(folder, state.batch)
        self._after = carry_over_folder(folder, batch)
        self._workers = workers
        self._is_last = is_last
        self.files: list[DataFile] = []
        """Those that it has written."""
        self._splits = [split._replace(first=split.first + state.packets) for split in self._splits]
        new_origins = (origin._replace(first=origin.first + state.packets) for origin in self._origins.ranges)
        # Rows of merged files go to the first one: where packets of earlier micro-batches came from is not kept.
        self._origins = FileOrigins([*state.origins, *new_origins], [])
        self.state = FollowState(
            state.parts, state.epoch, batch, state.packets + sum(scan.packets for scan in scans),
            max([state.latest_ns, *(scan.latest_ns for scan in scans)]), self._origins.ranges,
            pickle.loads(pickle.dumps(state.aggregation)),
            state.begins | {scan.path: scan.first_ns for scan in scans},
            state.digests.union(digest for scan in scans for digest in scan.digests), has_carry_overs=not is_last,
        )  # fmt: skip
        shutil.rmtree(self._after, ignore_errors=True)
        self._after.mkdir(parents=True)

    def execute(self) -> dict[str, int]:
        """Ingest everything. Return the number of rows by table. Raises `FilesChangedError`."""
        job = MicroBatchJob(
            self._splits, self._origins, self._options, self._output, self._secrets.text, self._before,
            None if self._is_last else self._after, self.state.latest_ns,
        )  # fmt: skip
        if self._workers is not None:
            files = self._workers.dissect(job)
        else:
            files = list(write_rows(job.rows(known_by_itself, ALL_PACKETS), self._output))
        self.problems = self._secrets.problems(total_tally(files), self._scans)
        check_unchanged(self.problems)
        files += self._findings(files)
        transaction = f"{FOLLOWER}-{self._output.epoch}", self.state.batch
        commit(
            self._storage.uri, files, self._scans, self._output.epoch, self._options, self.problems, self._origins,
            transaction,
        )  # fmt: skip
        write_state(self._state_folder, self.state)
        self.files = files
        shutil.rmtree(self._before, ignore_errors=True)
        self._storage.remove(self._output.folder)
        return rows_by_table(files)

    def _findings(self, files: Sequence[DataFile]) -> Iterator[DataFile]:
        """Write cross-connection findings of this micro-batch, and new words of earlier ones."""
        found = findings_of(self._ordered_observations(files), self._origins, self.state.aggregation.aggregate)
        revised = revisions_of(self.state.aggregation.take_revisions(), self._origins)
        return write_rows(chain(list(found), revised), self._output)

    def _ordered_observations(self, files: Sequence[DataFile]) -> Iterator[Cells]:
        """Yield observations in order, up to the first pending request. The next micro-batch gets the others."""
        end = min((part.oldest_pending for part in partition_tallies(files)), default=NEVER)
        before, after = (folder / OBSERVATIONS.name for folder in (self._before, self._after))
        staged = [self._storage.at(file.path) for file in observation_files(files)]
        found = read_observations([*staged, *map(str, before.glob("*.parquet"))])
        later = found.filter(pc.field("packet") >= end)
        if len(later):
            after.mkdir()
            pq.write_table(later, after / "pending.parquet")
        yield from in_order(found.filter(pc.field("packet") < end))
