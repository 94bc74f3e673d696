"""A capture whose packets come in pieces: final rows are taken after each, the rest goes on in a checkpoint.

    with Capture([piece], checkpoint=state) as capture:
        for _ in capture.pipeline.read_available():
            pass
        rows = capture.incremental.take_final_rows()
        state = capture.incremental.checkpoint()

Only the last piece is read to its end, with `Capture.read`.
"""

from typing import TYPE_CHECKING

import numpy as np

from dissector.capture_session.checkpoint import Checkpoint, dump
from dissector.capture_session.findings_pass import FindingsPass
from dissector.capture_session.row_frames import RowFrames
from dissector.capture_session.row_space import RowSpace
from dissector.capture_session.stage_pipeline import StagePipeline
from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NEVER
from dissector.exchange.decoder import ExchangeDecoder

if TYPE_CHECKING:  # imported on use: captures that are read at once need none of it
    from dissector.core.object_graph import Nodes
    from dissector.findings.framework.decoded_exchange import RowPosition
    from dissector.findings.framework.open_findings import Revision


class IncrementalReading:
    """Takes rows as they become final, and makes checkpoints."""

    def __init__(
        self, pipeline: StagePipeline, rows: RowSpace, frames: RowFrames, decoder: ExchangeDecoder,
        findings: FindingsPass, restored: Checkpoint | None,
    ) -> None:  # fmt: skip
        self._pipeline = pipeline
        self._indexer = pipeline.indexer
        self._rows = rows
        self._frames = frames
        self._decoder = decoder
        self._findings = findings
        self._pending = np.zeros(0, np.int64) if restored is None else restored.pending_rows
        """Rows of the index that were not final when final rows were taken."""
        self._rows_seen = 0 if restored is None else restored.rows_seen
        """Rows of the index that were there then."""

    @property
    def pending_rows(self) -> Int64:
        """Rows that were not taken when there were `known_rows`, ascending."""
        return self._rows.capture_rows(self._pending)

    @property
    def known_rows(self) -> int:
        """How many rows there were when rows were taken. A capture that is continued has no files of Kafka's own."""
        return self._rows_seen

    def leave(self, rows: Int64) -> None:
        """Have all rows taken that there are now, but for these."""
        self._pending, self._rows_seen = self._rows.index_rows(rows), len(self._indexer.table)

    def take_final_rows(self) -> Int64:
        """Rows that nothing changes any more, ascending, each once; all that are not taken yet, once reading is
        finished."""
        rows = self._untaken()
        final = np.ones(len(rows), np.bool_) if self._pipeline.is_finished else self._indexer.is_final(rows)
        self._pending, self._rows_seen = rows[~final], len(self._indexer.table)
        return self._rows.capture_rows(rows[final])

    def are_closed(self, connections: Int64) -> Bool:
        """Which connections get no more rows, `(n,)`."""
        if self._pipeline.is_finished:
            return np.ones(len(connections), np.bool_)
        return ~np.isin(self._rows.index_connections(connections), self._pipeline.transport.connections.open())

    def oldest_pending_packet(self, now_ns: int) -> int:
        """The packet of the oldest request that may still cause observations; `NEVER` where there is none. Requests
        that have waited for longer than `MAX_WAIT_NS` do not count."""
        from dissector.findings.framework.examination_queue import MAX_WAIT_NS

        if self._pipeline.is_finished:
            return NEVER
        after_ns = now_ns - MAX_WAIT_NS
        oldest = self._pipeline.streams.oldest_pending(after_ns).packet
        examination = self._findings.examination
        if examination is None:
            return oldest
        time_ns, packet = examination.pending_requests()
        return int(packet[time_ns > after_ns].min(initial=oldest))

    def take_revisions(self) -> "list[Revision]":
        """Changes of findings of rows that were taken after earlier pieces, each once."""
        examination = self._findings.examination
        return [] if examination is None else examination.findings.revisions.take()

    def checkpoint(self) -> "Nodes":
        """Return what is unfinished, for `Capture(..., checkpoint=...)`. The capture can only be closed
        afterwards."""
        pipeline, examination = self._pipeline, self._findings.examination
        untaken = self._untaken()
        rows = np.union1d(untaken, self._indexer.conversation_state.pending_rows)
        if examination is not None:
            rows = np.union1d(rows, examination.pending_rows)
        connections = np.union1d(pipeline.transport.connections.open(), self._indexer.table.connection.values[rows])
        rows = np.union1d(rows, self._decoder.retain(rows, connections))
        looked_back = rows[:0] if examination is None else examination.rechecked_frames
        held = [self._indexer.regions(rows), pipeline.streams.held_regions()]
        excerpt = pipeline.store.excerpt(*np.concatenate(held, axis=1))
        if examination is not None:
            examination.findings.keep(untaken, examination.revisable_rows, self._position)
            examination.retain(set(connections.tolist()))
        self._indexer.retain(rows, looked_back)
        return dump(
            Checkpoint(
                pipeline.store, pipeline.streams, pipeline.transport, pipeline.tls, pipeline.framer, self._indexer,
                self._decoder, examination, self._pending, self._rows_seen, pipeline.packets, pipeline.start_ns,
            ), excerpt,
        )  # fmt: skip

    def _untaken(self) -> Int64:
        """Rows of the index that were not taken as final ones, ascending."""
        return np.concatenate([self._pending, np.arange(self._rows_seen, len(self._indexer.table))])

    def _position(self, index_row: int) -> "RowPosition":
        """Packet and stream offset: how a row is found again once it was taken."""
        [packet], [start] = self._frames.positions(self._rows.capture_rows(np.array([index_row])))
        return int(packet), int(start)
