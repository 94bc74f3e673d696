"""One part of the packets of some files, read on from where the files before them ended: its lessons, its rows.

Rows are those of `parts`, and each comes once: when nothing can change it any more
(`IncrementalReading.take_final_rows`). A connection's row comes when the connection is over.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from dissector.capture.partition import Block, CapturePartition
from dissector.capture_session import Capture
from dissector.capture_session.tally import CaptureTally, PartitionTally
from dissector.index.shared_state import SharedState
from dissector.pipeline.cells import Made
from dissector.pipeline.notes import ANEW, NOTES, anew_of, row_of
from dissector.pipeline.origins import Origin
from dissector.pipeline.parts import TALLIES, Keeping, Rows, packets
from dissector.transport.partitions import Partition


class Left(NamedTuple):
    """What the files before left of a part."""

    capture: bytes = b""
    connections: frozenset[int] = frozenset()
    """Those that have rows and not their own yet."""

    def packed(self) -> bytes:
        return pickle.dumps(tuple(self))

    @classmethod
    def unpacked(cls, data: bytes) -> "Left":
        return cls(*pickle.loads(data)) if data else cls()


def _opened(
    blocks: Iterable[Block], share: Partition, left: Left, dealt: list[CaptureTally], *, secrets: bool
) -> Capture:
    part = CapturePartition("a part of the packets", packets(blocks, dealt), share.number, share.parts)
    return Capture([part], checkpoint=left.capture, show_secrets=secrets)


def lessons(blocks: Iterable[Block], share: Partition, left: Left, *, is_last: bool) -> SharedState:
    """What a part teaches the others: all that it has read so far; of the last packets, also what waited."""
    with _opened(blocks, share, left, [], secrets=False) as capture:
        for _ in capture.read(sort=False) if is_last else capture.read_available():
            pass
        return capture.index.shared_state()


def rows(
    blocks: Iterable[Block], share: Partition, left: Left, taught: SharedState, origins: list[Origin], keeping: Keeping,
    put: Callable[[Left], None] | None, now_ns: int,
) -> Iterator[Made]:  # fmt: skip
    """Table and row of all that is settled; what is left of the part is `put` away then. Without a place for it these
    are the last packets, and all rows come. `now_ns` is the time that the capture as a whole has reached.

    First of `NOTES`, what it takes other parts to tell; then of `ANEW`, what is told of rows that came before; the last
    one, of `TALLIES`, is what was left out, as these packets were dealt, and, at the end, of all that the part read."""
    dealt: list[CaptureTally] = []
    with _opened(blocks, share, left, dealt, secrets=keeping.secrets) as capture:
        for _ in capture.read_available() if put is not None else capture.read(sort=False):
            pass
        capture.index.merge_shared_state(taught)
        for _ in capture.findings.examine_in_order(now_ns):
            yield from ((NOTES, row_of(noted)) for noted in capture.findings.take_observations())
        yield from ((ANEW, cells) for cells in anew_of(capture.incremental.take_revisions(), origins))
        connections = set(left.connections)
        yield from _Settled(capture, origins, keeping).all_of(connections)
        yield (
            TALLIES,
            {
                "tally": pickle.dumps(
                    PartitionTally(dealt, capture.pipeline.tally, capture.incremental.oldest_pending_packet(now_ns))
                )
            },
        )
        if put is not None:
            put(Left(capture.incremental.checkpoint(), frozenset(connections)))


class _Settled(Rows):
    """Rows that come in portions."""

    def all_of(self, connections: set[int]) -> Iterator[Made]:
        """Those that are settled. `connections`, which wait for their own row, are kept up to date."""
        settled = self._capture.incremental.take_final_rows()
        for number, begin, exchange in self._at(settled):
            connections.add(exchange.row.connection)
            for table, row in self._of(number, begin, exchange):
                if table != "connections":
                    yield table, row
        waiting = np.array(sorted(connections), np.int64)
        for connection in waiting[self._capture.incremental.are_closed(waiting)].tolist():
            connections.discard(connection)
            yield "connections", self._of_connection(connection)
