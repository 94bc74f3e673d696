"""Frames of rows: where they are in streams, packets and TLS records, and their bytes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from dissector.capture_session.row_space import RowSpace
from dissector.capture_session.stage_pipeline import StagePipeline
from dissector.core.arrays import Bool, Int64
from dissector.core.grouping import cuts
from dissector.index.exchange_table import NO_FRAME, ExchangeTable
from dissector.index.frame_table import FrameTable
from dissector.protocol.kernel.json_messages import join
from dissector.tls.record_parts import TlsRecord

COPIED_TOGETHER: Final = 1 << 22
"""Bytes of frames that are copied at once, unless a row has more."""


class FrameSpan(NamedTuple):
    """Where a frame, or what is between frames, is in its stream."""

    direction: int
    start: int
    """Stream offset of its first byte."""
    size: int
    packet: int
    """With its first byte."""
    of_client: bool


class FrameSpans(NamedTuple):
    """The same of many frames, `(n,)` each."""

    row: Int64
    direction: Int64
    start: Int64
    size: Int64
    packet: Int64
    of_client: Bool


class RowFrames:
    """Looks up frames by row. Rows are numbered as `RowSpace` says; those given in arrays are ascending."""

    def __init__(self, pipeline: StagePipeline, rows: RowSpace) -> None:
        self._files = pipeline.files
        self._indexer = pipeline.indexer
        self._tls = pipeline.tls
        self._rows = rows

    def spans(self, row: int) -> list[FrameSpan]:
        """Where the frames of a row are in their streams; empty for an entry of a file."""
        at = self._rows.index_row(row)
        if at < 0:
            return []
        table, frames = self._indexer.table, self._indexer.frames
        sides = ((int(table.request.values[at]), True), (int(table.response.values[at]), False))
        columns = (frames.direction.values, frames.start.values, frames.size.values, frames.packet.values)
        spans = []
        for frame, of_client in sides:
            if frame != NO_FRAME:
                direction, start, size, packet = (int(column[frame]) for column in columns)
                spans.append(FrameSpan(direction, start, size, packet, of_client))
        return spans

    def span_columns(self, rows: Int64) -> FrameSpans:
        """The same of many rows: by row, the request before the response."""
        indexed = self._rows.index_rows(rows)
        table, frames = self._indexer.table, self._indexer.frames
        both = np.stack([table.request.values[indexed], table.response.values[indexed]], axis=1)
        row, side = np.nonzero(both != NO_FRAME)
        frame = both[row, side]
        direction, start, size, packet = (
            column.values[frame].astype(np.int64)
            for column in (frames.direction, frames.start, frames.size, frames.packet)
        )
        return FrameSpans(self._rows.capture_rows(indexed[row]), direction, start, size, packet, side == 0)

    def packet_spans(self, rows: Int64) -> FrameSpans:
        """Where the frames of rows are in the streams of TCP: of a connection that was decrypted the records that they
        are in. `control_stretches` has what else these need."""
        found = self.span_columns(rows)
        start, size = self._tls.plaintext.in_tcp(found.direction, found.start, found.size)
        return found._replace(start=start, size=size)

    def control_stretches(self, connections: Iterable[int]) -> list[tuple[int, int, int]]:
        """Direction, offset and size in TCP of what decrypted connections have besides application data: no key opens
        that without the handshake, and connections end with an alert."""
        return [
            (direction, start, size)
            for connection in sorted(connections)
            for direction in (2 * connection, 2 * connection + 1)
            for start, size in self._tls.plaintext.without_plaintext(direction)
        ]

    def tls_records(self, row: int, *, of_client: bool) -> list[TlsRecord]:
        """The encrypted records that the request of a row came in, or its response. Their plaintext begins where it is
        in the frame. None where the connection was not decrypted."""
        if not len(self._tls.plaintext.records):
            return []
        spans = (span for span in self.spans(row) if span.of_client == of_client)
        return [record for span in spans for record in self._tls.records_of(*span[:3])]

    def decrypted_connections(self, rows: Sequence[int]) -> set[int]:
        """The connections of rows whose TLS records were decrypted, by number."""
        indexed = self._rows.index_rows(np.asarray(rows, np.int64))
        connections = self._indexer.table.connection.values[indexed]
        return set(filter(self._tls.is_decrypted, np.unique(connections).tolist()))

    def positions(self, rows: range | Int64) -> tuple[Int64, Int64]:
        """The packet with which each row begins, `(n,)`, and the stream offset of its first byte: -1 where it is in no
        stream. An entry of a file counts as a packet of its own."""
        entries, indexed = self._rows.split(rows)
        table, at = self._indexer.table, np.asarray(indexed, np.int64)
        frame = np.where(table.request.values[at] == NO_FRAME, table.response.values[at], table.request.values[at])
        start, is_framed = np.full(len(entries) + len(at), -1), frame != NO_FRAME
        start[len(entries) :][is_framed] = self._indexer.frames.start.values[frame[is_framed]]
        return np.concatenate([np.asarray(entries, np.int64), table.packet.values[at].astype(np.int64)]), start

    def raw_bytes(self, rows: Int64) -> Iterator[tuple[bytes, bytes]]:
        """The bytes of request and response of rows, to be searched. They contain secrets: never show them."""
        for row in rows[self._rows.is_entry(rows)].tolist():
            entry = self._files.exchange(row).request
            yield entry.data if entry is not None else b"", b""
        table, frames = self._indexer.table, self._indexer.frames
        yield from _raw_frames(table, frames, self._rows.index_rows(rows))


def _raw_frames(table: ExchangeTable, frames: FrameTable, rows: Int64) -> Iterator[tuple[bytes, bytes]]:
    """Return the request and the response of each row of the index; empty bytes where there is none."""
    sides = np.stack([table.request.values[rows], table.response.values[rows]])
    sizes = np.zeros(sides.shape, np.int64)
    sizes[sides != NO_FRAME] = frames.size.values[sides[sides != NO_FRAME]]
    edges = cuts(sizes.sum(axis=0), COPIED_TOGETHER)
    for some, their_sizes in zip(np.split(sides, edges, axis=1), np.split(sizes, edges, axis=1), strict=True):
        yield from zip(*map(_copies, (frames, frames), some, their_sizes), strict=True)


def _copies(frames: FrameTable, rows: Int64, sizes: Int64) -> list[bytes]:
    """The bytes of frames, those in one piece copied at once."""
    found = [b""] * len(rows)
    there = np.flatnonzero(sizes)
    addresses, _owner = frames.pointers(rows[there])
    in_one = there[addresses > 0]
    copied = join(addresses[addresses > 0], sizes[in_one]).tobytes()
    ends = np.cumsum(sizes[in_one])
    for at, start, end in zip(in_one.tolist(), (ends - sizes[in_one]).tolist(), ends.tolist(), strict=True):
        found[at] = copied[start:end]
    for at in there[addresses == 0].tolist():
        found[at] = frames.read(int(rows[at]))[0]
    return found
