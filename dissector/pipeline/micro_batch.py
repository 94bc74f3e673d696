"""One partition of a micro-batch: continues from the partition's state after the previous files.

Rows are those of `partition_rows`. Each is yielded once, when it is final. A connection's row is yielded when the
connection has ended.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dissector.capture.partition import Block
from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.detection.decode_as import DecodeAs
from dissector.index.shared_state import SharedState
from dissector.pipeline.follow_state import CarryOver
from dissector.pipeline.observations import revisions_of, row_of
from dissector.pipeline.origins import FileOrigins, Origins, Sources
from dissector.pipeline.partition_rows import RowBuilder, WriteOptions, opened
from dissector.tables.data_files import TALLIES
from dissector.tables.row_batches import TableRow
from dissector.transport.partitions import Partition


def read_shared_state(
    blocks: Iterable[Block], partition: Partition, carry_over: CarryOver, secrets: bytes = b"",
    decode_as: tuple[DecodeAs, ...] = (), *, is_last: bool,
) -> SharedState:  # fmt: skip
    """Return what the other partitions need from this one: of all that it has read so far and, after the last packets,
    also of what was pending."""
    options = WriteOptions(decode_as=decode_as)
    with opened(blocks, partition, options, [], secrets, carry_over.capture) as capture:
        for _ in capture.read(sort=False) if is_last else capture.pipeline.read_available():
            pass
        return capture.connections.shared_state()


def rows(
    blocks: Iterable[Block], partition: Partition, carry_over: CarryOver, shared_state: SharedState,
    origins: FileOrigins, options: WriteOptions, save: Callable[[CarryOver], None] | None, now_ns: int,
    secrets: bytes = b"",
) -> Iterator[TableRow]:  # fmt: skip
    """Yield the table and the row of everything that is final, then pass the carry-over to `save`. Without `save` these
    are the last packets, and all rows are yielded. `now_ns` is the time that the complete capture has reached.

    Rows of `OBSERVATIONS` come first, for cross-connection findings, then findings about rows that are written already.
    The last row, of `TALLIES`, counts what was ignored: by routing, and at the end by the
    partition."""
    routing_tallies: list[CaptureTally] = []
    with opened(blocks, partition, options, routing_tallies, secrets, carry_over.capture) as capture:
        for _ in capture.pipeline.read_available() if save is not None else capture.read(sort=False):
            pass
        capture.connections.merge_shared_state(shared_state)
        for _ in capture.findings.examine_in_order(now_ns):
            yield from (row_of(each, Sources()) for each in capture.findings.take_observations())
        yield from revisions_of(capture.incremental.take_revisions(), origins)
        connections = set(carry_over.connections)
        yield from _FinalRows(capture, Origins(origins, Sources()), options).final_rows(connections)
        pending = capture.incremental.oldest_pending_packet(now_ns)
        yield TALLIES, {"tally": pickle.dumps(PartitionTally(routing_tallies, capture.pipeline.tally, pending))}
        if save is not None:
            save(CarryOver(capture.incremental.checkpoint(), frozenset(connections)))


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
