"""Builds redacted packets of exchanges around their redacted frames.

A packet keeps its time, ports, sequence numbers, flags, and which bytes of which stream it carries. Everything else is
new: Ethernet, IP and TCP headers, with addresses replaced one for one. Nothing of a packet is copied, so no unknown
content (options, tunnels, other programs' traffic) can remain. Packets without bytes of a chosen exchange are omitted,
except SYN, FIN and RST of its connection; so are retransmitted bytes.

The capture's files are read once more, in batches.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from dissector.capture_session import Capture
from dissector.capture_session.row_frames import FrameSpans
from dissector.conversation import End, Packet, headers
from dissector.core.arrays import Bool, Int64
from dissector.core.batches import NOWHERE, RunBatch, RunKind, SegmentBatch
from dissector.core.columns import Column, is_in, tuples, unique
from dissector.core.process_memory import trim
from dissector.core.store import Store
from dissector.export.packets import MAX_STREAM, packet_batches
from dissector.export.redaction.pseudonyms import AddressPseudonyms
from dissector.export.redaction.rows import FrameSide, RedactedFrames
from dissector.transport import Transport
from dissector.transport.connection_table import FIN, RST, SYN

RUNS_TOGETHER: Final = 1 << 15
"""Runs whose parts are found at once."""
PARTS_TOGETHER: Final = 1 << 12
"""Parts that are objects at once."""
MAX_PAYLOAD: Final = 65_000
"""Maximum bytes in an IP datagram; segments that a network card merged may be larger."""


ColumnBatch = TypeVar("ColumnBatch", SegmentBatch, RunBatch)


class _SegmentPart(NamedTuple):
    """Bytes of a chosen frame in a segment; none in one that only opens or closes the connection."""

    segment: int
    """Row of `_ChosenStreams`."""
    ahead: int
    """Bytes of the segment before them."""
    size: int
    captured: bool
    """Whether the capture has them: bytes beyond the snap length are missing."""
    frame: int
    """Number of the chosen frame; -1 for none."""
    start: int
    """Offset in the frame."""


_PART: Final = np.dtype([
    ("segment", np.int64), ("ahead", np.int64), ("size", np.int64), ("captured", np.bool_), ("frame", np.int64),
    ("start", np.int64),
])  # fmt: skip
"""A part, as a row of columns."""


def redacted_packets(
    capture: Capture, rows: Iterable[int], redacted: RedactedFrames, addresses: AddressPseudonyms
) -> Iterator[Packet]:
    """Yield the redacted packets of these rows, from 0, in capture order. The capture can be read again."""
    spans = capture.frames.span_columns(np.fromiter(rows, np.int64))
    if not len(spans.row):
        return
    order = np.lexsort((spans.of_client, spans.row, spans.start + spans.size, spans.start, spans.direction))
    chosen = spans.at(order)
    ends = _ends(capture, chosen, addresses)
    streams = _ChosenStreams(capture, chosen)

    def sides() -> Iterator[FrameSide]:
        for part in streams.parts():
            if part.size:
                row, of_client, size = (
                    int(column[part.frame]) for column in (chosen.row, chosen.of_client, chosen.size)
                )
                yield FrameSide(row, bool(of_client), size)

    contents = redacted.contents(sides())
    for part in streams.parts():
        payload = next(contents)[part.start : part.start + part.size] if part.size else b""
        yield from streams.packets(part, payload.ljust(part.size, b"\x00"), ends)


def _ends(capture: Capture, chosen: FrameSpans, addresses: AddressPseudonyms) -> dict[int, tuple[End, End]]:
    """Return the sender and the receiver of each direction, with replaced addresses."""
    ends: dict[int, tuple[End, End]] = {}
    last = np.flatnonzero(np.diff(chosen.direction, append=-1))
    for direction, of_client, row in tuples(chosen.direction[last], chosen.of_client[last], chosen.row[last]):
        [[client], [server]] = capture.index.columns(("client", "server"), range(row, row + 1))
        pair = _redacted_end(str(client), addresses), _redacted_end(str(server), addresses)
        ends[direction] = pair if of_client else pair[::-1]
        ends[direction ^ 1] = ends[direction][::-1]
    return ends


def _redacted_end(text: str, addresses: AddressPseudonyms) -> End:
    end = End.parse(text)
    return End(addresses.of(end.host), end.port)


class _ChosenStreams:
    """The segments and runs of the chosen connections, from the capture's files."""

    def __init__(self, capture: Capture, chosen: FrameSpans) -> None:
        connections = unique(chosen.direction >> 1)
        store = Store()
        transport = Transport(store, capture.limits)
        segments, runs = _Rows(SegmentBatch), _Rows(RunBatch)
        for batch in packet_batches(capture, store):
            read = transport.segments(batch)
            segments.add(read, connections)
            runs.add(transport.reassemble(read), connections)
        for each in transport.flush():
            runs.add(each, connections)
        self._segments = segments.joined()
        self._parts = Column(_PART)
        self._find_parts(chosen, runs.joined())

    def parts(self) -> Iterator[_SegmentPart]:
        """Return the parts of chosen frames in each segment, in capture order."""
        for at in range(0, len(self._parts), PARTS_TOGETHER):
            trim()
            yield from map(_SegmentPart._make, self._parts.values[at : at + PARTS_TOGETHER].tolist())

    def _find_parts(self, chosen: FrameSpans, runs: RunBatch) -> None:
        """Find the parts of chosen frames in runs, and the segments that open or close a connection."""
        segments, found = self._segments, Column(_PART)
        order = np.argsort(segments.address, kind="stable")
        has_part, ends_in_part = np.zeros((2, len(order)), np.bool_)
        address = segments.address[order]
        for at in range(0, len(runs.start), RUNS_TOGETHER):
            some = RunBatch(*(getattr(runs, each.name)[at : at + RUNS_TOGETHER] for each in fields(runs)))
            parts = _inside(self._carried(some, order, address), chosen)
            found.extend(parts)
            segment = parts["segment"]
            is_end = parts["ahead"] + parts["size"] == segments.size[segment] + segments.missing[segment]
            has_part[segment] = True
            ends_in_part[segment[is_end]] = True
            trim()
        found.extend(self._marks(has_part, ends_in_part))
        values: Any = found.values
        order = np.lexsort([values[name] for name in reversed(_SegmentPart._fields)])
        for at in range(0, len(order), RUNS_TOGETHER):
            self._parts.extend(values[order[at : at + RUNS_TOGETHER]])
            trim()

    def _carried(self, runs: RunBatch, order: Int64, address: Int64) -> "_SegmentRuns":
        """Return runs with the segment that has the bytes of each; `order` is that of the addresses of segments."""
        segments = self._segments
        has_address = runs.address != NOWHERE
        at = np.searchsorted(address, runs.address, side="right") - 1
        by_packet = np.searchsorted(segments.packet, runs.packet)
        row = np.where(has_address, order[np.maximum(at, 0)], np.minimum(by_packet, len(order) - 1))
        ahead = np.where(has_address, runs.address - segments.address[row], segments.size[row])
        # Bytes beyond the snap length belong after their segment; they are left out if that is unknown.
        cut = (runs.kind == RunKind.TRUNCATED) & (segments.missing[row] >= runs.size)
        kept = np.flatnonzero((has_address | cut) & (segments.direction[row] == runs.direction))
        columns = (row, ahead, has_address, runs.direction, runs.start, runs.size)
        return _SegmentRuns._make(each[kept] for each in columns)

    def _marks(self, has_part: Bool, ends_in_part: Bool) -> "np.ndarray[tuple[int], np.dtype[np.void]]":
        """Return segments that open or close a connection and are not in another part."""
        segments = self._segments
        rows = np.flatnonzero(segments.flags & (SYN | FIN | RST))
        closes = segments.flags[rows] & (FIN | RST) != 0
        is_mark = ~has_part[rows] | (closes & ~ends_in_part[rows])
        rows, closes = rows[is_mark], closes[is_mark]
        marks = np.zeros(len(rows), _PART)
        marks["segment"], marks["captured"], marks["frame"] = rows, True, -1
        marks["ahead"] = np.where(closes, segments.size[rows] + segments.missing[rows], 0)
        return marks

    def packets(self, part: _SegmentPart, payload: bytes, ends: Mapping[int, tuple[End, End]]) -> Iterator[Packet]:
        """Yield a part as a packet; as more packets if it is too large for one."""
        segments, row = self._segments, part.segment
        direction, flags = int(segments.direction[row]), int(segments.flags[row])
        time_ns, seq, ack = int(segments.time_ns[row]), int(segments.seq[row]), int(segments.ack[row])
        last = int(segments.size[row] + segments.missing[row])
        for at in range(0, max(len(payload), 1), MAX_PAYLOAD):
            chunk = payload[at : at + MAX_PAYLOAD]
            ahead = part.ahead + at
            chunk_flags = flags & ~(SYN if ahead else 0) & ~(FIN | RST if ahead + len(chunk) < last else 0)
            shift = ahead + (ahead > 0 and flags & SYN != 0)
            data = headers.frame(*ends[direction], chunk_flags, seq + shift, ack, chunk, outward=direction % 2 == 0)
            yield Packet(time_ns, data if part.captured else data[: len(data) - len(chunk)], len(data))


