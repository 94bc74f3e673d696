"""One partition of a micro-batch: continues from the partition's state after the previous files.

Rows are those of `partition_rows`. Each is yielded once, when it is final. A connection's row is yielded when the
connection has ended.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.pipeline.follow_state import CarryOver, read_carry_over, write_carry_over
from dissector.pipeline.observations import revisions_of, row_of
from dissector.pipeline.origins import Origins, Sources
from dissector.pipeline.partition_rows import RowBuilder, opened
from dissector.pipeline.worker_processes import PartitionJob, Share
from dissector.tables.data_files import TALLIES
from dissector.tables.row_batches import TableRow
from dissector.transport.partitions import Partition


@dataclass(frozen=True)
class MicroBatchJob(PartitionJob):
    """What is done with each partition of a micro-batch."""

    before: Path
    """Folder of the carry-overs after the previous micro-batch."""
    after: Path | None
    """Folder of those after this one. None if these are the last packets: all rows are yielded."""
    now_ns: int
    """Time that the complete capture has reached."""

    def rows(self, share: Share, partition: Partition) -> Iterator[TableRow]:
        """Yield the table and the row of everything that is final, then write the carry-over. `share` gets what the
        partition knows of all that it has read so far and, after the last packets, also of what was pending.

        Rows of `OBSERVATIONS` come first, for cross-connection findings, then findings about rows that are written
        already. The last row, of `TALLIES`, counts what was ignored: by routing, and at the end by the partition."""
        carry_over = read_carry_over(self.before, partition.number)
        routing_tallies: list[CaptureTally] = []
        blocks = self.blocks(partition)
        with opened(blocks, partition, self.options, routing_tallies, self.secrets, carry_over.capture) as capture:
            for _ in capture.read(sort=False) if self.after is None else capture.pipeline.read_available():
                pass
            capture.connections.merge_shared_state(share(capture))
            for _ in capture.findings.examine_in_order(self.now_ns):
                yield from (row_of(each, Sources()) for each in capture.findings.take_observations())
            yield from revisions_of(capture.incremental.take_revisions(), self.origins)
            connections = set(carry_over.connections)
            yield from _FinalRows(capture, Origins(self.origins, Sources()), self.options).final_rows(connections)
            pending = capture.incremental.oldest_pending_packet(self.now_ns)
            yield TALLIES, {"tally": pickle.dumps(PartitionTally(routing_tallies, capture.pipeline.tally, pending))}
            if self.after is not None:
                left = CarryOver(capture.incremental.checkpoint(), frozenset(connections))
                write_carry_over(self.after, partition.number, left)


class _FinalRows(RowBuilder):
    """Builds the rows that are final."""

    def final_rows(self, connections: set[int]) -> Iterator[TableRow]:
        """Yield the final rows, and update `connections`, which have no row of `connections` yet."""
        final = np.sort(self._capture.incremental.take_final_rows())
        connections.update(self._capture.index.numbers(final).connection.tolist())
        for table, row in self.rows_of(final):
            if table != "connections":
                yield table, row
        without_row = np.array(sorted(connections), np.int64)
        for connection in without_row[self._capture.incremental.are_closed(without_row)].tolist():
            connections.discard(connection)
            yield "connections", self._connection_row(connection)