class _SegmentRuns(NamedTuple):
    """Runs, `(n,)`, each within a segment."""

    segment: Int64
    ahead: Int64
    captured: Bool
    direction: Int64
    start: Int64
    size: Int64


def _inside(runs: _SegmentRuns, chosen: FrameSpans) -> "np.ndarray[tuple[int], np.dtype[np.void]]":
    """Return the parts of runs that belong to chosen frames."""
    keys = chosen.direction * MAX_STREAM + chosen.start
    begin = runs.direction * MAX_STREAM + runs.start
    first = np.maximum(np.searchsorted(keys, begin, side="right") - 1, 0)
    counts = np.maximum(np.searchsorted(keys, begin + runs.size) - first, 0)
    run = np.repeat(np.arange(len(counts)), counts)
    frame = np.arange(len(run)) + np.repeat(first - np.cumsum(counts) + counts, counts)
    start = runs.start[run]
    low = np.maximum(start, chosen.start[frame])
    high = np.minimum(start + runs.size[run], chosen.start[frame] + chosen.size[frame])
    kept = np.flatnonzero((chosen.direction[frame] == runs.direction[run]) & (low < high))
    run, frame, low, high = run[kept], frame[kept], low[kept], high[kept]
    parts = np.empty(len(run), _PART)
    parts["segment"], parts["ahead"], parts["size"] = runs.segment[run], runs.ahead[run] + low - start[kept], high - low
    parts["captured"], parts["frame"], parts["start"] = runs.captured[run], frame, low - chosen.start[frame]
    return parts


class _Rows(Generic[ColumnBatch]):
    """Rows of some connections, of many batches."""

    def __init__(self, kind: type[ColumnBatch]) -> None:
        self._kind: type[ColumnBatch] = kind
        self._columns: list[Column] = []

    def add(self, batch: ColumnBatch, connections: Int64) -> None:
        """Add the rows of a batch with these connections, ascending."""
        rows = np.flatnonzero(is_in(batch.direction >> 1, connections))
        values = [getattr(batch, each.name)[rows] for each in fields(batch)]
        if not self._columns:
            self._columns = [Column(each.dtype) for each in values]
        for column, each in zip(self._columns, values, strict=True):
            column.extend(each)

    def joined(self) -> ColumnBatch:
        """Return all of them; there was a batch."""
        columns: list[Any] = [column.values for column in self._columns]
        rows: ColumnBatch = self._kind(*columns)
        return rows
